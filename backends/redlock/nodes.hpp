// The nodes of one deployment, shared by all connections of one client: which may vote, which are
// down, and whether they are as configured.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../resp/codec.hpp"
#include "../resp/server.hpp"
#include "options.hpp"
#include "requests.hpp"
#include "voters.hpp"

namespace holdfast::redlock {

namespace asio = boost::asio;
class NodeSet;

/// One Redis server. Thread-safe; stable address.
class Node final : public resp::Greeting {
public:
    Node(const spi::Settings&, const spi::Endpoint&, NodeSet&, unsigned index);

    const unsigned index;
    const std::shared_ptr<resp::Server> server;
    /// "127.0.0.1:7001"
    const std::string where;

    /// It was silent or unreachable when last tried, and counts as missing at once.
    bool down() const noexcept { return down_.load(std::memory_order_relaxed); }
    void set_down(const spi::Failure&);
    void set_up() noexcept { down_.store(false, std::memory_order_relaxed); }
    /// It answered later than the others: for a while no round waits for it.
    bool slow(boot_clock::time_point now) const noexcept {
        return now < slow_until_.load(std::memory_order_relaxed);
    }
    void set_slow(boot_clock::time_point now) noexcept {
        slow_until_.store(now + std::chrono::seconds(1), std::memory_order_relaxed);
    }
    /// It may vote: it has been up for longer than any lease from before its start can last.
    bool votes(boot_clock::time_point now) const noexcept {
        return now >= votes_from_.load(std::memory_order_relaxed);
    }
    bool met() const noexcept { return met_.load(std::memory_order_acquire); }
    /// Why it does not answer, for people.
    error_code why() const;
    std::string words(boot_clock::time_point now) const;

    // --- resp::Greeting
    unsigned ask(const resp::Target&, std::string& out) override;
    spi::Failure answered(unsigned which, const Reply&) override;

private:
    friend class NodeSet;
    spi::Failure introduced(const Reply& info);
    spi::Failure marked(const Reply&);

    NodeSet& set_;
    std::atomic<bool> down_{false}, met_{false};
    std::atomic<boot_clock::time_point> votes_from_{boot_clock::time_point::min()},
        slow_until_{boot_clock::time_point::min()};
    mutable std::mutex mutex_;
    spi::Failure why_;
    // Guarded by the mutex of the set.
    std::string run_id_, foreign_mark_;
};

/// Thread-safe.
class NodeSet final : public Voters {
public:
    explicit NodeSet(const spi::Settings&);

    const Options options;
    std::vector<std::unique_ptr<Node>> nodes;
    /// Called on the engine thread when a majority is up again. Set it before any line is opened.
    std::function<void()> majority_back = [] {};
    /// The same when a node has turned out to be a replica.
    std::function<void(std::size_t)> left_replica = [](std::size_t) {};
    /// Number of nodes not known to be down.
    std::size_t up() const noexcept;
    /// The nodes' time in us: middle() of the known clocks; 0 while those are no majority.
    std::uint64_t time_us(boot_clock::time_point now) const;
    std::uint64_t requests() const noexcept;
    /// The nodes that are reached, for people.
    std::string serving() const;

    // --- Voters
    std::size_t size() const noexcept override { return nodes.size(); }
    bool votes(std::size_t node, boot_clock::time_point now) const noexcept override {
        return nodes[node]->votes(now);
    }
    bool answers() const noexcept override;
    spi::Failure refused() const override;
    std::uint64_t propose(boot_clock::time_point now) const override;
    void saw(std::uint64_t token) noexcept override;
    const std::string& where(std::size_t node) const noexcept override {
        return nodes[node]->where;
    }
    std::string trouble(std::size_t node, boot_clock::time_point now) const override;

    const std::string mark_key;  ///< where each node keeps what all its clients must agree on
    const std::string mark;      ///< max_ttl, durable, and the name of the set of nodes

private:
    friend class Node;
    void judge();

    mutable std::mutex mutex_;
    std::atomic<bool> wrong_{false};
    spi::Failure wrong_why_;
    std::atomic<std::uint64_t> last_token_{0};
};

}  // namespace holdfast::redlock
