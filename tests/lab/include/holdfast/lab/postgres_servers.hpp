// A PostgreSQL primary with hot standbys, and what a manager of such servers (Patroni, repmgr) does
// when the primary dies.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "holdfast/lab/postgres_server.hpp"

namespace holdfast::lab {

/// How to run them. The default: a commit waits for one of two standbys.
struct PostgresServersOptions {
    std::size_t count = 3;
    bool synchronous = true;  ///< synchronous_standby_names = 'ANY 1 (*)'
    PostgresOptions server = {};
};

/// Running PostgreSQL servers. They end with this object, and also when this process dies. Servers
/// are counted from 0.
///
/// Thread safety: url() and port() from any thread; all else from one thread at a time.
class PostgresServers {
public:
    /// Starts them, the first one as the primary. Errors: as PostgresServer::start(). Blocking: a
    /// second for each.
    [[nodiscard]] static PostgresServers start(PostgresServersOptions options = {});

    [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
    /// `postgresql://holdfast@127.0.0.1:PORT,127.0.0.1:PORT/holdfast`
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::uint16_t port(std::size_t i) const { return servers_.at(i).port(); }
    [[nodiscard]] PostgresServer& server(std::size_t i) { return servers_.at(i); }
    [[nodiscard]] const PostgresServer& server(std::size_t i) const { return servers_.at(i); }
    [[nodiscard]] std::size_t primary() const noexcept { return primary_; }

    /// From now on the standbys get no changes: what is committed then is lost with the primary.
    void hold_back();
    /// Promotes the standby that has received most, lets the other ones follow it, and returns
    /// which it is. The one before it, unless it was killed, goes on and takes writes as well.
    std::size_t promote_another();
    /// Kills the primary; then promote_another(), and brings the killed one back as a standby.
    void fail_over();

private:
    PostgresServers() = default;
    std::deque<PostgresServer> servers_;
    std::size_t primary_ = 0;
};

}  // namespace holdfast::lab
