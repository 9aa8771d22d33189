// Real ZooKeeper servers, one or an ensemble, each a JVM of its own on free ports.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/server_group.hpp"

namespace holdfast::lab {

/// How to run ZooKeeper. The default: one server, ticks of 100 ms, so that sessions may be short.
struct ZooKeeperOptions {
    std::size_t count = 1;                 ///< servers of one ensemble; 1 stands alone
    std::chrono::milliseconds tick{100};   ///< tickTime
    int sync_limit = 50;                   ///< in ticks: how long a follower may lag behind
    std::vector<std::string> config = {};  ///< further configuration lines, which come last and win
    std::vector<std::string> java = {};    ///< further options of the JVM
    std::vector<int> cpus = {};            ///< processors to run on; empty: those of this process
    std::chrono::nanoseconds cap = std::chrono::seconds(60);  ///< for the start

    // For servers in network namespaces of their own: as many as `count`, or none.
    std::vector<std::string> hosts = {};  ///< default: 127.0.0.1
    std::vector<std::vector<std::string>> launchers =
        {};  ///< before the command, "ip netns exec x"
};

/// Running ZooKeeper servers.
///
/// Thread safety: ask() from any thread; otherwise as ServerGroup.
class ZooKeeperServers : public ServerGroup {
public:
    class Impl;

    /// Starts them and returns when all answer and, in an ensemble, one leads.
    ///
    /// Errors: LabError when Java or ZooKeeper is not installed, naming the Debian package; and
    /// when they are not ready within `options.cap`, with the command and the end of a log.
    /// Blocking: about a second.
    [[nodiscard]] static ZooKeeperServers start(ZooKeeperOptions options = {});

    /// "127.0.0.1:PORT,127.0.0.1:PORT", as other clients want it.
    [[nodiscard]] std::string connect_string() const { return addresses(); }

    /// What the server answers to a word of four letters ("srvr", "mntr", "cons"); empty when it
    /// does not within `cap`.
    [[nodiscard]] std::string ask(std::size_t server, const std::string& word,
                                  std::chrono::nanoseconds cap = std::chrono::seconds(2)) const;
    /// Packets received from clients, and sent to them, by that server so far, as it counts them.
    struct Packets {
        std::uint64_t received = 0, sent = 0;
    };
    [[nodiscard]] Packets packets(std::size_t server = 0) const;

private:
    explicit ZooKeeperServers(std::unique_ptr<Impl>) noexcept;
    Impl& impl() const noexcept;
};

}  // namespace holdfast::lab
