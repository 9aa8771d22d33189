// One question to a server, on a connection of its own, for those that end it after the answer.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::lab::detail {

/// What the server at that IPv4 address answers until it ends the connection; empty when nothing
/// came within `cap`.
std::string exchange(const std::string& host, std::uint16_t port, const std::string& question,
                     std::chrono::nanoseconds cap);

}  // namespace holdfast::lab::detail
