// What a server says of itself, and what follows for a lock: whether it is one that this backend
// serves, and whether a crash of it can cost what it has answered.
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

/// Why a crash of the server can lose a write that it has answered, for a person; empty when each
/// one is synced first. `config`: the reply to CONFIG GET *append*, null where it was not answered.
std::string unsynced(std::string_view info, const Reply* config);

}  // namespace holdfast::redis
