// Which of the servers that a URL names serves a client now, so that all its connections lead to
// that one.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/spi/host_names.hpp"
#include "holdfast/spi/settings.hpp"
#include "server_error.hpp"

namespace holdfast::sql {

/// Whether it is an IP address.
bool is_address(const std::string& host);

/// Where a connection leads.
struct Destination {
    std::size_t host = 0;  ///< in the list of the URL
    std::string address;   ///< empty: a Unix socket
    /// What the server there says of itself ("timeline 2"): another one may take its place.
    std::string incarnation;
    friend bool operator==(const Destination&, const Destination&) = default;
};

/// Thread-safe.
class Hosts {
public:
    /// At least one. An empty name is the Unix socket.
    Hosts(const Errors& errors, std::vector<spi::Endpoint> hosts)
        : errors_(errors), hosts_(std::move(hosts)) {}

    std::size_t size() const noexcept { return hosts_.size(); }
    const spi::Endpoint& operator[](std::size_t i) const noexcept { return hosts_[i]; }
    /// "10.0.0.1:5432", and what the name means if it is one.
    std::string words(const Destination&) const;

    /// All hosts, in the order in which to try them.
    std::vector<std::size_t> order() const;
    /// Where to try that host by address, in order. `look_up`: until when to wait for what its name
    /// means, whose look-up nothing can bound; none: no look-up, only the address reached last.
    spi::Answer<std::vector<std::string>> addresses(std::size_t host,
                                                    std::optional<boot_clock::time_point> look_up);

    /// A connection of an earlier generation leads to a server that this client has left.
    unsigned generation() const noexcept { return generation_; }
    /// Where a connection was made last that proved to be of use.
    std::optional<Destination> here() const;

    struct Reached {
        unsigned generation;  ///< of that connection
        /// Another place served before it.
        std::optional<Destination> left;
    };
    /// A connection that was begun in generation `began` is of use. Nothing: this client has left
    /// that place meanwhile.
    std::optional<Reached> reach(Destination, unsigned began);
    /// A connection has ended: what a name means is not certain until one is made after a look-up,
    /// or the engine sees that its own works. Meanwhile nobody connects without a look-up.
    void doubt() noexcept { doubted_ = true; }
    void trust() noexcept {
        if (doubted_.load(std::memory_order_relaxed)) doubted_ = false;
    }
    /// That host does not answer, which costs more time than a refusal: the next one is tried first
    /// from now on.
    void silent(std::size_t host);

private:
    const Errors& errors_;
    const std::vector<spi::Endpoint> hosts_;
    spi::HostNames names_;
    mutable std::mutex mutex_;
    std::size_t first_ = 0;
    std::optional<Destination> here_;
    std::map<std::size_t, std::string> reached_;  ///< the last address of each
    std::atomic<unsigned> generation_{1};
    std::atomic<bool> doubted_{false};
};

}  // namespace holdfast::sql
