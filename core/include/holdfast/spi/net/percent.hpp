// The escape that URLs, owner ids and ZooKeeper's nodes have in common.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::spi::net {

/// "%2F" for '/'.
inline void append_percent(std::string& out, char c) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += hex[byte >> 4U];
    out += hex[byte & 15U];
}

}  // namespace holdfast::spi::net
