// What the demonstrations play on: a temporary folder, processes that are really processes, and
// files that they share.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "globals.hpp"

namespace holdfast::cli {

/// A folder that disappears with the object.
class TempFolder {
public:
    TempFolder();
    ~TempFolder();
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// The orders of one worker process.
struct DemoJob {
    std::string role;  ///< "count", "buy", "queue", "hold", "write"
    std::string name;  ///< of the lock
    std::string file;
    std::string second_file;
    long count = 0;
    long crowd = 1;  ///< workers that begin together
    bool locked = true;
    std::uint64_t seed = 0;
};

/// Starts this program again as a worker. Every worker is killed with the object at the latest.
class Workers {
public:
    /// `target` and `config` are what the workers open; passed by the environment, since a URL may
    /// have a password.
    Workers(std::string target, std::string config)
        : target_(std::move(target)), config_(std::move(config)) {}
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    pid_t start(const DemoJob&);
    /// Waits for all; true when each exited with 0.
    bool join();
    /// Whether one of them still runs. Reaps none.
    bool busy() const;
    /// Kills one with SIGKILL and reaps it.
    void kill(pid_t);

private:
    std::string target_, config_;
    std::vector<pid_t> running_;
};

/// The number in a file; 0 when there is none.
long read_number(const std::string& path);
void write_number(const std::string& path, long);
/// Appends one line in one write.
void append_line(const std::string& path, const std::string& line);
std::vector<std::string> read_lines(const std::string& path);
/// Polls until the file has this many lines, and calls `meanwhile`; false after `cap`.
bool wait_for_lines(const std::string& path, std::size_t lines, milliseconds cap,
                    const std::function<void()>& meanwhile = {});

/// A store that refuses stale tokens: the other half of fencing, in one locked file.
/// False when `token` is below the highest one that has written.
bool fenced_write(const std::string& path, std::uint64_t token, const std::string& value);
/// "TOKEN VALUE" as last accepted.
std::string fenced_read(const std::string& path);

}  // namespace holdfast::cli
