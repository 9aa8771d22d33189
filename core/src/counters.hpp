// The counters behind Stats: a few relaxed increments per acquisition, and no mutex.
#pragma once
#include <algorithm>
#include <atomic>

#include "explain.hpp"
#include "holdfast/stats.hpp"

namespace holdfast {

class HistogramCounter {
public:
    void add(std::chrono::nanoseconds took) noexcept {
        took = std::max(took, std::chrono::nanoseconds::zero());
        std::size_t i = 0;
        while (i < Histogram::bounds.size() && took > Histogram::bounds[i])
            ++i;
        buckets_[i].fetch_add(1, std::memory_order_relaxed);
        sum_.fetch_add(took.count(), std::memory_order_relaxed);
    }

    Histogram snapshot() const noexcept {
        Histogram h;
        for (std::size_t i = 0; i < buckets_.size(); ++i)
            h.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
        h.sum = std::chrono::nanoseconds(sum_.load(std::memory_order_relaxed));
        return h;
    }

private:
    std::array<std::atomic<std::uint64_t>, Histogram::bounds.size() + 1> buckets_{};
    std::atomic<std::chrono::nanoseconds::rep> sum_{0};
};

struct Counters {
    using Count = std::atomic<std::uint64_t>;
    Count contended{0}, cancelled{0}, failed{0}, attempts{0}, renewals_failed{0}, released{0},
        in_doubt{0}, moves{0}, waiting{0}, held{0};
    Count expired{0}, gone{0}, revoked{0}, max_hold{0}, closed{0}, other{0};  // losses
    // Their counts are also those of granted leases and of answered renewals.
    HistogramCounter wait_time, hold_time, renewal_time;

    static void add(Count& c) noexcept { c.fetch_add(1, std::memory_order_relaxed); }
    static void drop(Count& c) noexcept { c.fetch_sub(1, std::memory_order_relaxed); }

    void granted(std::chrono::nanoseconds waited) noexcept {
        wait_time.add(waited);
        add(held);
    }
    void ended(std::chrono::nanoseconds was_held) noexcept {
        hold_time.add(was_held);
        drop(held);
    }
    Count& losses(const error_code& why) noexcept {
        if (why == expired_error()) return expired;
        if (why == max_hold_error()) return max_hold;
        if (why == errc::revoked) return revoked;
        if (why == errc::closed) return closed;
        return why == errc::lost ? gone : other;
    }

    Stats snapshot(std::uint64_t requests) const noexcept {
        const auto get = [](const Count& c) { return c.load(std::memory_order_relaxed); };
        Stats s;
        s.contended = get(contended), s.cancelled = get(cancelled), s.failed = get(failed);
        s.attempts = get(attempts), s.renewals_failed = get(renewals_failed);
        s.released = get(released), s.in_doubt = get(in_doubt), s.requests = requests;
        s.moves = get(moves), s.waiting = get(waiting), s.held = get(held);
        s.losses = {get(expired), get(gone), get(revoked), get(max_hold), get(closed), get(other)};
        s.lost = s.losses.expired + s.losses.gone + s.losses.revoked + s.losses.max_hold +
                 s.losses.closed + s.losses.other;
        s.wait_time = wait_time.snapshot(), s.hold_time = hold_time.snapshot();
        s.renewal_time = renewal_time.snapshot();
        s.acquired = s.wait_time.count(), s.renewals = s.renewal_time.count();
        return s;
    }
};

}  // namespace holdfast
