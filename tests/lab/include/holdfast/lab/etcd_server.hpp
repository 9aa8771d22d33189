// Real etcd servers, one or a cluster, on free ports.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/server_group.hpp"
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

/// Running etcd servers, the members of one cluster. A member bears no other that has forgotten
/// what it confirmed.
///
/// Thread safety: post(), ctl(), erase(), version() from any thread; otherwise as ServerGroup.
class EtcdServers : public ServerGroup {
public:
    class Impl;

    /// Starts them and returns when all answer, which takes one that leads.
    ///
    /// Errors: LabError when etcd (or openssl, with TLS) is not installed, naming the Debian
    /// package; and when they are not ready within `options.cap`, with the command and the end of a
    /// log. Blocking: about a second.
    [[nodiscard]] static EtcdServers start(EtcdOptions options = {});

    /// "http://127.0.0.1:PORT,http://127.0.0.1:PORT", as other clients want it; https with TLS.
    [[nodiscard]] std::string endpoints() const;
    /// The certificate that a client must trust. Errors: LabError without TLS.
    [[nodiscard]] std::filesystem::path ca_file() const;
    /// The members' own certificate and its key, which a client may show as well. Errors: LabError
    /// without TLS.
    [[nodiscard]] std::filesystem::path cert_file() const;
    [[nodiscard]] std::filesystem::path key_file() const;

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
    explicit EtcdServers(std::unique_ptr<Impl>) noexcept;
    Impl& impl() const noexcept;
};

}  // namespace holdfast::lab
