// How long a session surely lives: the part of the protocol that decides about belief, and nothing
// else. Pure: what was sent and answered, and when, is passed in. tests/models/zookeeper has its
// model.
#pragma once
#include <algorithm>
#include <array>
#include <optional>

#include "holdfast/clock.hpp"

namespace holdfast::zookeeper {

/// Only acknowledged quorum writes count. A server that answers reads, pings or even a sync may be
/// cut off from the others, which have ended the session meanwhile.
///
/// A write that is committed does not touch the session at the leader; what does are the follower's
/// answers to the leader's pings, and these may be lost on a path other than that of the
/// acknowledgement. So a chain of writes i, j, k is kept, one outstanding. The leader pings every
/// half tick, so it sends a ping between the acknowledgement of i and a j that is sent half a tick
/// later. That ping comes to the follower after i and before the commit of j; its answer carries
/// the touch of i and goes up before k. So when k is acknowledged, the leader has seen the session
/// after i, the write *two back*, was sent. Spaced from the sending of i this fails: i may take
/// half a tick to its follower. After a reconnect the chain begins anew, since the earlier touches
/// may have ended with their server. The creation of the session is a quorum write itself and
/// starts its timer.
class Validity {
public:
    /// How long after an acknowledgement the next write may be sent: half a tick, and a twentieth
    /// more, since the leader's timer may be late.
    static constexpr milliseconds spacing(milliseconds tick) noexcept { return tick * 21 / 40; }
    /// The shortest time-out of a session whose heartbeats can keep it proved. Three spacings pass
    /// from a write to the third acknowledgement after it; the rest is for the answers.
    static constexpr milliseconds least_timeout(milliseconds tick) noexcept { return 2 * tick; }

    explicit Validity(milliseconds tick) noexcept : spacing_(spacing(tick)) {}

    /// The session was created by a request that was not sent before `sent`.
    void created(boot_clock::time_point sent) noexcept {
        base_ = sent;
        disconnected();
    }
    void disconnected() noexcept {
        length_ = 0;
        next_ = {};
    }
    /// A write of the chain, sent at `sent` and not before next(), was acknowledged.
    void acknowledged(boot_clock::time_point sent, boot_clock::time_point now) noexcept {
        if (length_ == chain_.size()) {
            std::shift_left(chain_.begin(), chain_.end(), 1);
            --length_;
        }
        chain_[length_++] = sent;
        next_ = now + spacing_;
        if (length_ == chain_.size() && base_ && chain_[0] > *base_) base_ = chain_[0];
    }
    /// A write that is sent before this is none of the chain.
    boot_clock::time_point next() const noexcept { return next_; }
    /// The session lives at least its time-out from here; nothing before it was created.
    std::optional<boot_clock::time_point> base() const noexcept { return base_; }

private:
    const milliseconds spacing_;
    std::optional<boot_clock::time_point> base_;
    boot_clock::time_point next_;
    std::array<boot_clock::time_point, 3> chain_{};
    std::size_t length_ = 0;
};

}  // namespace holdfast::zookeeper
