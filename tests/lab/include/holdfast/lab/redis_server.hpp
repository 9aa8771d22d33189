// A real redis-server on a free loopback port, in a directory of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/redis_connection.hpp"
#include "holdfast/lab/redis_monitor.hpp"
#include "holdfast/lab/reply.hpp"
#include "holdfast/lab/single_server.hpp"
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

/// A running Redis server.
///
/// Thread safety: cli(), info(), connect(), monitor() from any thread; otherwise as SingleServer.
class RedisServer : public SingleServer {
public:
    class Impl;

    /// Starts a server and returns when it answers.
    ///
    /// Errors: LabError when redis-server (or openssl, with TLS) is not installed, naming the
    /// Debian package; and when it does not answer within `options.cap`, with the command and the
    /// end of the log. Blocking: some 20 ms.
    [[nodiscard]] static RedisServer start(RedisOptions options = {});

    /// `redis://127.0.0.1:PORT`, or `rediss://...` with TLS; without the password.
    [[nodiscard]] std::string url() const;

    /// The URL with `:password@` where there is one.
    [[nodiscard]] std::string url_with_password() const;

    /// The same through another port, that of a proxy for example.
    [[nodiscard]] std::string url_with_password(std::uint16_t port) const;

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
    explicit RedisServer(std::unique_ptr<Impl>) noexcept;
    Impl& impl() const noexcept;
};

}  // namespace holdfast::lab
