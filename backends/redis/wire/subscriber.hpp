// The second connection of a client that waits: on it the server says which waiter was handed a
// lock. Messages may be lost without harm, since every waiter also looks by itself.
#pragma once
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "link.hpp"

namespace holdfast::redis {

/// Engine thread only. Reconnects by itself while `wanted()` says that somebody waits.
class Subscriber : public std::enable_shared_from_this<Subscriber> {
public:
    struct Ear {
        std::function<void(std::string_view payload)> message;
        std::function<void()> again;   ///< subscribed, and messages may have been missed before
        std::function<bool()> wanted;  ///< somebody waits
        std::function<void(std::string)> refused;  ///< the server does not let us subscribe
    };
    Subscriber(asio::any_io_executor, std::shared_ptr<Shared>, tls::Context*, Ear);

    /// Returns when the server has confirmed the subscription, has refused it, or at `deadline`; at
    /// once while it is being made again after it failed. Asks a server that has said nothing for a
    /// second whether it still has the subscription, and makes it again without an answer.
    asio::awaitable<void> ready(boot_clock::time_point deadline);
    /// This server is not the right one any more.
    void reconnect() noexcept;
    /// What the server publishes to; empty where it does not let us subscribe.
    std::string_view channel() const noexcept;
    void close() noexcept;

private:
    enum class Ended { lost, refused };
    asio::awaitable<void> run();
    asio::awaitable<Ended> listen(std::shared_ptr<Link> link);
    void send(const std::shared_ptr<Link>&, const Command&);
    void probe();
    void heard() noexcept;

    asio::any_io_executor executor_;
    std::shared_ptr<Shared> shared_;
    tls::Context* tls_;
    Ear ear_;
    const std::string channel_;
    boot_clock::time_point refused_until_;
    std::shared_ptr<Link> link_;
    asio::steady_timer pause_, silence_;
    boot_clock::time_point heard_;  ///< the server's last word
    bool probing_ = false;
    spi::net::Gate gate_;
    std::array<char, 16384> in_{};
    bool running_ = false, subscribed_ = false, ever_ = false, closed_ = false;
    bool failed_ = false;  // and has not worked since
    bool warned_ = false;
};

}  // namespace holdfast::redis
