// How long a session surely lives: only this part of the protocol decides what is believed. Pure:
// what was sent and answered, and when, is passed in. Model: tests/models/zookeeper.
#pragma once
#include <algorithm>
#include <array>
#include <optional>

#include "holdfast/clock.hpp"

namespace holdfast::zookeeper {

/// Only acknowledged quorum writes count. A server that answers reads, pings or even a sync may be
/// cut off from the others, which have ended the session meanwhile.
///
/// A committed write does not touch the session at the leader. The follower's answers to the
/// leader's pings do, and these may be lost on another path than the acknowledgement's. So the
/// client keeps a chain of writes i, j, k, one outstanding, and sends j half a tick after the
/// acknowledgement of i. The leader pings every half tick, so it sends a ping in between. (One that
/// stood still sends it at once, and j takes one more round trip to the others.) That ping reaches
/// the follower after i and before the commit of j; its answer carries the touch of i, and goes up
/// before k. So when k is acknowledged, the leader has seen the session after i, the write *two
/// back*, was sent. Half a tick after the sending of i would not do: i may take that long to its
/// follower. After a reconnect the chain begins anew, since earlier touches may have ended with
/// their server. The creation of the session is a quorum write itself and starts its timer.
class Validity {
public:
    /// When the next write may be sent after an acknowledgement: half a tick, and a twentieth more,
    /// since the leader's timer may be late.
    static constexpr milliseconds spacing(milliseconds tick) noexcept { return tick * 21 / 40; }
    /// The shortest time-out of a session whose heartbeats can keep it proved. From a write to the
    /// third acknowledgement after it there are three spacings. What is left then has to be enough
    /// for the answers, and for a holder that stops a third of the ttl before the end, as
    /// `holdfast run` does.
    static constexpr milliseconds least_timeout(milliseconds tick) noexcept { return 3 * tick; }

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
    /// The session lives at least for its time-out from here; nullopt before it was created.
    std::optional<boot_clock::time_point> base() const noexcept { return base_; }

private:
    const milliseconds spacing_;
    std::optional<boot_clock::time_point> base_;
    boot_clock::time_point next_;
    std::array<boot_clock::time_point, 3> chain_{};
    std::size_t length_ = 0;
};

}  // namespace holdfast::zookeeper
