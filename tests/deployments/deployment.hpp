// A backend's real servers, the links through which each client reaches them, and what can be done
// to them that the backend's safety class survives: for the soak, the bench, and slow name servers.
#pragma once
#include <chrono>
#include <functional>
#include <holdfast/lab/proxy.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "checker/recorder.hpp"

namespace holdfast::deployments {

using Random = std::mt19937_64;
namespace lab = holdfast::lab;

/// From `from` to `to` ms, evenly.
inline std::chrono::milliseconds pick(Random& random, long from, long to) {
    return std::chrono::milliseconds(std::uniform_int_distribution<long>(from, to)(random));
}

/// One worker's way to the servers: a proxy for each of them.
using Link = std::vector<lab::Proxy>;

/// Waits so long, or until the soak ends. False: it has ended.
using Wait = std::function<bool(std::chrono::milliseconds)>;

/// Something that is done to a server and undone, within the class.
struct ServerFault {
    std::string name;
    std::function<void(Random&, const Wait&)> act;
};

/// How long a server stays away: short enough to be over within a lease, now and then too long for
/// one (ttl 3 s).
std::chrono::milliseconds outage(Random&);

class Deployment {
public:
    virtual ~Deployment() = default;
    /// What it is, for the page: versions and settings.
    virtual std::string words() const = 0;
    /// The ports of its servers.
    virtual std::vector<std::uint16_t> ports() const = 0;
    /// The URL with other ports in their place.
    virtual std::string url(const std::vector<std::uint16_t>& ports) const = 0;
    virtual std::vector<ServerFault> faults() = 0;
    /// Takes the servers' data away: no class survives that, so the checker has to notice.
    virtual void wipe() = 0;
    /// Returns when it serves again.
    virtual void wait_ready() = 0;

    /// A client reaches its servers by the links alone, and not by what servers tell it.
    virtual bool behind_links() const { return true; }
    /// So long after the answer to a release it may still be unsynced, and a kill takes it back.
    virtual std::chrono::milliseconds unsynced_release() { return {}; }
    /// Told of each server that was killed, once it is dead, and from when on it may have been.
    std::function<void(bench::history::Nanos from)> on_kill;

    std::unique_ptr<Link> link() const;
    std::string url(const Link&) const;
    std::string url() const { return url(ports()); }

protected:
    /// What is done to the process of one server, of any kind.
    template <class Server>
    std::vector<ServerFault> process_faults(Server& server) {
        return {{"server killed, restarted with its data",
                 [this, &server](Random& r, const Wait& wait) {
                     kill([&] { server.kill(); });
                     wait(outage(r));
                     server.restart(lab::Data::keep);
                 }},
                {"server stopped (SIGSTOP)",
                 [&server](Random& r, const Wait& wait) {
                     server.pause();
                     wait(outage(r));
                     server.resume();
                 }},
                {"server ended and restarted",
                 [&server](Random&, const Wait&) { server.restart(lab::Data::keep); }}};
    }
    /// For faults: kills by `f`.
    template <class F>
    void kill(F f) {
        const auto from = bench::history::now();
        f();
        if (on_kill) on_kill(from);
    }
};

/// "127.0.0.1:1,127.0.0.1:2"
std::string hosts(const std::vector<std::uint16_t>& ports);

/// Adds one before main(): tests/backends/<name>/deployment.cpp. A variant is "<name>-<variant>".
struct Add {
    using Start = std::function<std::unique_ptr<Deployment>()>;
    Add(const char* name, Start);
};

/// The names that start() takes.
std::vector<std::string> names();
/// Errors: LabError when a server is missing or does not start; std::invalid_argument for a name.
std::unique_ptr<Deployment> start(std::string_view name);

}  // namespace holdfast::deployments
