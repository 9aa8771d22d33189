// Real etcd servers, one or a cluster, on free ports: everything a test asks of them, and every way
// in which they can fail as processes.
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

/// How to run etcd. The default: one member, without TLS, with etcd's own heartbeats and elections.
struct EtcdOptions {
    std::size_t count = 1;                     ///< members of one cluster
    std::chrono::milliseconds heartbeat{100};  ///< --heartbeat-interval
    std::chrono::milliseconds election{1000};  ///< --election-timeout
    bool tls = false;                          ///< clients must use TLS on port(); see ca_file()
    bool client_certificates = false;          ///< with tls: and show one; see cert_file()
    std::vector<std::string> arguments = {};   ///< further ones, which come last and win
    std::vector<int> cpus = {};  ///< processors to run on; empty: those of this process
    std::chrono::nanoseconds cap = std::chrono::seconds(60);  ///< for the start

    // For members in network namespaces of their own: as many as `count`, or none.
    std::vector<std::string> hosts = {};  ///< default: 127.0.0.1
    std::vector<std::vector<std::string>> launchers =
        {};  ///< before the command, "ip netns exec x"
};

/// Running etcd servers. They end with this object, and also when this process dies in any way.
/// Members are counted from 0.
///
/// Thread safety: addresses, post(), ctl(), erase(), leader(), version() from any thread; the
/// members that change processes from one thread at a time.
class EtcdServers {
public:
    /// Starts them and returns when all answer, which takes one that leads.
    ///
    /// Errors: LabError when etcd (or openssl, with TLS) is not installed, naming the Debian
    /// package; and when they are not ready within `options.cap`, with the command and the end of a
    /// log. Blocking: about a second.
    [[nodiscard]] static EtcdServers start(EtcdOptions options = {});

    EtcdServers(EtcdServers&&) noexcept;
    EtcdServers& operator=(EtcdServers&&) noexcept;
    ~EtcdServers();

    [[nodiscard]] std::size_t size() const noexcept;
    /// `etcd://127.0.0.1:PORT,127.0.0.1:PORT`; `etcds://` with TLS.
    [[nodiscard]] std::string url() const;
    /// The one member alone.
    [[nodiscard]] std::string url(std::size_t member) const;
    /// "http://127.0.0.1:PORT,http://127.0.0.1:PORT", as other clients want it; https with TLS.
    [[nodiscard]] std::string endpoints() const;
    [[nodiscard]] std::string host(std::size_t member = 0) const;
    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port(std::size_t member = 0) const;
    /// The certificate that a client must trust. Errors: LabError without TLS.
    [[nodiscard]] std::filesystem::path ca_file() const;
    /// The members' own certificate and its key, which a client may show as well. Errors: LabError
    /// without TLS.
    [[nodiscard]] std::filesystem::path cert_file() const;
    [[nodiscard]] std::filesystem::path key_file() const;
    [[nodiscard]] std::filesystem::path data_directory(std::size_t member = 0) const;
    [[nodiscard]] Process& process(std::size_t member = 0);

    [[nodiscard]] bool alive(std::size_t member = 0);
    void pause(std::size_t member = 0);   ///< SIGSTOP; returns when the kernel shows it
    void resume(std::size_t member = 0);  ///< SIGCONT; returns when the kernel shows it
    void kill(std::size_t member = 0);    ///< SIGKILL; returns when it is gone

    /// Ends the member, if it runs, and starts it again; does not wait until it serves. `fresh`
    /// takes the data of all members away and starts all of them: the others do not bear one that
    /// has forgotten what it confirmed. Errors: as start().
    void restart(std::size_t member = 0, Data data = Data::keep);
    /// All of them, and waits until they serve. `fresh` makes another cluster at the same
    /// addresses.
    void restart_all(Data data = Data::keep);

    /// The one that leads now, if any says so; of several, the one that was elected last.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    /// Kills the leader and returns which it was. Errors: LabError when there is none.
    std::size_t kill_leader();

    /// Returns when every member that is alive answers a read that a majority has to confirm.
    /// Errors: LabError when `cap` has passed, with the end of a log.
    void wait_ready(std::chrono::nanoseconds cap = std::chrono::seconds(60));

    /// "3.4.23". Errors: LabError when no member answers.
    [[nodiscard]] std::string version() const;

    /// What that member answers to a request of its JSON gateway ("kv/range"), error answers
    /// included; empty when it does not within `cap`. No TLS is spoken even where clients must.
    std::string post(std::size_t member, const std::string& path, const std::string& body,
                     std::chrono::nanoseconds cap = std::chrono::seconds(2)) const;

    /// Runs etcdctl at all members and returns what it prints: ctl({"put", "key", "value"}). No TLS
    /// is spoken even where clients must.
    ///
    /// Errors: LabError when etcdctl is not installed, naming the Debian package; when it fails,
    /// with its words; and when it does not end within `cap`.
    std::string ctl(const std::vector<std::string>& arguments,
                    std::chrono::nanoseconds cap = default_cap) const;

    /// Forgets all history up to now.
    void compact() const;
    /// Deletes all keys that begin with `prefix`, and says how many there were. Errors: as ctl().
    std::size_t erase(const std::string& prefix) const;

    /// The first value of that key in an answer of post(); numbers of 64 bits are texts there, too.
    /// Empty where there is none.
    [[nodiscard]] static std::string text_after(const std::string& answer, const std::string& key);

private:
    class Impl;
    explicit EtcdServers(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
