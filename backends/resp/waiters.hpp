// The waiters of one client that a server may have a message for.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast::resp {

/// Owners, each with its place for as long as that is in use. Engine thread only.
class Waiters {
public:
    void add(std::string_view owner, const std::shared_ptr<void>& place) {
        all_.insert_or_assign(std::string(owner), place);
        if (all_.size() < sweep_at_) return;
        std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
        sweep_at_ = std::max<std::size_t>(256, 2 * all_.size());
    }
    void forget(std::string_view owner) {
        if (const auto at = all_.find(owner); at != all_.end()) all_.erase(at);
    }
    void clear() { all_.clear(); }
    /// Null: never ours, or forgotten. Its place has gone when its acquisition has ended.
    const std::weak_ptr<void>* find(std::string_view owner) const {
        const auto at = all_.find(owner);
        return at == all_.end() ? nullptr : &at->second;
    }
    template <class Is>
    bool any(Is is) const {
        return std::any_of(all_.begin(), all_.end(),
                           [&](const auto& entry) { return is(entry.second.lock()); });
    }
    /// Those whose acquisition has not ended.
    std::vector<std::string> present() const {
        std::vector<std::string> out;
        for (const auto& [owner, place] : all_)
            if (!place.expired()) out.push_back(owner);
        return out;
    }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const noexcept {
            return std::hash<std::string_view>()(s);
        }
    };
    std::unordered_map<std::string, std::weak_ptr<void>, Hash, std::equal_to<>> all_;
    std::size_t sweep_at_ = 256;
};

}  // namespace holdfast::resp
