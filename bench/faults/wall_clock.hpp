// The wall clock of one server, moved by the preloaded shim.
#pragma once
#include <chrono>
#include <filesystem>
#include <holdfast/lab/redis_server.hpp>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::bench {

class WallClock {
public:
    /// `file` is made; it has to outlive the server. Errors: SelfCheck.
    explicit WallClock(std::filesystem::path file);
    ~WallClock();
    WallClock(const WallClock&) = delete;
    WallClock& operator=(const WallClock&) = delete;

    /// For the server's process: preloads the shim. Errors: SelfCheck when it was not built.
    std::vector<std::pair<std::string, std::string>> environment() const;
    /// From now on the server's clock is so much ahead of ours; negative: behind.
    void set(std::chrono::milliseconds ahead);

private:
    std::filesystem::path file_;
    volatile long long* offset_us_ = nullptr;
};

/// How far the server's clock is ahead of ours, by its own answer to TIME: the proof of a jump.
std::chrono::milliseconds ahead(const lab::RedisServer&);

}  // namespace holdfast::bench
