// The engine's one command connection. Requests of all locks go over it one after the other, and
// are answered in that order.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../resp/pipeline.hpp"
#include "../resp/replica.hpp"
#include "shared.hpp"

namespace holdfast::redis {

/// Engine thread only. A request that is not answered in time fails alone, and its late answer is
/// dropped. If no other request waits, or nothing was answered for a second, the connection is
/// closed; the next request opens a new one.
class Connection final : public Pipeline::Asker, public std::enable_shared_from_this<Connection> {
public:
    Connection(asio::any_io_executor, std::shared_ptr<Server>, tls::Context*,
               milliseconds request_timeout);

    /// Nothing to wait for: ready() would return at once.
    bool is_ready() const noexcept { return pipeline_ && !retiring_; }
    /// Connects by `deadline`, or returns why not.
    asio::awaitable<spi::Failure> ready(boot_clock::time_point deadline);

    struct Answer {
        spi::Failure failed;     ///< set: no answer
        bool sent = false;       ///< the server may have seen it
        std::uint64_t link = 0;  ///< number of the connection that it used
        unsigned move = 0;       ///< the count of the server's moves when it was sent
        std::vector<Reply> replies;
    };
    /// Sends `commands` commands at once and waits for their replies. With `link`: by that
    /// connection or not at all.
    asio::awaitable<Answer> exchange(std::string bytes, std::size_t commands,
                                     boot_clock::time_point deadline, std::uint64_t link = 0);
    /// Makes the next request use a new connection, since this server is the wrong one by now.
    /// Requests under way are still answered. False: it did so less than a second ago, and stays.
    bool retire();
    /// The server has moved: closes the connection to where it was. Requests under way end with an
    /// error, since what comes from there counts no more.
    void leave() noexcept;
    /// Closes for good: requests under way end with an error.
    void close() noexcept;

private:
    struct Pending {
        std::size_t commands = 0, answered = 0;
        boot_clock::time_point sent, deadline;
        bool told = false;  // timed out: its late answer is dropped
        Answer answer;
        // Made in place: Boost 1.81 cannot move-assign one.
        std::optional<asio::any_completion_handler<void()>> complete;
    };
    asio::awaitable<void> connect(boot_clock::time_point deadline);
    void heard() override { heard_ = boot_clock::now(); }
    bool take(Reply&) override;
    void settled() override;
    void broke(Error why) override { fail(make(why)); }
    void fail(error_code why);
    void tell(Pending&, error_code why);
    void look_at_time();
    void watch(boot_clock::time_point deadline);
    static asio::awaitable<void> completion(Pending&);

    asio::any_io_executor executor_;
    std::shared_ptr<Server> server_;
    tls::Context* tls_;
    const milliseconds patience_;         // where nobody waits
    boot_clock::time_point heard_;        // when the server last sent anything
    std::shared_ptr<Pipeline> pipeline_;  // when connected
    std::shared_ptr<Link> opening_;       // while connecting
    spi::Failure last_failure_;
    unsigned failures_ = 0;
    std::uint64_t links_ = 0;  // made so far
    LeftReplica left_;
    spi::net::Gate gate_;  // for the connection
    std::deque<std::shared_ptr<Pending>> pending_;
    std::vector<std::shared_ptr<Pending>>
        complete_;  // have all replies, and go on when all are read
    // One timer for all of them. It keeps running when they are answered, so that a system call is
    // needed only now and then.
    asio::steady_timer watch_;
    boot_clock::time_point watched_ = boot_clock::time_point::max();
    bool closed_ = false, retiring_ = false;
};

}  // namespace holdfast::redis
