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

    /// Drops the files that were asked for since the last call of `next_try()` and are not there:
    /// a try that failed may have ended its processes before they wrote anything. What they did
    /// write stays, and is judged.
    void forget_unwritten();
    /// The files asked for so far are owed from here on, also when a later try fails.
    void next_try();

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
    std::vector<std::filesystem::path> of_this_try_;
    int asked_for_ = 0;
};

}  // namespace holdfast::bench
