// The raw floor for a hand-off by PostgreSQL: sessions that wait for one advisory lock, by bare
// libpq. The server itself wakes the next one; nothing is written.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <string>

#include "floors/libpq.hpp"
#include "measure/hand_offs.hpp"

namespace holdfast::bench {

/// `waiters` + 1 connections, all on one thread: pg_advisory_lock, pg_advisory_unlock as soon as
/// that is answered, and again. One thread at a time.
class AdvisoryQueue {
public:
    /// Errors: SelfCheck, also when the server takes no more connections.
    AdvisoryQueue(const std::string& url, std::size_t waiters);
    ~AdvisoryQueue();
    AdvisoryQueue(const AdvisoryQueue&) = delete;
    AdvisoryQueue& operator=(const AdvisoryQueue&) = delete;
    /// Lets them go on for so long. Errors: SelfCheck.
    HandOffs run_for(double seconds);

private:
    struct One {
        One(boost::asio::io_context& loop, const std::string& url)
            : connection(url), readable(loop, PQsocket(connection.get())) {}
        Libpq connection;
        boost::asio::posix::stream_descriptor readable;
        bool holds = false;
    };
    void send(One&, const char* statement);
    void await(One&);
    void take(One&);
    void answered(One&, const std::string& value);

    boost::asio::io_context loop_;
    std::deque<One> all_;
    Turns turns_;
    HandOffs now_;
};

}  // namespace holdfast::bench
