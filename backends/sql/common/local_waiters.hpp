// Which callers of one client wait for which name, in the order in which they came. What the client
// knows of a name stands beside its line, and is forgotten with its last waiter.
#pragma once
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "holdfast/clock.hpp"

namespace holdfast::sql {

/// `Time`: of the clock that says how long a name is held. `More`: what else is known of a name.
/// For one thread at a time.
template <class Time, class More>
class LocalWaiters {
public:
    struct Waiter {
        std::string owner;
        boot_clock::time_point since;
    };
    struct Name : More {
        std::deque<Waiter> line;  ///< never empty
        std::string holder;       ///< keeps all others out; empty: none is known
        Time held_until{};        ///< nothing happens before, unless the holder releases

        bool held_by_another(std::string_view owner, Time now) const {
            return now < held_until && holder != owner;
        }
        const std::string& first() const { return line.front().owner; }
    };
    using Names = std::unordered_map<std::string, Name>;
    /// What a waiter leaves.
    struct Left {
        std::string key;
        bool first = false;        ///< it was the first in line
        std::optional<Name> last;  ///< it was the only one: what was known of the name
    };

    bool empty() const noexcept { return names_.empty(); }
    /// How many wait.
    std::size_t size() const noexcept { return key_of_.size(); }
    typename Names::iterator begin() { return names_.begin(); }
    typename Names::iterator end() { return names_.end(); }
    /// Null: no caller waits for it.
    Name* find(const std::string& key) {
        const auto at = names_.find(key);
        return at == names_.end() ? nullptr : &at->second;
    }
    const Name* find(const std::string& key) const {
        const auto at = names_.find(key);
        return at == names_.end() ? nullptr : &at->second;
    }

    /// Null: it waits already.
    Name* enter(const std::string& key, std::string_view owner, boot_clock::time_point came) {
        if (!key_of_.try_emplace(std::string(owner), key).second) return nullptr;
        Name& n = names_[key];
        const auto at = std::upper_bound(n.line.begin(), n.line.end(), came,
                                         [](auto time, const Waiter& w) { return time < w.since; });
        n.line.insert(at, {std::string(owner), came});
        return &n;
    }
    /// Nullopt: it did not wait.
    std::optional<Left> leave(std::string_view owner) {
        auto at = key_of_.extract(std::string(owner));
        if (at.empty()) return std::nullopt;
        Left left{std::move(at.mapped()), false, std::nullopt};
        const auto name = names_.find(left.key);
        Name& n = name->second;
        left.first = n.first() == owner;
        std::erase_if(n.line, [&](const Waiter& w) { return w.owner == owner; });
        if (!n.line.empty()) return left;
        left.last = std::move(n);
        names_.erase(name);
        return left;
    }

private:
    Names names_;
    std::unordered_map<std::string, std::string> key_of_;  // owner -> key
};

}  // namespace holdfast::sql
