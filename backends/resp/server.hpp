// One server, as all connections of one client share it: where it is, its clock, what was sent.
#pragma once
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../tls/options.hpp"
#include "holdfast/spi/settings.hpp"
#include "where.hpp"

namespace holdfast::resp {

struct Reply;
struct Target;

/// Further commands at each connect, and the judgement of their replies before the connection is
/// used. Called by the engine's thread and by those of lanes.
class Greeting {
public:
    virtual ~Greeting() = default;
    /// Appends commands; returns their number.
    virtual unsigned ask(const Target&, std::string& out) = 0;
    /// An error ends the connection.
    virtual spi::Failure answered(unsigned which, const Reply&) = 0;
};

/// The server's clock as seen from here. Requests carry a deadline in the server's own time, so
/// that a late one does nothing.
///
/// Thread-safe. Read on receipt of an answer, so the offset is never above the true one: a deadline
/// computed with it is never later than intended.
class ClockOffset {
public:
    void sample(std::int64_t server_us, boot_clock::time_point received) noexcept {
        const std::int64_t offset = server_us - us(received);
        offset_us_.store(offset, std::memory_order_relaxed);
        auto most = most_us_.load(std::memory_order_relaxed);
        while (offset > most && !most_us_.compare_exchange_weak(most, offset)) {
        }
    }
    std::int64_t server_us(boot_clock::time_point t) const noexcept {
        return offset_us_.load(std::memory_order_relaxed) + us(t);
    }
    std::int64_t server_ms(boot_clock::time_point t) const noexcept { return server_us(t) / 1000; }
    /// At least every earlier result of server_ms(t): the end of what was sent with it.
    std::int64_t latest_server_ms(boot_clock::time_point t) const noexcept {
        return (most_us_.load(std::memory_order_relaxed) + us(t)) / 1000;
    }

private:
    static std::int64_t us(boot_clock::time_point t) noexcept {
        return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
    }
    std::atomic<std::int64_t> offset_us_{0};
    std::atomic<std::int64_t> most_us_{std::numeric_limits<std::int64_t>::min() / 2};
};

/// Where it is, and how a connection introduces itself.
struct Target {
    std::string host;
    std::uint16_t port = 0;  ///< 0: where it is, is asked of other servers
    long long database = 0;
    std::string user;
    spi::Secret password;
    tls::Options tls;
    /// For people: what to write for TLS, and, where that may be meant, what for none.
    std::string secure, clear;
    std::string display;      ///< "redis://cache1:6379/2"
    std::string client_name;  ///< of its connections, for the server's operators
    bool asks_time = false;   ///< a connection begins with a question for the server's time

    Target() = default;
    /// The settings of one server, with the scheme redis or rediss.
    Target(const spi::Settings&, bool asks_time);
};

/// "rediss+cluster" for "redis+cluster" and for itself.
std::string secure_scheme(std::string_view scheme);

/// For people, behind what happened: a server that ends or keeps silent in the handshake may have
/// no TLS.
std::string as_without_tls(const Target&);

/// The option for Target::client_name, and what it may be: the server refuses other characters.
const spi::OptionSpec& client_name_option();
void check_client_name(const spi::Settings&, Diagnostics&);

/// The number of the database that a URL's path names; none: the path is something else.
std::optional<long long> database_of(std::string_view path) noexcept;

struct Server {
    explicit Server(Target);

    const Target target;
    ClockOffset clock;
    std::atomic<std::uint64_t> requests{0};  ///< commands sent so far
    Greeting* greeting = nullptr;            ///< outlives every connection; may be null
    std::shared_ptr<Where> where;            ///< default: the target's host
    /// The host's name leads to another address now; moved() was called. On the thread that
    /// connects; may be empty.
    std::function<void(const std::string& from, const std::string& to)> on_move;

    struct Reached {
        tcp::endpoint endpoint;
        std::string host;  ///< for the certificate
        std::string text;  ///< for people
    };
    /// Where the server was last reached, or the host itself if it is an address. Thread-safe.
    std::optional<Reached> reached() const;
    /// The same for lanes, which must not wait for a name server: nothing, while the host's name
    /// may mean another address. Thread-safe.
    std::optional<Reached> reached_for_lane() const;
    /// A connection there has ended: what the host's name means is not certain until the engine has
    /// looked it up, or sees that its own connection works. Thread-safe.
    void doubt() noexcept { doubted_ = named_; }
    void trust() noexcept {
        if (doubted_.load(std::memory_order_relaxed)) doubted_ = false;
    }
    /// A connection there is of use. Another address than before is a move, and sets
    /// Location::move. Ignored if the server has moved since that place was found.
    void reached(const tcp::endpoint&, Location&);
    /// Where that is, for people: "cache1:6379 (10.0.0.1)". Empty: nowhere yet.
    std::string serving() const;

    /// How often the server has moved: a connection of an earlier count leads to another server.
    /// Thread-safe.
    unsigned moves() const noexcept { return moves_.load(std::memory_order_acquire); }
    /// It is another server from here on. Thread-safe.
    void moved();

    /// Since when it is certain that the server of this count of moves was the right one; the
    /// beginning of time: it is not. Thread-safe.
    boot_clock::time_point confirmed(unsigned move) const;
    void confirm(boot_clock::time_point since);

private:
    void move();  // under the mutex

    mutable std::mutex mutex_;
    std::optional<Reached> reached_;
    const bool named_;  ///< the host is no address
    std::atomic<bool> doubted_{false};
    boot_clock::time_point confirmed_ = boot_clock::time_point::min();
    std::atomic<unsigned> moves_{0};
};

/// Warnings for an operator: what an attacker on the network can read or fake.
std::vector<std::string> exposures(const Target&);

}  // namespace holdfast::resp
