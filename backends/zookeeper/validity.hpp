// How long a session surely lives: the part of the protocol that decides about belief, and nothing
// else. Pure: it is told what was sent and answered, and when.
#pragma once
#include <array>
#include <optional>

#include "holdfast/clock.hpp"

namespace holdfast::zookeeper {

/// Only acknowledged quorum writes count. A server that answers reads, pings or even a sync may be
/// cut off from the others, which have ended the session meanwhile.
///
/// A write that is committed does not touch the session at the leader; what does are the follower's
/// answers to the leader's pings, and these may be lost on a path other than that of the
/// acknowledgement. So a chain of writes is kept, one outstanding, each sent after the one before
/// was acknowledged and at least half a tick after it was sent: when one is acknowledged, the
/// leader has seen the session after the one *two back* was sent. After a reconnect the chain
/// begins anew, since the earlier touches may have ended with their server. The creation of the
/// session is a quorum write itself and starts its timer.
class Validity {
public:
    /// The session was created by a request that was not sent before `sent`.
    void created(boot_clock::time_point sent) noexcept {
        base_ = sent;
        length_ = 0;
    }
    void disconnected() noexcept { length_ = 0; }
    /// A write of the chain was acknowledged.
    void acknowledged(boot_clock::time_point sent) noexcept {
        if (length_ == chain_.size()) {
            chain_[0] = chain_[1];
            chain_[1] = chain_[2];
            length_ = 2;
        }
        chain_[length_++] = sent;
        if (length_ == chain_.size() && base_ && chain_[0] > *base_) base_ = chain_[0];
    }
    /// The session lives at least its time-out from here; nothing before it was created.
    std::optional<boot_clock::time_point> base() const noexcept { return base_; }

private:
    std::optional<boot_clock::time_point> base_;
    std::array<boot_clock::time_point, 3> chain_{};
    std::size_t length_ = 0;
};

}  // namespace holdfast::zookeeper
