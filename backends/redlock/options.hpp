// The backend's options, typed, and the table that core checks and documents.
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
    milliseconds ttl{};         ///< of a lock, unless it says otherwise
    milliseconds max_ttl{};     ///< no lease of this deployment is longer
    milliseconds patience{};    ///< node_timeout: silence after which a node counts as down
    milliseconds connecting{};  ///< how long a connection may take to be made
    std::string prefix;         ///< the namespace
    std::string set;            ///< what the set of nodes is called at each node
    bool tls = false;

    explicit Options(const spi::Settings&);
};

/// The settings of one node, as backends/redis reads them.
spi::Settings node_settings(const spi::Settings&, const spi::Endpoint&);

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
Capabilities promises(const spi::Settings&);
/// All that examine() judges by.
std::vector<spi::Check> all_checks();

}  // namespace holdfast::redlock
