// The backend's options with their types, and the table that core checks and documents.
#pragma once
#include <string>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redis {

struct Options {
    milliseconds ttl{};             ///< default of a lock
    std::string prefix;             ///< the namespace
    bool plain = false;             ///< mode=plain
    bool queue = true;              ///< wait=queue
    long long replicas = 0;         ///< min_replicas_ack
    bool confirm_handover = false;  ///< handover=confirmed

    explicit Options(const spi::Settings&);
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::redis
