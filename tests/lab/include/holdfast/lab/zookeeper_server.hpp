// Real ZooKeeper servers, one or an ensemble, each a JVM of its own on free ports: everything a
// test asks of them, and every way in which they can fail as processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/process.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/wait_until.hpp"

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

/// Running ZooKeeper servers. They end with this object, and also when this process dies in any
/// way. Servers are counted from 0.
///
/// Thread safety: addresses, ask(), leader() from any thread; the members that change processes
/// from one thread at a time.
class ZooKeeperServers {
public:
    /// Starts them and returns when all answer and, in an ensemble, one leads.
    ///
    /// Errors: LabError when Java or ZooKeeper is not installed, naming the Debian package; and
    /// when they are not ready within `options.cap`, with the command and the end of a log.
    /// Blocking: about a second.
    [[nodiscard]] static ZooKeeperServers start(ZooKeeperOptions options = {});

    ZooKeeperServers(ZooKeeperServers&&) noexcept;
    ZooKeeperServers& operator=(ZooKeeperServers&&) noexcept;
    ~ZooKeeperServers();

    [[nodiscard]] std::size_t size() const noexcept;
    /// `zookeeper://127.0.0.1:PORT,127.0.0.1:PORT`
    [[nodiscard]] std::string url() const;
    /// The one server alone.
    [[nodiscard]] std::string url(std::size_t server) const;
    /// "127.0.0.1:PORT,127.0.0.1:PORT", as other clients want it.
    [[nodiscard]] std::string connect_string() const;
    [[nodiscard]] std::string host(std::size_t server = 0) const;
    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port(std::size_t server = 0) const;
    [[nodiscard]] std::filesystem::path data_directory(std::size_t server = 0) const;
    [[nodiscard]] Process& process(std::size_t server = 0);

    [[nodiscard]] bool alive(std::size_t server = 0);
    void pause(std::size_t server = 0);   ///< SIGSTOP; returns when the kernel shows it
    void resume(std::size_t server = 0);  ///< SIGCONT; returns when the kernel shows it
    void kill(std::size_t server = 0);    ///< SIGKILL; returns when it is gone

    /// Ends the server, if it runs, and starts it again; does not wait until it serves. `fresh`
    /// takes the data of that one server away. Errors: as start().
    void restart(std::size_t server = 0, Data data = Data::keep);
    /// All of them, and waits until they serve.
    void restart_all(Data data = Data::keep);

    /// The one that leads now (the only one where it stands alone), if any says so.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    /// Kills the leader and returns which it was. Errors: LabError when there is none.
    std::size_t kill_leader();

    /// Returns when every server that is alive answers, and one leads. Errors: LabError when `cap`
    /// has passed, with the end of a log.
    void wait_ready(std::chrono::nanoseconds cap = std::chrono::seconds(60));

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
    class Impl;
    explicit ZooKeeperServers(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
