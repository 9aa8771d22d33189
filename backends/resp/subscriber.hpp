// The second connection of a client with waiters: on it the server says which waiter was handed a
// lock, or is to ask for it. Lost messages do no harm, since every waiter also polls.
#pragma once
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "link.hpp"

namespace holdfast::resp {

/// A new channel of this client. Random, so that nobody else listens on it or can guess it.
std::string make_channel();

/// Engine thread only. Reconnects by itself while `wanted()` says that a caller waits.
class Subscriber : public std::enable_shared_from_this<Subscriber> {
public:
    struct Listener {
        std::function<void(std::string_view payload)> message;
        std::function<void()> again;            ///< subscribed, after messages may have been missed
        std::function<bool()> wanted;           ///< a caller waits
        std::function<void(std::string)> warn;  ///< the server refuses it: why, and what helps
    };
    Subscriber(asio::any_io_executor, std::shared_ptr<Server>, tls::Context*, std::string channel,
               Listener);

    /// A caller is about to wait: connects. Asks a server that was silent for a second whether it
    /// still has the subscription; without an answer, subscribes anew.
    void start();
    /// The server has confirmed it, and the connection has not ended since.
    bool subscribed() const noexcept { return subscribed_; }
    /// start(), and returns when the server has confirmed or refused the subscription, or at
    /// `deadline`; at once while it is being renewed after a failure.
    asio::awaitable<void> ready(boot_clock::time_point deadline);
    /// Reconnects: this server is the wrong one by now.
    void reconnect() noexcept;
    /// The server has moved: the same, unless it connects there already.
    void leave() noexcept;
    /// The channel that the server publishes to; empty where it refuses the subscription.
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
    std::shared_ptr<Server> server_;
    tls::Context* tls_;
    Listener listener_;
    const std::string channel_;
    boot_clock::time_point refused_until_;
    std::shared_ptr<Link> link_;
    asio::steady_timer pause_, silence_;
    boot_clock::time_point heard_;  ///< when the server last sent anything
    bool probing_ = false;
    spi::net::Gate gate_;
    std::array<char, 16384> in_{};
    bool running_ = false, subscribed_ = false, ever_ = false, closed_ = false;
    bool failed_ = false;  // and has not worked since
    bool warned_ = false;
};

}  // namespace holdfast::resp
