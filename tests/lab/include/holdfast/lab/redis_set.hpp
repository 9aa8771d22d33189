// Real Redis servers that fail over: a primary, its replicas, and the Sentinels that watch them,
// each a process on a free loopback port.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"

namespace holdfast::lab {

struct RedisSetOptions {
    RedisOptions server;    ///< of each server; its config comes before what a set needs. With tls
                            ///< the Sentinels have it as well
    std::size_t count = 3;  ///< servers; the first one begins as the primary
    std::size_t sentinels = 3;
    std::chrono::milliseconds down_after{1000};
    std::chrono::milliseconds failover_timeout{10000};
    std::string sentinel_password;             ///< of the Sentinels' default user; empty: none
    std::vector<std::string> sentinel_config;  ///< further lines for each Sentinel
    /// Each server is known by the port of a proxy in front of it, to the others, to the Sentinels
    /// and so to clients.
    bool proxied = false;
};

/// Ready when all Sentinels know each other and all servers, and all replicas are connected.
///
/// Thread safety: as RedisServer; what acts on the set from one thread at a time.
class RedisSet {
public:
    static constexpr const char* name = "mymaster";  ///< of the primary at the Sentinels

    /// Errors: LabError, as RedisServer::start. Blocking: some 3 s, since Sentinels meet by
    /// messages that they send every 2 s.
    [[nodiscard]] static RedisSet start(RedisSetOptions options = {});
    RedisSet(RedisSet&&) noexcept;
    RedisSet& operator=(RedisSet&&) noexcept;
    ~RedisSet();

    /// `redis+sentinel://127.0.0.1:PORT,.../mymaster`, or `rediss+sentinel://...` with TLS.
    [[nodiscard]] std::string url() const;
    /// The same by other ports of the Sentinels, such as those of proxies.
    [[nodiscard]] std::string url(const std::vector<std::uint16_t>& sentinels) const;

    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] RedisServer& server(std::size_t i);
    /// Errors: LabError unless the set is proxied.
    [[nodiscard]] Proxy& proxy(std::size_t i);
    /// By which the others and the Sentinels know it.
    [[nodiscard]] std::uint16_t announced(std::size_t i) const;

    [[nodiscard]] const std::vector<std::uint16_t>& sentinel_ports() const noexcept;
    /// By which the Sentinels are spoken to in clear, with TLS as well.
    [[nodiscard]] const std::vector<std::uint16_t>& clear_sentinel_ports() const noexcept;
    [[nodiscard]] Process& sentinel(std::size_t i);
    Reply ask_sentinel(std::size_t i, const std::vector<std::string>& command) const;

    /// The one that Sentinel `i` names. Errors: LabError when it names none of the set.
    [[nodiscard]] std::size_t primary(std::size_t i = 0) const;
    /// All Sentinels that answer name the same one, it answers as a primary, and all other servers
    /// that answer are its connected replicas.
    [[nodiscard]] bool settled() const;
    /// Waits for settled(). Errors: LabError after `cap`.
    void wait_settled(std::chrono::nanoseconds cap = std::chrono::seconds(60)) const;

    /// `SENTINEL FAILOVER` at Sentinel `i`, again and again until it is accepted. Returns the
    /// former primary, at once.
    std::size_t fail_over(std::size_t i = 0);
    /// Waits until so many Sentinels name another primary. What fail_over() has asked for is asked
    /// again when the Sentinels have given it up. Errors: LabError after `cap`.
    void wait_replaced(std::size_t former, std::chrono::nanoseconds cap = std::chrono::seconds(60),
                       std::size_t sentinels = 1);

private:
    class Impl;
    explicit RedisSet(std::unique_ptr<Impl>) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
