// The servers of a Redis Cluster that a client uses: each a backend of its own, and which of them
// has which slot.
#pragma once
#include <array>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../backend.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "slots.hpp"

namespace holdfast::redis {

/// One server. It stays where it is for as long as the client, since calls under way use it.
struct Node {
    spi::Endpoint endpoint;
    std::string display;  ///< "redis+cluster://10.0.0.1:6379"
    std::unique_ptr<RedisBackend> backend;
    bool primary = false;   ///< it has slots
    bool asked = false;     ///< for the slots, and has not answered yet
    bool answered = false;  ///< the last time
};

/// Engine thread only, but for of() and requests().
///
/// The slots are asked of all known primaries at once, whenever one of them redirects a request or
/// cannot be reached: then again and again, until each slot has a server that answers, for as long
/// as something is asked of the cluster. What most of them say counts, and of it the highest epoch.
class Members final : public std::enable_shared_from_this<Members> {
public:
    using Make =
        std::function<std::unique_ptr<RedisBackend>(const spi::Settings&, std::shared_ptr<Member>)>;
    /// The slots of `from` are another's now, and the connections to it are closed.
    using Moved = std::function<void(const std::string& from, const std::string& to)>;
    Members(asio::any_io_executor, const spi::Settings&, Make, Moved);

    /// The server of a slot; null: none is known. Any thread.
    Node* of(Slot slot) const noexcept { return slots_[slot].load(std::memory_order_acquire); }
    /// A server by its address.
    Node& at(const spi::Endpoint&);
    /// Asks the servers of the URL if nothing is known yet; ends at `deadline`.
    asio::awaitable<spi::Failure> ready(boot_clock::time_point deadline);
    /// Every server that was ever used.
    const std::vector<std::unique_ptr<Node>>& all() const noexcept { return nodes_; }
    /// Sent to all of them. Any thread.
    std::uint64_t requests() const;
    /// Those that are connected, for people. Any thread.
    std::string serving() const;

    /// Begins to look for the slots' servers, if that is not under way.
    void look();
    /// What it means that this server cannot be used.
    spi::Failure judged(const Node&, spi::Failure);
    /// MOVED.
    void put(Slot, const spi::Endpoint&);
    void close() noexcept;

private:
    struct Round;
    asio::awaitable<void> watch();
    asio::awaitable<void> ask_all(boot_clock::time_point deadline);
    asio::awaitable<void> ask(Node&, std::shared_ptr<Round>, boot_clock::time_point deadline);
    void take(const SlotTable&);
    bool settled() const;

    asio::any_io_executor executor_;
    const spi::Settings settings_;
    const Make make_;
    const Moved moved_;
    const milliseconds ttl_, patience_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Node>> nodes_;  // under the mutex where another thread may look
    std::array<std::atomic<Node*>, slot_count> slots_{};

    spi::net::Gate gate_;
    asio::steady_timer pause_;
    boot_clock::time_point decided_;  // most had answered
    boot_clock::time_point wanted_until_;
    spi::Failure failed_;
    std::vector<spi::Endpoint> named_;  // by too few, the last time
    std::size_t rounds_ = 0;
    bool known_ = false, whole_ = false, few_ = true;
    bool watching_ = false, again_ = false, closed_ = false;
};

}  // namespace holdfast::redis
