// The backend's options with their types, and the table that core checks and documents.
#pragma once
#include <string>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redlock {

struct Options {
    bool fencing = true;
    bool durable = false;       ///< nodes keep their data over a restart
    milliseconds ttl{};         ///< default of a lock
    milliseconds max_ttl{};     ///< upper bound of all leases of this deployment
    milliseconds patience{};    ///< node_timeout: silence after which a node counts as down
    milliseconds connecting{};  ///< time limit of a connection attempt
    std::string prefix;         ///< the namespace
    std::string set;            ///< name of the set of nodes at each node
    bool tls = false;

    explicit Options(const spi::Settings&);
};

/// The settings of one node, as backends/resp reads them.
spi::Settings node_settings(const spi::Settings&, const spi::Endpoint&);

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::redlock
