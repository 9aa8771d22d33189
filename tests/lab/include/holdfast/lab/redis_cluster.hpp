// A real Redis Cluster: primaries, each with its replicas, on free loopback ports.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/redis_server.hpp"

namespace holdfast::lab {

struct RedisClusterOptions {
    RedisOptions server;        ///< of each server; its config comes before what a cluster needs
    std::size_t primaries = 3;  ///< with about as many slots each
    std::size_t spare = 0;      ///< further ones, without slots
    std::size_t replicas = 0;   ///< of each primary with slots
    std::chrono::milliseconds node_timeout{2000};
};

/// Servers 0 to primaries - 1 have the slots, then come the spare ones, then the first replica of
/// each primary, and so on. They keep what they know of each other over a restart, with Data::fresh
/// as well.
///
/// Thread safety: as RedisServer; what acts on the cluster from one thread at a time.
class RedisCluster {
public:
    static constexpr unsigned slots = 16384;

    /// Ready when each server says that the cluster is, and all replicas are connected. Errors:
    /// LabError, as RedisServer::start. Blocking: some 2 s.
    [[nodiscard]] static RedisCluster start(RedisClusterOptions options = {});
    RedisCluster(RedisCluster&&) noexcept;
    RedisCluster& operator=(RedisCluster&&) noexcept;
    ~RedisCluster();

    /// `redis+cluster://127.0.0.1:PORT,...`, or `rediss+cluster://...` with TLS, of all servers
    /// that began as primaries with slots; another address of this machine may stand in its place,
    /// such as that of proxies.
    [[nodiscard]] std::string url(const std::string& host = "127.0.0.1") const;

    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] RedisServer& server(std::size_t i);
    /// The first replica of a primary, as it began.
    [[nodiscard]] std::size_t replica_of(std::size_t primary) const noexcept;

    [[nodiscard]] unsigned slot_of(const std::string& key) const;
    /// Which server has a slot, as server `witness` says. Errors: LabError when none has it.
    [[nodiscard]] std::size_t owner(unsigned slot, std::size_t witness = 0) const;
    /// One command at the server that has the key.
    Reply cli(const std::string& key, const std::vector<std::string>& arguments) const;

    /// The two steps of moving a slot: from the first on it is being moved; the second moves its
    /// keys, and gives it to `to`. Errors: LabError when a server refuses.
    void begin_move(unsigned slot, std::size_t to);
    void end_move(unsigned slot, std::size_t to);
    void move(unsigned slot, std::size_t to) {
        begin_move(slot, to);
        end_move(slot, to);
    }

    /// Each server that answers says that the cluster is ready, and which primaries it has.
    [[nodiscard]] bool settled() const;
    /// Waits for settled(). Errors: LabError after `cap`.
    void wait_settled(std::chrono::nanoseconds cap = std::chrono::seconds(60)) const;

private:
    class Impl;
    explicit RedisCluster(std::unique_ptr<Impl>) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
