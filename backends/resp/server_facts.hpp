// What a server reports about itself, and whether this backend can use it. Whether it is good for
// locks: checks.hpp.
#pragma once
#include <string>
#include <string_view>

#include "codec.hpp"
#include "server.hpp"

namespace holdfast::resp {

/// The value of "key:" in the text of INFO; empty if it is missing.
std::string_view fact(std::string_view info, std::string_view key) noexcept;

/// Older than Redis 6.2.
bool too_old(std::string_view version) noexcept;

/// Refuses a Redis Cluster, a replica and too old a server, according to HELLO, which every user
/// may send. Accepts one that does not know HELLO, such as a proxy. Thread-safe.
Greeting& usable() noexcept;
/// The same for a server of a cluster: refuses one that is none.
Greeting& usable_in_cluster() noexcept;

}  // namespace holdfast::resp
