// Where the processes of a run record what they do with their locks, and how all of it is judged at
// the end: one history for each deployment, or control without a lock.
#pragma once
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "measure/history_rows.hpp"

namespace holdfast::bench {

class Histories {
public:
    /// Makes files below the folder, which is made when the first one is asked for.
    explicit Histories(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// A file for one more process; files of the same backend and variant are judged together. A
    /// process that then records nothing is noticed. From any thread.
    std::filesystem::path file(std::string_view backend, std::string_view variant, Promise,
                               std::string_view who);

    /// Reads every history and adds its rows, with what recording costs in this folder. Call it
    /// after the processes have ended. Does nothing when no file was asked for.
    void judge(Rows&) const;

private:
    struct Group {
        Recorded what;
        std::filesystem::path folder;
        std::vector<std::filesystem::path> files;
    };
    std::filesystem::path folder_;
    std::mutex mutex_;
    std::vector<Group> groups_;
};

}  // namespace holdfast::bench
