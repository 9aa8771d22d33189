// The backend's options with their types, and the table that core checks and documents.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::zookeeper {

struct Options {
    std::vector<spi::Endpoint> hosts;
    std::string base;    ///< "/holdfast", "/locks/app"; never ends in '/', empty for the root
    std::string prefix;  ///< the namespace
    std::string user;
    spi::Secret password;
    milliseconds ttl{10'000};
    milliseconds tick{3000};   ///< the servers' tickTime
    bool creator_acl = false;  ///< acl=creator
    bool robust = false;
    bool containers = true;
    bool latch = false;   ///< node=latch-
    std::string display;  ///< "zookeeper://a:2181,b:2181/locks"

    explicit Options(const spi::Settings&);
};

/// The parent of the nodes of one lock.
std::string parent_path(const Options&, std::string_view name);

/// Why a ttl or session of that length cannot be kept proved; empty when it can.
std::string too_short(std::string_view what, milliseconds length, milliseconds tick);
std::string too_short_remedy(milliseconds tick);

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::zookeeper
