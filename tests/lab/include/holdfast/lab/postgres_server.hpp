// A real PostgreSQL server on a free loopback port and a Unix socket, in a directory of its own,
// run by an unprivileged user since it refuses root. Everything a test asks of a server is here.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/process.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/sql_rows.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// How to run a PostgreSQL server. The default: anybody on the loopback interface may connect as
/// `holdfast`, who owns the database `holdfast`, and nothing is synced to the disk.
struct PostgresOptions {
    std::string password;             ///< of `holdfast`; empty: none is asked for
    bool tls = false;                 ///< the server offers TLS, and refuses TCP clients without it
    bool fsync = false;               ///< sync to the disk, as a crash of the machine would need it
    std::vector<std::string> config;  ///< lines of postgresql.conf, which come last and win
    std::vector<std::pair<std::string, std::string>> environment = {};  ///< of its processes
    std::vector<int> cpus;  ///< processors to run on; empty: those of this process
    std::chrono::nanoseconds cap = std::chrono::seconds(60);  ///< for the start
};

/// A running PostgreSQL server. It ends with this object, and also when this process dies.
///
/// Thread safety: sql() and the addresses from any thread; the members that change the process
/// (pause ... promote) from one thread at a time.
class PostgresServer {
public:
    /// Makes a database cluster, starts a server on it, and returns when it answers.
    ///
    /// Errors: LabError when PostgreSQL is not installed, naming the Debian package, and when it
    /// does not answer within `options.cap`. Blocking: 2 s for the first one of a process, then
    /// some 300 ms.
    [[nodiscard]] static PostgresServer start(PostgresOptions options = {});

    PostgresServer(PostgresServer&&) noexcept;
    PostgresServer& operator=(PostgresServer&&) noexcept;
    ~PostgresServer();

    /// `postgresql://holdfast@127.0.0.1:PORT/holdfast`; without the password.
    [[nodiscard]] std::string url() const;
    /// The URL with the password where there is one, through `port` where it is not 0.
    [[nodiscard]] std::string url_with_password(std::uint16_t port = 0) const;
    [[nodiscard]] std::string host() const { return "127.0.0.1"; }
    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] const std::string& password() const noexcept;
    /// The certificate that a client must trust. Errors: LabError without TLS.
    [[nodiscard]] std::filesystem::path ca_file() const;
    [[nodiscard]] std::filesystem::path data_directory() const;
    /// The folder of the Unix socket.
    [[nodiscard]] std::filesystem::path socket_directory() const;
    /// What the server wrote to its log so far.
    [[nodiscard]] std::string log() const;

    [[nodiscard]] Process& process();
    [[nodiscard]] bool alive();
    void pause();   ///< SIGSTOP to the server and all its backends
    void resume();  ///< SIGCONT to all of them
    void kill();    ///< SIGKILL to all of them at once
    /// Ends the server, if it runs, and starts it again on the same port.
    void restart(Data data = Data::keep);
    /// Returns when the server answers. Errors: LabError after `cap`.
    void wait_ready(std::chrono::nanoseconds cap = default_cap);

    /// Runs SQL as the superuser, over the Unix socket, in database `holdfast`. Errors: LabError
    /// with the server's words.
    SqlRows sql(const std::string& text) const;
    /// The first column of the first row of it.
    [[nodiscard]] std::string value(const std::string& text) const;

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
    class Impl;
    explicit PostgresServer(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

/// PgBouncer, Debian's package, in front of a server.
class PgBouncer {
public:
    /// `mode`: "transaction" or "session". Errors: LabError when the package pgbouncer is missing.
    explicit PgBouncer(const PostgresServer& server, const std::string& mode = "transaction",
                       int connections = 3);
    PgBouncer(PgBouncer&&) noexcept;
    ~PgBouncer();
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] Process& process();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
