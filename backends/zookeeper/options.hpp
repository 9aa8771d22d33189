// The backend's options, typed, and the table that core checks and documents.
#pragma once
#include <string>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::zookeeper {

struct Options {
    std::vector<spi::Endpoint> hosts;
    std::string base;    ///< "/holdfast", "/locks/app"; never ends in '/', empty for the root
    std::string prefix;  ///< the namespace
    std::string user;
    spi::Secret password;
    milliseconds ttl{10'000};
    milliseconds tick{2000};   ///< the servers' tickTime
    bool creator_acl = false;  ///< acl=creator
    bool robust = false;
    bool containers = true;
    std::string display;  ///< "zookeeper://a:2181,b:2181/locks"

    explicit Options(const spi::Settings&);
};

/// The node above those of one lock.
std::string parent_path(const Options&, std::string_view name);

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
Capabilities promises(const spi::Settings&);

}  // namespace holdfast::zookeeper
