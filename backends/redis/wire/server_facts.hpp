// What a server says of itself, and whether it is one that this backend serves. Whether it is a
// good one for locks: checks.hpp.
#pragma once
#include <string>
#include <string_view>

#include "codec.hpp"
#include "shared.hpp"

namespace holdfast::redis {

/// The value of "key:" in the text of INFO; empty when it is not there.
std::string_view fact(std::string_view info, std::string_view key) noexcept;

/// Older than Redis 6.2.
bool too_old(std::string_view version) noexcept;

/// Refuses a Redis Cluster and a server that is too old, by what HELLO says, which every user may
/// ask. One that knows no HELLO, a proxy for instance, is taken as it is. Thread-safe.
Greeting& no_cluster() noexcept;

}  // namespace holdfast::redis
