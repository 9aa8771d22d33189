// A session's heartbeats, and what they prove of its life.
#pragma once
#include <boost/asio/steady_timer.hpp>

#include "session_part.hpp"
#include "validity.hpp"

namespace holdfast::zookeeper {

/// Writes to a node of its own, one write at a time. Each acknowledgement opens Shared::beats.
class Heartbeat : public SessionPart {
public:
    Heartbeat(Session&, Shared&, Handle&, milliseconds lock_delay);

    // --- what is known of the session's life
    /// The longest lease: what the servers grant the session, less lock_delay.
    milliseconds lease_time() const noexcept { return handle_.timeout() - lock_delay_; }
    /// The session was created, so something is proved.
    bool proved() const noexcept { return validity_.base().has_value(); }
    /// The end of what is proved for leases on it. Only once something is.
    boot_clock::time_point surely_until() const;
    /// The base for a lease of that ttl, requested at `sent`: it is valid as if granted then.
    boot_clock::time_point base_for(milliseconds ttl, boot_clock::time_point sent) const;
    /// Whether as much of the session's time is proved as its heartbeats can keep proved.
    bool well_proved(boot_clock::time_point now) const;
    /// How long the heartbeat under way, if any, has been unanswered.
    boot_clock::duration unanswered_for(boot_clock::time_point now) const;

    // --- heartbeats
    std::uint64_t answered() const noexcept { return answered_; }
    /// Writes as soon as no other write is under way, instead of at the next heartbeat. Returns the
    /// number of that write.
    std::uint64_t prove();
    /// Calls Session::beat() at that time, instead of an earlier one.
    void arm(boot_clock::time_point);
    /// The same for when the next heartbeat is due, or after an interval.
    void arm_next(boot_clock::time_point now);
    /// Sends one if it is due, or gives up the connection whose server does not answer the last.
    void keep_up(boot_clock::time_point now);
    void connected();
    void disconnected();
    /// The session has ended.
    void stop();

    /// It was created by the request for this connection.
    void created() { validity_.created(handle_.connect_sent()); }
    milliseconds interval() const;

private:
    /// Time between heartbeats. After an outage the last proof is too old, and three writes must be
    /// acknowledged before the leases end, as fast as the chain allows.
    milliseconds pace(boot_clock::time_point now) const;
    bool late(boot_clock::time_point now) const;
    void send(bool chained);
    void send_now();
    void on_answer(boot_clock::time_point sent, bool chained, bool creating, int rc);
    void written(boot_clock::time_point sent);

    const milliseconds lock_delay_;
    Validity validity_;
    boost::asio::steady_timer timer_;
    const std::string beacon_;
    bool has_beacon_ = false, beating_ = false, prove_soon_ = false;
    bool behind_ = false;    ///< nothing was written since the connection broke
    bool unproved_ = false;  ///< nothing was proved since then
    std::uint64_t sent_ = 0, answered_ = 0;
    boot_clock::time_point chain_due_, beat_sent_;
};

}  // namespace holdfast::zookeeper
