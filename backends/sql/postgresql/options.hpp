// The backend's options with their types, the option table, and what a configuration promises.
#pragma once
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::postgresql {

struct Options {
    explicit Options(const spi::Settings&);

    static constexpr int probes = 3;
    /// Time between TCP's probes of a silent peer.
    std::chrono::seconds probe_every() const noexcept {
        return std::max(silent / probes, std::chrono::seconds(1));
    }

    std::vector<spi::Endpoint> hosts;  ///< at least one
    std::string socket;  ///< a directory; the one host's port then only names the socket in it
    std::vector<spi::Endpoint> listen;  ///< the servers themselves, past the URL's pooler
    bool promotes_synchronous;          ///< no standby is promoted that lacks a commit
    std::string database;               ///< empty: the database named after the user
    std::string user;                   ///< empty: as libpq finds it
    spi::Secret password;
    milliseconds ttl{};  ///< default of a lock
    std::string prefix;  ///< namespace, put before every name
    std::string schema;  ///< of the table; empty: as in search_path
    std::vector<std::pair<std::string, std::string>> libpq;  ///< sslmode and the like
    bool tls_chosen;  ///< by an option, or by libpq's environment or service
    std::string display;
    std::chrono::seconds silent;  ///< idle time of a connection after which TCP probes the peer
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises();
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::postgresql
