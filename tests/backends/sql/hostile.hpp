// What a client of a server that answers anything has to bear.
#pragma once
#include <string>

#include "mangle.hpp"
#include "rig.hpp"

namespace sql_tests {

inline std::string url_at(const Acceptor& server, const std::string& query) {
    return std::string(dialect::scheme) + "://holdfast@127.0.0.1:" + std::to_string(server.port()) +
           "/holdfast?" + dialect::without_tls + "&" + query;
}

/// Every call once; none of them may be granted, or end the process.
inline void call_everything(const hf::Client& client) {
    const auto lock = lock_of(client, "N");
    CHECK_FALSE(lock->try_acquire().has_value());
    CHECK(acquire_on_engine(client, "N", 1ms));
    CHECK_FALSE(lock_of(client, "R", {.kind = hf::Kind::shared_mutex})
                    ->acquire_shared({.wait = 0ms})
                    .has_value());
    CHECK_FALSE(client.inspect("N").has_value());
    CHECK_FALSE(client.list("").has_value());
    CHECK_FALSE(client.break_lock("N", {.now = true}).has_value());
    CHECK_FALSE(client.request_release("N").has_value());
    CHECK_FALSE(client.probe().has_value());
}

}  // namespace sql_tests
