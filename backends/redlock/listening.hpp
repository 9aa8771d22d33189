// The nodes' messages to this client's waiters. A node says whose turn it is as it sees it; a
// waiter asks when a majority has said so, since then a majority is free for it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../resp/subscriber.hpp"
#include "../resp/waiters.hpp"
#include "holdfast/spi/backend.hpp"
#include "nodes.hpp"

namespace holdfast::redlock {

/// Engine thread only. Lost, late and doubled messages do no harm: they are hints, and every waiter
/// also looks by itself.
class Listening {
public:
    Listening(const spi::Context&, NodeSet&, tls::Context*);
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

    std::string_view channel() const noexcept { return channel_; }
    /// It hears a majority of the nodes.
    bool works() const noexcept;
    /// Returns when it does, or at `deadline`. Does not wait again for what has not worked.
    asio::awaitable<void> ready(boot_clock::time_point deadline);
    void add(spi::Attempt&);
    void forget(std::string_view owner) { waiters_.forget(owner); }
    /// This node is the wrong one by now.
    void reconnect(std::size_t node) noexcept { nodes_[node]->reconnect(); }
    /// This node is at another address.
    void leave(std::size_t node) noexcept { nodes_[node]->leave(); }
    void close() noexcept;

private:
    void said(std::size_t node, std::string_view owner);
    void missed();

    spi::BackendEvents& events_;
    const std::string channel_;
    std::vector<std::shared_ptr<resp::Subscriber>> nodes_;
    resp::Waiters waiters_;
};

}  // namespace holdfast::redlock
