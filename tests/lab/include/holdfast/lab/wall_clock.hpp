// The wall clock of one process, moved by a preloaded shim; other clocks, and everybody else's
// time, stay as they are.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::lab {

class RedisServer;

class WallClock {
public:
    /// `file` is made unless it is there; it has to outlive the process. Errors: LabError.
    explicit WallClock(std::filesystem::path file);
    ~WallClock();
    WallClock(const WallClock&) = delete;
    WallClock& operator=(const WallClock&) = delete;

    /// For the process: preloads the shim.
    std::vector<std::pair<std::string, std::string>> environment() const;
    /// From now on its clock is so much ahead of ours; negative: behind. Any process may say so
    /// that has the file.
    void set(std::chrono::milliseconds ahead);

private:
    std::filesystem::path file_;
    volatile long long* offset_us_ = nullptr;
};

/// How far the server's clock is ahead of ours, by its own answer to TIME: the proof of a jump.
std::chrono::milliseconds ahead(const RedisServer&);

}  // namespace holdfast::lab
