// A backend's configuration, typed; the option table, and what such a configuration promises.
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
    /// Between the questions that TCP asks of a silent end.
    std::chrono::seconds probe_every() const noexcept {
        return std::max(silent / probes, std::chrono::seconds(1));
    }

    std::string host;
    std::uint16_t port;
    std::string socket;    ///< a directory; then host and port only name the socket in it
    std::string database;  ///< empty: that of the user's name
    std::string user;      ///< empty: as libpq finds it
    spi::Secret password;
    milliseconds ttl{};  ///< of a lock, unless it says otherwise
    std::string prefix;  ///< namespace, put before every name
    std::string schema;  ///< of the table; empty: as search_path says
    std::vector<std::pair<std::string, std::string>> libpq;  ///< sslmode and the like
    bool tls_chosen;  ///< by an option, or by libpq's environment or service
    std::string display;
    std::chrono::seconds silent;  ///< so long a connection is idle until TCP asks the other end
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
Capabilities promises();
/// All that examine() judges by.
std::vector<spi::Check> all_checks();

}  // namespace holdfast::postgresql
