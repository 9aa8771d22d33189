// A real PostgreSQL server on a free loopback port and a Unix socket, in a directory of its own,
// run by an unprivileged user since it refuses root.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/single_server.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab {

/// How to run a PostgreSQL server. The default: anybody on the loopback interface may connect as
/// `holdfast`, who owns the database `holdfast`, and nothing is synced to the disk.
struct PostgresOptions {
    std::string password = {};  ///< of `holdfast`; empty: none is asked for
    bool tls = false;           ///< the server offers TLS, and refuses TCP clients without it
    bool fsync = false;         ///< sync to the disk, as a crash of the machine would need it
    std::vector<std::string> config = {};  ///< lines of postgresql.conf, which come last and win
    std::vector<std::pair<std::string, std::string>> environment = {};  ///< of its processes
    std::vector<int> cpus = {};  ///< processors to run on; empty: those of this process
    std::chrono::nanoseconds cap = std::chrono::seconds(60);  ///< for the start
};

/// A running PostgreSQL server.
class PostgresServer : public SqlServer {
public:
    class Impl;

    /// Makes a database cluster, starts a server on it, and returns when it answers.
    ///
    /// Errors: LabError when PostgreSQL is not installed, naming the Debian package, and when it
    /// does not answer within `options.cap`. Blocking: 2 s for the first one of a process, then
    /// some 300 ms.
    [[nodiscard]] static PostgresServer start(PostgresOptions options = {});

    /// The folder of the Unix socket.
    [[nodiscard]] std::filesystem::path socket_directory() const;

    /// A hot standby that streams from this server. Errors: as start().
    [[nodiscard]] PostgresServer standby() const;
    /// Makes a standby the primary, and returns when it takes writes.
    void promote();
    /// Ends this server, if it runs, and starts it as a hot standby of that one, with a copy of its
    /// data. Errors: as start().
    void follow(const PostgresServer& primary);
    /// A standby gets changes from that server from now on; null: from nobody. Returns when it is
    /// so.
    void stream_from(const PostgresServer* primary);

private:
    explicit PostgresServer(std::unique_ptr<Impl>) noexcept;
    Impl& impl() const noexcept;
};

/// PgBouncer, Debian's package, in front of a server.
class PgBouncer {
public:
    /// `mode`: "transaction" or "session". Errors: LabError when the package pgbouncer is missing.
    explicit PgBouncer(const PostgresServer& server, const std::string& mode = "transaction",
                       int connections = 3);
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::uint16_t port() const noexcept { return port_.number(); }
    [[nodiscard]] Process& process() noexcept { return process_; }

private:
    Process launch(const PostgresServer&, const std::string& mode, int connections) const;

    TempDir directory_;
    Port port_ = free_port();
    Process process_;
};

}  // namespace holdfast::lab
