// Which names were waited for when this client last saw their rows: the release of such a name also
// notifies the client that is first in line, which costs the server more than a release alone.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>

namespace holdfast::postgresql {

/// What it says may be outdated: then a release takes one request more, or a little longer.
/// Thread-safe.
class Lines {
public:
    bool known(const std::string& key) const {
        if (size_ == 0) return false;
        const std::lock_guard hold(mutex_);
        return keys_.contains(key);
    }
    /// What the server said of the name.
    void saw(const std::string& key, bool line) {
        if (!line && size_ == 0) return;
        const std::lock_guard hold(mutex_);
        // Names that are never released again stay in it.
        if (line && keys_.size() >= most) keys_.clear();
        if (line)
            keys_.insert(key);
        else
            keys_.erase(key);
        size_ = keys_.size();
    }

private:
    static constexpr std::size_t most = 1024;
    mutable std::mutex mutex_;
    std::unordered_set<std::string> keys_;
    std::atomic<std::size_t> size_{0};
};

}  // namespace holdfast::postgresql
