// A host and its port as text: for people, logs, and names that clients agree on.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/export.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

/// "cache1:6379", "[::1]:6379"; without a port where it is 0. Endpoint has the address without
/// brackets: core removes them for all backends.
inline std::string text_of(const Endpoint& e) {
    const bool v6 = e.host.find(':') != std::string::npos;
    return (v6 ? "[" + e.host + "]" : e.host) +
           (e.port != 0 ? ":" + std::to_string(e.port) : std::string());
}

/// The same with what a host name means, where that is known: "cache1:6379 (10.0.0.1)".
inline std::string text_of(const Endpoint& e, const std::string& address) {
    const bool known = !address.empty() && address != e.host;
    return text_of(e) + (known ? " (" + address + ")" : std::string());
}

/// One "host:port" (port 0: none was written); nullopt when it is malformed, and in `problem` what
/// continues a sentence about it: "has a port that is no number from 1 to 65535".
HOLDFAST_EXPORT std::optional<Endpoint> parse_endpoint(std::string_view,
                                                       std::string* problem = nullptr);

/// "localhost", or a loopback address, without brackets.
inline bool on_this_machine(const std::string& host) {
    error_code named;
    const auto address = boost::asio::ip::make_address(host, named);
    return named ? host == "localhost" : address.is_loopback();
}

}  // namespace holdfast::spi
