// What a URL says of a database server, as client libraries want it.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::sql {

/// Without the brackets of an IPv6 address.
inline std::string bare_host(std::string host) {
    const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    return brackets ? host.substr(1, host.size() - 2) : host;
}

/// The path without its slash.
inline std::string database_of(std::string_view path) {
    if (path.starts_with('/')) path.remove_prefix(1);
    return std::string(path);
}

}  // namespace holdfast::sql
