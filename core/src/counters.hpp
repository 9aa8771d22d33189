// The counters behind Stats.
#pragma once
#include <atomic>

#include "holdfast/stats.hpp"

namespace holdfast {

struct Counters {
    using Count = std::atomic<std::uint64_t>;
    Count acquired{0}, contended{0}, cancelled{0}, failed{0}, attempts{0}, renewals{0},
        renewals_failed{0}, lost{0}, released{0}, in_doubt{0}, waiting{0}, held{0};

    static void add(Count& c) noexcept { c.fetch_add(1, std::memory_order_relaxed); }
    static void drop(Count& c) noexcept { c.fetch_sub(1, std::memory_order_relaxed); }

    Stats snapshot(std::uint64_t requests) const noexcept {
        const auto get = [](const Count& c) { return c.load(std::memory_order_relaxed); };
        Stats s;
        s.acquired = get(acquired), s.contended = get(contended), s.cancelled = get(cancelled);
        s.failed = get(failed), s.attempts = get(attempts), s.renewals = get(renewals);
        s.renewals_failed = get(renewals_failed), s.lost = get(lost), s.released = get(released);
        s.in_doubt = get(in_doubt), s.waiting = get(waiting), s.held = get(held);
        s.requests = requests;
        return s;
    }
};

}  // namespace holdfast
