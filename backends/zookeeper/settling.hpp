// What an attempt at a place in line comes to: an outcome, or the step to take before one.
#pragma once
#include <optional>

#include "session.hpp"

namespace holdfast::zookeeper {

/// One attempt from the request for its node to its outcome. It sends no more than its session does
/// for it, and never waits: ZooKeeperBackend::settle() takes the steps that do.
class Settling {
public:
    enum class Step : std::uint8_t {
        again,          ///< something has changed: next() has another step
        done,           ///< the outcome is written
        leave,          ///< it is; first nothing of the place may be left
        leave_folders,  ///< the same, and the folders of permits are removed
        ask_strangers,  ///< whether a stranger beside it belongs to a client; then agreed()
        agree,          ///< whether its node counts beside those of the other kind; then agreed()
        grant,          ///< nothing is ahead of it
        reconnect,      ///< wait for a connection, but not beyond `until`; then reconnected()
        wait,           ///< for a change of `at`, but not beyond `until`
    };

    Settling(spi::Attempt* attempt, QueueNodePtr p)
        : a(attempt), place(std::move(p)), session(place->session.lock()) {}
    Step next();
    Step agreed(const spi::Failure&);
    Step reconnected(const spi::Failure&);

    spi::Attempt* const a;
    QueueNodePtr place;
    const SessionPtr session;
    QueueNodePtr at;  ///< the place in question: for permits first the one in the line for them
    boot_clock::time_point until;

private:
    // Each writes the outcome, or returns the step before it; nullopt: this is not the case.
    using Exit = std::optional<Step>;
    Exit refused();
    Exit over();
    Exit session_refused();
    Exit beside_others();
    Exit let_in();
    Exit blocked();
    Exit late();
    /// Until when its answer is awaited.
    void set_time();
    Step fail(const spi::Failure&);
    bool begun_ = false;  ///< its request was sent
};

}  // namespace holdfast::zookeeper
