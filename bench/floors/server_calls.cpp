#include "floors/server_calls.hpp"

#include <cstdlib>

namespace holdfast::bench {

namespace {

std::uint64_t calls_in(const std::string& text) {
    const auto at = text.find("calls=");
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 6, nullptr, 10);
}

}  // namespace

ServerCalls server_calls(const lab::RedisServer& server) {
    auto stats = server.info("commandstats");
    auto cpu = server.info("cpu");
    const auto calls = [&](const char* name) { return calls_in(stats[name]); };
    ServerCalls now;
    now.scripts = calls("cmdstat_evalsha") + calls("cmdstat_eval");
    now.sets = calls("cmdstat_set");
    now.publishes = calls("cmdstat_publish");
    now.cpu_ms = 1e3 * (std::strtod(cpu["used_cpu_user"].c_str(), nullptr) +
                        std::strtod(cpu["used_cpu_sys"].c_str(), nullptr));
    return now;
}

}  // namespace holdfast::bench
