// Processes that holdfast may not signal: what it has started has become another user's, as sudo
// does. They outlive the lock, which somebody has to know.
#pragma once
#include <set>
#include <utility>
#include <vector>

#include "process_tree.hpp"

namespace holdfast::cli {

class Refusals {
public:
    /// How often to look whether such processes have ended.
    static constexpr int look_again_ms = 1000;
    /// So many looks that find nothing, though something is left: it cannot be seen.
    static constexpr int looks = 20;
    /// A guardian that runs has said so by then.
    static constexpr int looks_take_ms = 1000;
    /// Complains, once of each.
    void tell(const std::vector<Process>&);
    /// The same of what this user may not even see.
    void tell_unseen();

private:
    bool told_unseen_ = false;
    std::set<std::pair<pid_t, unsigned long long>> told_;
};

}  // namespace holdfast::cli
