// The backend's options with their types, and their checks before anything connects.
#pragma once
#include <string>
#include <vector>

#include "../tls/options.hpp"
#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::etcd {

struct Options {
    std::vector<spi::Endpoint> hosts;
    std::string root;    ///< "/holdfast/", "/locks/app/": what all keys begin with
    std::string prefix;  ///< the namespace
    std::string user;
    spi::Secret password;
    tls::Options tls;
    bool robust = false;  ///< marks record how the previous holder ended
    milliseconds ttl{10'000};
    milliseconds request_timeout{2000};
    std::string display;  ///< "etcd://a:2379,b:2379/locks"

    explicit Options(const spi::Settings&);
};

const std::vector<spi::OptionSpec>& option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();

}  // namespace holdfast::etcd
