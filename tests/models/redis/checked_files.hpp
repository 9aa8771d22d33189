// What the model runs of the client, beside the scripts: checked.txt has a sum of each.
#pragma once
#include <array>

namespace redis_model {

/// Paths from backends/redis/protocol.
inline constexpr std::array checked_files{
    "acquire.cpp",     "leave.cpp",       "operations.cpp",   "operations.hpp",
    "owner_state.cpp", "owner_state.hpp", "script_calls.hpp", "../../resp/poll_mark.hpp"};

}  // namespace redis_model
