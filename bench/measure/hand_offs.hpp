// The order of grants: what every crowd counts, Holdfast's and the bare ones.
#pragma once
#include <cstdint>

#include "measure/latency.hpp"

namespace holdfast::bench {

/// A busy server may grant nothing in a short stretch, which says nothing: it is measured for
/// longer then, until something is granted, but in all no longer than this.
constexpr double at_most_for_a_grant = 20;  // s

/// What happened in one stretch of time.
struct HandOffs {
    double seconds = 0;
    std::size_t grants = 0;
    std::size_t hand_offs = 0;   ///< grants to another caller than the one before
    std::uint64_t requests = 0;  ///< of all clients
    Latency hand_off;            ///< release called -> next grant

    void merge(const HandOffs& more) {
        seconds += more.seconds;
        grants += more.grants;
        hand_offs += more.hand_offs;
        requests += more.requests;
        hand_off.merge(more.hand_off);
    }
};

/// The last holder, and when it released. Not thread-safe.
class Turns {
public:
    /// The first grant of all is not counted: nobody knows since when it could have been.
    void granted(const void* who, HandOffs& now) {
        if (last_ != nullptr) {
            ++now.grants;
            if (last_ != who) {
                ++now.hand_offs;
                now.hand_off.add(Clock::now() - let_go_);
            }
        }
        last_ = who;
    }
    void let_go() { let_go_ = Clock::now(); }
    /// Nobody was there for a while to take the times.
    void forget() { last_ = nullptr; }

private:
    const void* last_ = nullptr;
    Clock::time_point let_go_{};
};

}  // namespace holdfast::bench
