// What a Redis server says of the requests that it got.
#pragma once
#include <cstdint>
#include <holdfast/lab/redis_server.hpp>
#include <string>

namespace holdfast::bench {

struct ServerCalls {
    std::uint64_t scripts = 0;    ///< EVALSHA and EVAL: always sent by a client
    std::uint64_t sets = 0;       ///< SET: by clients, and by scripts where those use it
    std::uint64_t publishes = 0;  ///< PUBLISH, inside scripts
    double cpu_ms = 0;            ///< user and system time of the server

    ServerCalls since(const ServerCalls& before) const {
        return {scripts - before.scripts, sets - before.sets, publishes - before.publishes,
                cpu_ms - before.cpu_ms};
    }
};

/// INFO commandstats and INFO cpu. Errors: LabError.
ServerCalls server_calls(const lab::RedisServer&);

}  // namespace holdfast::bench
