// What the blocking connections to database servers share: when they are made, how long that may
// take, and when they are no longer to be trusted. An engine connects to one address, and runs
// statements.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server.hpp"

namespace holdfast::sql {

/// Used by one thread at a time; opened on first use, and closed at the first sign that it is not
/// to be trusted.
class ServerConnection {
public:
    /// Whether the host's name may be looked up. Callers' threads, which have no time for that,
    /// have spare connections.
    enum class Resolve : bool { no, yes };
    ServerConnection(const ServerConnection&) = delete;
    ServerConnection& operator=(const ServerConnection&) = delete;

    /// For the common worker and lane: nobody else ever uses it, so nothing is locked.
    [[nodiscard]] static std::unique_lock<std::mutex> use() { return {}; }
    /// Connects unless connected, and makes the table on demand. Errors: connecting, where that is
    /// not done by `deadline`; it is then done for the next call, unless only this caller uses it.
    spi::Failure open(boot_clock::time_point deadline);
    void close() noexcept;
    /// False once this client has found that another server took over from the one it leads to.
    bool current() const noexcept { return generation_ == server_.hosts.generation(); }

protected:
    /// How long making a connection may take.
    struct Limits {
        boot_clock::time_point silence;  ///< until when a server may say nothing at all
        boot_clock::time_point end;
    };

    ServerConnection(Server&, Resolve);
    virtual ~ServerConnection() = default;

    virtual bool connected() const noexcept = 0;
    /// Whether the server has said something that nobody asked for, so that it is not usable.
    virtual bool spoken_to() const noexcept = 0;
    virtual void drop() noexcept = 0;
    /// Why a spare connection is not made.
    virtual spi::Failure no_spare() const { return {}; }
    /// Connects to a host by its address, which is empty for the Unix socket, and calls
    /// guard().watch().
    virtual spi::Failure connect_to(const spi::Endpoint& host, const std::string& address,
                                    Server::Opening&, const Limits&) = 0;
    /// Asks the server what it is, whether it takes writes, and makes the table. Errors: also
    /// std::exception.
    virtual spi::Failure introduce(boot_clock::time_point deadline) = 0;
    /// What it said then of itself: see Destination.
    virtual std::string incarnation() const { return {}; }
    /// Whether each statement is to be one message. To prepare one takes another round trip, for
    /// which a client that ends has no time, nor may a request to a server to which it took long to
    /// connect: that would end the connection.
    bool one_message_each() const noexcept { return slow_ || server_.ending(); }
    /// Connects to that host, without introduce(). Returns by which address.
    spi::Answer<std::string> connect_host(std::size_t host, Server::Opening&, const Limits&,
                                          std::optional<boot_clock::time_point> look_up);

    /// Runs `exchange`, which writes how it ended into `reply`. What the watchdog ended is in
    /// doubt. Closes the connection unless it ended in time, or in an error that left nothing
    /// behind: even after an answer it may be closed. Then the next one fails.
    template <class F>
    void exchange_until(boot_clock::time_point deadline, Reply& reply, F&& exchange);
    /// True, and the reply in doubt, if this client found another server while this one answered.
    bool overtaken(Reply&);
    Watchdog::Guard& guard() noexcept { return guard_; }
    const Watchdog::Guard& guard() const noexcept { return guard_; }

private:
    /// Tries the hosts until one serves.
    spi::Failure find(Server::Opening&, boot_clock::time_point until,
                      std::optional<boot_clock::time_point> look_up);
    spi::Failure try_host(std::size_t host, Server::Opening&, const Limits&,
                          std::optional<boot_clock::time_point> look_up, unsigned began);

    Server& server_;
    const Resolve resolve_;
    Watchdog::Guard guard_;
    boot_clock::time_point used_;
    unsigned generation_ = 0;  // of Hosts
    bool slow_ = false;
    int patience_ = 1;  ///< times the usual time for the next connect
};

template <class F>
void ServerConnection::exchange_until(boot_clock::time_point deadline, Reply& reply, F&& exchange) {
    // The one before was answered just in time, and the socket is gone.
    if (!connected()) {
        reply.failed = server_.errors.make(Error::closed);
        return;
    }
    if (!guard_.begin(deadline)) {
        guard_.end();
        reply.failed = make_error_code(errc::closed);
        return;
    }
    server_.requests.fetch_add(1, std::memory_order_relaxed);
    exchange();
    const bool overdue = guard_.end();
    if (overdue && reply.failed) {
        reply.failed = server_.errors.make(Error::no_answer);
        reply.nothing_done = false;
    }
    // Perhaps answered just in time, but the socket is gone.
    if (overdue || (reply.failed && !reply.nothing_done)) close();
}

/// The beginning of a server's words that people need.
std::string first_words(std::string_view message);

}  // namespace holdfast::sql
