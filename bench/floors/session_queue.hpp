// The raw floor for a hand-off by a database: sessions that wait for one of the server's own locks.
// The server itself wakes the next one; nothing is written.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "measure/hand_offs.hpp"

namespace holdfast::bench {

/// A bare connection that can ask for the lock without waiting for the answer. Errors: SelfCheck.
class LockSession {
public:
    virtual ~LockSession() = default;
    virtual int socket() const = 0;
    virtual void send_lock() = 0;
    virtual void send_unlock() = 0;
    /// When the socket is readable: whether the server has done it; empty: not all of it is here.
    virtual std::optional<bool> answer() = 0;
};

/// So many sessions, all on one thread: each locks, unlocks as soon as that is answered, and locks
/// again. One thread at a time.
class SessionQueue {
public:
    /// Errors: SelfCheck, also when the server takes no more connections.
    SessionQueue(std::size_t sessions, const std::function<std::unique_ptr<LockSession>()>&);
    ~SessionQueue();
    SessionQueue(const SessionQueue&) = delete;
    SessionQueue& operator=(const SessionQueue&) = delete;
    /// Lets them go on for so long. Errors: SelfCheck.
    HandOffs run_for(double seconds);

private:
    struct One {
        One(boost::asio::io_context& loop, std::unique_ptr<LockSession> its)
            : session(std::move(its)), readable(loop, session->socket()) {}
        std::unique_ptr<LockSession> session;
        boost::asio::posix::stream_descriptor readable;
        bool holds = false;
    };
    void lock(One&);
    void await(One&);
    void take(One&);

    boost::asio::io_context loop_;
    std::deque<One> all_;
    Turns turns_;
    HandOffs now_;
};

}  // namespace holdfast::bench
