// The renewal of one lease: what it needs, and when it is answered.
#pragma once
#include <optional>

#include "session.hpp"

namespace holdfast::zookeeper {

/// One item of a batch. Nothing is written for it alone: a heartbeat of its session proves every
/// lease on it. ZooKeeperBackend::renew() waits for those, and asks again after each.
class Renewal {
public:
    /// Requests what the renewal needs. Nullopt: it is answered already.
    static std::optional<Renewal> begin(spi::Held&);
    /// Whether its answer is written by now.
    bool answered(boot_clock::time_point now);
    boot_clock::time_point deadline() const noexcept { return held_->deadline; }

private:
    Renewal(spi::Held& h, QueueNodePtr p, SessionPtr s)
        : held_(&h), place_(std::move(p)), session_(std::move(s)) {}
    /// A downgrade, if there is to be one, has been answered.
    bool as_asked() const noexcept { return held_->units.mode != Mode::shared || place_->reads(); }
    void ask_for_proof();
    bool on_time(boot_clock::time_point now) const;
    void renewed();
    void not_renewed();

    spi::Held* held_;
    QueueNodePtr place_;
    SessionPtr session_;
    bool at_once_ = false;    ///< by a write of its own
    std::uint64_t need_ = 0;  ///< the heartbeat that proves it
};

}  // namespace holdfast::zookeeper
