// The backend's options with their types, and the table that core checks and documents.
#pragma once
#include <string>
#include <vector>

#include "../tls/options.hpp"
#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redis {

struct Options {
    std::string host;
    std::uint16_t port = 0;
    long long database = 0;
    std::string user;
    spi::Secret password;
    milliseconds ttl{};             ///< default of a lock
    std::string prefix;             ///< the namespace
    bool plain = false;             ///< mode=plain
    bool queue = true;              ///< wait=queue
    long long replicas = 0;         ///< min_replicas_ack
    bool confirm_handover = false;  ///< handover=confirmed
    tls::Options tls;
    std::string display;  ///< "redis://cache1:6379/2"

    explicit Options(const spi::Settings&);
    /// Whether blocking calls may have connections of their own.
    bool lanes() const noexcept { return !tls.on && replicas == 0; }
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::redis
