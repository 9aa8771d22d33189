// A real MariaDB server on a free loopback port and a Unix socket, in a directory of its own, run
// by an unprivileged user. Everything a test asks of a server is here.
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

/// How to run a MariaDB server. The default: anybody on the loopback interface may connect as
/// `holdfast`, who has every right on the database `holdfast`; nothing is synced to the disk, and
/// there is no binary log.
struct MariadbOptions {
    std::string password = {};  ///< of `holdfast`; empty: none is asked for
    bool tls = false;           ///< the server offers TLS, and refuses TCP clients without it
    bool fsync = false;         ///< sync to the disk, as a crash of the machine would need it
    bool binary_log = false;    ///< write a binary log, which a replica reads
    /// Begin with a copy of this data directory, of a server that has ended; empty: a fresh one.
    std::filesystem::path data = {};
    std::vector<std::string> config = {};  ///< lines of the option file, which come last and win
    std::vector<std::pair<std::string, std::string>> environment = {};  ///< of its process
    std::vector<int> cpus = {};  ///< processors to run on; empty: those of this process
    std::chrono::nanoseconds cap = std::chrono::seconds(60);  ///< for the start
};

/// A running MariaDB server. It ends with this object, and also when this process dies.
///
/// Thread safety: sql() and the addresses from any thread; the members that change the process
/// (pause ... promote) from one thread at a time.
class MariadbServer {
public:
    /// Makes a data directory, starts a server on it, and returns when it answers.
    ///
    /// Errors: LabError when MariaDB is not installed, naming the Debian package, and when it does
    /// not answer within `options.cap`. Blocking: 3 s for the first one of a process, then some
    /// 300 ms.
    [[nodiscard]] static MariadbServer start(MariadbOptions options = {});

    MariadbServer(MariadbServer&&) noexcept;
    MariadbServer& operator=(MariadbServer&&) noexcept;
    ~MariadbServer();

    /// `mysql://holdfast@127.0.0.1:PORT/holdfast`; without the password.
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
    /// The Unix socket.
    [[nodiscard]] std::filesystem::path socket() const;
    /// What the server wrote to its log so far.
    [[nodiscard]] std::string log() const;

    [[nodiscard]] Process& process();
    [[nodiscard]] bool alive();
    void pause();   ///< SIGSTOP
    void resume();  ///< SIGCONT
    void kill();    ///< SIGKILL
    /// Ends the server, if it runs, and starts it again on the same port.
    void restart(Data data = Data::keep);
    /// Returns when the server answers. Errors: LabError after `cap`.
    void wait_ready(std::chrono::nanoseconds cap = default_cap);

    /// Runs SQL statements as root, over the Unix socket, in database `holdfast`, and returns the
    /// rows of the last one. Errors: LabError with the server's words.
    SqlRows sql(const std::string& text) const;
    /// The first column of the first row of it.
    [[nodiscard]] std::string value(const std::string& text) const;

    /// A read-only server that applies this one's binary log, asynchronously, from its beginning;
    /// it has what this one had at the call. Errors: as start(); LabError without a binary log.
    [[nodiscard]] MariadbServer replica() const;
    /// Makes a replica with all that it has received a server that takes writes.
    void promote();

private:
    class Impl;
    explicit MariadbServer(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
