// What one client's connections and operations share.
#pragma once
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "../resp/server.hpp"
#include "options.hpp"

namespace holdfast::redis {

using namespace resp;

/// Keys that were seen to hold text. Thread-safe; forgets all of them now and then.
class Texts {
public:
    bool has(std::string_view key) const {
        const std::lock_guard hold(mutex_);
        return keys_.find(key) != keys_.end();
    }
    void add(std::string_view key) {
        const std::lock_guard hold(mutex_);
        if (keys_.size() >= 1024) keys_.clear();
        keys_.emplace(key);
    }

private:
    mutable std::mutex mutex_;
    std::set<std::string, std::less<>> keys_;
};

struct Shared : Server {
    explicit Shared(const spi::Settings& s) : Server(data_target(s)), options(s) {}

    const Options options;
    Texts texts;
};

}  // namespace holdfast::redis
