// Deadlines for blocking calls: a client library waits for as long as TCP lets it, and TCP does not
// notice a server that hangs. One timer on the engine serves all connections of a client. It shuts
// down the socket of an overdue call, whose thread then returns with an error.
#pragma once
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "holdfast/clock.hpp"

namespace holdfast::sql {

class Watchdog : public std::enable_shared_from_this<Watchdog> {
public:
    /// One connection's part. Used by its thread, and checked by the watchdog.
    class Guard {
    public:
        /// `spare`: end_spares() may end the connection while it is idle.
        Guard(std::shared_ptr<Watchdog>, bool spare);
        ~Guard();
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        /// The socket to shut down; -1: none. Kept as a duplicate, since the client library may
        /// give the number back to the system, which then reuses it.
        void watch(int socket);
        int socket() const noexcept { return socket_; }
        /// Whether the server has ended the connection, whatever is left to read: under TLS that
        /// may be a farewell, which looks like an answer.
        bool ended() const noexcept;
        /// The next byte of what nobody has read yet, if there is something.
        std::optional<char> unread() const noexcept;
        /// A call begins, which must end by then. False: the client is closing.
        bool begin(boot_clock::time_point deadline) noexcept;
        /// The call has ended. True: the watchdog ended it.
        bool end() noexcept;

    private:
        friend class Watchdog;
        const std::shared_ptr<Watchdog> dog_;
        const bool spare_;
        std::atomic<std::int64_t> deadline_{never};
        std::mutex mutex_;
        int socket_ = -1;
        std::atomic<bool> bitten_{false};
    };

    explicit Watchdog(const boost::asio::any_io_executor& engine) : timer_(std::in_place, engine) {}
    /// Ends every call under way, and refuses later ones. Afterwards the engine may go away. Engine
    /// thread.
    void close() noexcept;
    /// Ends idle spare connections, so that the server has some for others. Any thread.
    void end_spares() noexcept;
    bool closing() const noexcept { return closing_; }

private:
    static constexpr std::int64_t never = INT64_MAX;
    void sooner();
    void look();
    std::optional<boost::asio::steady_timer> timer_;  // engine thread, and under mutex_ to post
    std::atomic<std::int64_t> next_{never};           // when it looks again
    std::atomic<bool> closing_{false};
    std::mutex mutex_;
    std::vector<Guard*> guards_;
};

}  // namespace holdfast::sql
