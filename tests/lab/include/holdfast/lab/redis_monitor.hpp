// A record of every command a Redis server executes: what a client really sends is a promise of
// some backends, and only the server can witness it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/lab/redis_connection.hpp"

namespace holdfast::lab {

/// One executed command.
struct MonitorLine {
    double time = 0;  ///< the server's wall clock, in seconds
    int database = 0;
    std::string client;                ///< "address:port", or "lua" for a call made by a script
    std::vector<std::string> command;  ///< name as it was sent, then the arguments, unescaped
};

/// Records from construction until stop(). The lab's own commands are recorded too.
///
/// Thread safety: any thread may call lines(); stop() one thread.
class RedisMonitor {
public:
    /// Starts to record on a fresh connection made by `connect`, which is called again by stop().
    /// Errors: LabError when the server refuses.
    explicit RedisMonitor(std::function<RedisConnection()> connect);
    RedisMonitor(RedisMonitor&&) noexcept;
    RedisMonitor& operator=(RedisMonitor&&) noexcept;
    ~RedisMonitor();

    /// What has been recorded so far.
    [[nodiscard]] std::vector<MonitorLine> lines() const;

    /// Ends the recording and returns all of it. Every command is in it that the server had
    /// received when stop() was called: a marker command is sent and waited for, and left out of
    /// the result.
    ///
    /// Errors: LabError when the marker does not come within `cap`, or the recording broke off.
    std::vector<MonitorLine> stop(std::chrono::nanoseconds cap = default_cap);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Reads one line of MONITOR output. Errors: LabError when it is not one.
[[nodiscard]] MonitorLine parse_monitor_line(const std::string& line);

}  // namespace holdfast::lab
