// A real MariaDB server on a free loopback port and a Unix socket, in a directory of its own, run
// by an unprivileged user.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/single_server.hpp"

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

/// A running MariaDB server.
class MariadbServer : public SqlServer {
public:
    class Impl;

    /// Makes a data directory, starts a server on it, and returns when it answers.
    ///
    /// Errors: LabError when MariaDB is not installed, naming the Debian package, and when it does
    /// not answer within `options.cap`. Blocking: 3 s for the first one of a process, then some
    /// 300 ms.
    [[nodiscard]] static MariadbServer start(MariadbOptions options = {});

    /// The Unix socket.
    [[nodiscard]] std::filesystem::path socket() const;

    /// A read-only server that applies this one's binary log, asynchronously, from its beginning;
    /// it has what this one had at the call. Errors: as start(); LabError without a binary log.
    [[nodiscard]] MariadbServer replica() const;
    /// Makes a replica with all that it has received a server that takes writes.
    void promote();

private:
    explicit MariadbServer(std::unique_ptr<Impl>) noexcept;
    Impl& impl() const noexcept;
};

}  // namespace holdfast::lab
