// A host and its port for people, logs, and names that clients agree on.
#pragma once
#include <string>

#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

/// "cache1:6379", "[::1]:6379"; without a port where it is 0. Endpoint has the address without
/// brackets: core takes them off, once for all backends.
inline std::string text_of(const Endpoint& e) {
    const bool v6 = e.host.find(':') != std::string::npos;
    return (v6 ? "[" + e.host + "]" : e.host) +
           (e.port != 0 ? ":" + std::to_string(e.port) : std::string());
}

}  // namespace holdfast::spi
