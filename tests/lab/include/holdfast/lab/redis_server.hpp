// A real redis-server on a free loopback port, in a directory of its own. Everything a test asks of
// a server is here: its address, its data, and every way in which it can fail as a process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/process.hpp"
#include "holdfast/lab/redis_connection.hpp"
#include "holdfast/lab/redis_monitor.hpp"
#include "holdfast/lab/reply.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// How to run a Redis server. The default: no password, no TLS, nothing persisted.
struct RedisOptions {
    std::string password;                 ///< of the default user; empty: none is asked for
    std::vector<std::string> users;       ///< ACL rules, e.g. "app on >secret ~lock:* +@all"
    bool tls = false;                     ///< clients must use TLS on port(); see ca_file()
    TlsFiles certificate;                 ///< with tls; empty: new ones of an own authority
    bool append_only = false;             ///< keep an append-only file
    std::string append_fsync = "always";  ///< "always", "everysec" or "no"; with append_only only
    std::uint16_t port = 0;               ///< for clients; 0: a free one
    std::vector<std::string> config;      ///< further configuration lines, which come last and win
    std::vector<int> cpus;                ///< processors to run on; empty: those of this process
    std::vector<std::pair<std::string, std::string>> environment;  ///< of the server's process
    std::chrono::nanoseconds cap = default_cap;                    ///< for the start
};

/// What a restarted server finds.
enum class Data {
    keep,   ///< what it had: a running server saves first, a killed one is taken as it is
    fresh,  ///< nothing
};

/// A running Redis server. It ends with this object, and also when this process dies in any way.
///
/// Thread safety: cli(), info(), connect(), monitor() and the addresses from any thread; the
/// members that change the process (pause ... restart) from one thread at a time.
class RedisServer {
public:
    /// Starts a server and returns when it answers.
    ///
    /// Errors: LabError when redis-server (or openssl, with TLS) is not installed, naming the
    /// Debian package; and when it does not answer within `options.cap`, with the command and the
    /// end of the log. Blocking: some 20 ms.
    [[nodiscard]] static RedisServer start(RedisOptions options = {});

    RedisServer(RedisServer&&) noexcept;
    RedisServer& operator=(RedisServer&&) noexcept;
    ~RedisServer();

    /// `redis://127.0.0.1:PORT`, or `rediss://...` with TLS; without the password.
    [[nodiscard]] std::string url() const;

    /// The URL with `:password@` where there is one.
    [[nodiscard]] std::string url_with_password() const;

    /// The same through another port, that of a proxy for example.
    [[nodiscard]] std::string url_with_password(std::uint16_t port) const;

    [[nodiscard]] std::string host() const { return "127.0.0.1"; }

    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port() const noexcept;

    [[nodiscard]] const std::string& password() const noexcept;

    /// The certificate that a client must trust. Errors: LabError without TLS.
    [[nodiscard]] std::filesystem::path ca_file() const { return tls_files().ca; }
    /// As it began. Errors: LabError without TLS.
    [[nodiscard]] const TlsFiles& tls_files() const;

    /// Where the server keeps its files (dump.rdb, appendonlydir).
    [[nodiscard]] std::filesystem::path data_directory() const;

    /// The process itself, for what is not offered here.
    [[nodiscard]] Process& process();

    [[nodiscard]] bool alive();
    void pause();   ///< SIGSTOP; returns when the kernel shows every thread as stopped
    void resume();  ///< SIGCONT; returns when the kernel shows no thread as stopped
    void kill();    ///< SIGKILL; returns when it is gone. Data not yet written are lost

    /// Ends the server, if it runs, and starts it again on the same port. Errors: as start().
    void restart(Data data = Data::keep);

    /// Returns when the server answers PING. Errors: LabError when it has ended or `cap` has
    /// passed, with the command and the end of the log.
    void wait_ready(std::chrono::nanoseconds cap = default_cap);

    /// A new plain connection with all rights, on which no TLS is spoken even where clients must.
    [[nodiscard]] RedisConnection connect(std::chrono::nanoseconds cap = default_cap) const;

    /// Runs one command with all rights on a connection of its own, and returns the reply; an error
    /// reply is a value. Errors: LabError when there is no answer within `cap`.
    Reply cli(const std::vector<std::string>& arguments,
              std::chrono::nanoseconds cap = default_cap) const;

    /// One section of INFO, or the default ones, as name and value.
    [[nodiscard]] std::map<std::string, std::string> info(const std::string& section = {}) const;

    /// As a primary: whether its first replica has acknowledged something, from when on the server
    /// counts it (WAIT).
    [[nodiscard]] bool replica_acknowledges() const;

    /// Starts to record every command that the server executes.
    [[nodiscard]] RedisMonitor monitor() const;

private:
    class Impl;
    explicit RedisServer(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
