#include "holdfast/lab/postgres_servers.hpp"

#include <fmt/format.h>

#include <optional>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab {
namespace {

/// How much a standby has of what its primary wrote, in bytes.
long long received(const PostgresServer& standby) {
    return std::stoll(
        standby.value("SELECT (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - "
                      "'0/0')::bigint"));
}

}  // namespace

PostgresServers PostgresServers::start(PostgresServersOptions options) {
    PostgresServers all;
    auto& config = options.server.config;
    // Or a standby looks for its new primary every five seconds.
    config.emplace_back("wal_retrieve_retry_interval = '100ms'");
    config.emplace_back("max_connections = 200");
    // A checkpoint, as a promotion and a base backup make, removes what no standby asks for now.
    config.emplace_back("wal_keep_size = '256MB'");
    if (options.synchronous) config.emplace_back("synchronous_standby_names = 'ANY 1 (*)'");
    all.servers_.push_back(PostgresServer::start(options.server));
    while (all.servers_.size() < options.count)
        all.servers_.push_back(all.servers_.front().standby());
    return all;
}

std::string PostgresServers::url() const {
    std::string hosts;
    for (const auto& s : servers_)
        hosts += fmt::format("{}127.0.0.1:{}", hosts.empty() ? "" : ",", s.port());
    return "postgresql://holdfast@" + hosts + "/holdfast";
}

void PostgresServers::hold_back() {
    for (std::size_t i = 0; i < servers_.size(); ++i)
        if (i != primary_ && servers_[i].alive()) servers_[i].stream_from(nullptr);
}

std::size_t PostgresServers::promote_another() {
    // What a dead primary sent may still be on its way into a standby, and one that is behind the
    // others is one that they cannot follow.
    hold_back();
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        if (i == primary_ || !servers_[i].alive()) continue;
        if (!best || received(servers_[i]) > received(servers_[*best])) best = i;
    }
    if (!best) throw LabError("no standby is alive to be promoted");
    servers_[*best].promote();
    for (std::size_t i = 0; i < servers_.size(); ++i)
        if (i != primary_ && i != *best && servers_[i].alive())
            servers_[i].stream_from(&servers_[*best]);
    return primary_ = *best;
}

void PostgresServers::fail_over() {
    const std::size_t old = primary_;
    servers_[old].kill();
    promote_another();
    servers_[old].follow(servers_[primary_]);
}

}  // namespace holdfast::lab
