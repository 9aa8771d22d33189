// One process of the soak that takes and gives back locks until SIGTERM, and writes down what it
// did.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace holdfast::soak {

struct WorkerOptions {
    std::string url;
    std::filesystem::path folder;  ///< for its histories, one a thread, and its summary
    std::uint64_t seed = 1;
    int threads = 6;
    bool long_holds = false;  ///< the control: few names, held for seconds
};

/// Returns the exit code. Its summary is FOLDER/PID.summary: one "word number" a line.
int work(const WorkerOptions&);

}  // namespace holdfast::soak
