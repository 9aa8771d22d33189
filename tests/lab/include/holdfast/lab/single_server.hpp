// A real server in a process and a directory of its own, on a free loopback port: what a test asks
// of any kind of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "holdfast/lab/data.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/sql_rows.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// A running server. It ends with its object, and also when this process dies in any way.
///
/// Thread safety: the addresses from any thread; the members that change the process (pause ...
/// restart) from one thread at a time.
class SingleServer {
public:
    class Impl;

    [[nodiscard]] std::string host() const { return "127.0.0.1"; }
    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] const std::string& password() const noexcept;
    /// The certificate that a client must trust. Errors: LabError without TLS.
    [[nodiscard]] std::filesystem::path ca_file() const { return tls_files().ca; }
    /// The rest of it. Errors: as ca_file().
    [[nodiscard]] const TlsFiles& tls_files() const;
    /// Where the server keeps its files.
    [[nodiscard]] std::filesystem::path data_directory() const;
    /// What the server wrote to its log so far.
    [[nodiscard]] std::string log() const;

    /// The process itself, for what is not offered here.
    [[nodiscard]] Process& process();
    [[nodiscard]] bool alive();
    /// SIGSTOP to it and its children; returns when the kernel shows every thread as stopped.
    void pause();
    /// SIGCONT to them; returns when the kernel shows no thread as stopped.
    void resume();
    /// SIGKILL to them at once; returns when it is gone. Data not yet written are lost.
    void kill();
    /// Ends the server, if it runs, and starts it again on the same port. Errors: as at its start.
    void restart(Data data = Data::keep);
    /// Returns when the server answers. Errors: LabError when it has ended or `cap` has passed,
    /// with the command and the end of the log.
    void wait_ready(std::chrono::nanoseconds cap = default_cap);

protected:
    explicit SingleServer(std::unique_ptr<Impl>) noexcept;
    SingleServer(SingleServer&&) noexcept;
    SingleServer& operator=(SingleServer&&) noexcept;
    ~SingleServer();

    std::unique_ptr<Impl> impl_;
};

/// A running server with SQL, with a database `holdfast` and a user of that name for clients. The
/// lab itself comes in as its superuser over a Unix socket, whatever clients need: so a test may
/// take any right away from its clients and still look at the server.
///
/// Thread safety: sql() and value() from any thread; otherwise as SingleServer.
class SqlServer : public SingleServer {
public:
    class Impl;

    /// `SCHEME://holdfast@127.0.0.1:PORT/holdfast`; without the password.
    [[nodiscard]] std::string url() const;
    /// The URL with the password where there is one, through `port` where it is not 0.
    [[nodiscard]] std::string url_with_password(std::uint16_t port = 0) const;

    /// Runs SQL as the superuser, in database `holdfast`; of several statements it returns the rows
    /// of the last one. Errors: LabError with the server's words.
    SqlRows sql(const std::string& text) const;
    /// The first column of the first row of it. Errors: also LabError when there is none.
    [[nodiscard]] std::string value(const std::string& text) const;

protected:
    explicit SqlServer(std::unique_ptr<Impl>) noexcept;
};

}  // namespace holdfast::lab
