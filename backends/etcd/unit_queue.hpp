// The keys of one line in the order of their creation, and how many of the first fit beside each
// other. All before a key that does not fit are let in before it, so none passes it. Keys are added
// only at the end, and units only decrease: so what fits once fits until it is gone.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "messages.hpp"

namespace holdfast::etcd {

class UnitQueue {
public:
    UnitQueue() = default;
    explicit UnitQueue(const std::vector<KeyValue>&);

    void add(const KeyValue&);
    void remove(std::int64_t created);
    void change(std::int64_t created, std::string_view value);

    bool empty() const noexcept { return keys_.empty(); }
    bool contains(std::int64_t created) const noexcept { return keys_.contains(created); }
    /// The revision of its creation; 0: it does not exist.
    std::int64_t created(const std::string& key) const noexcept;
    /// Whether it exists, and its units fit beside those of all before it.
    bool fits(std::int64_t created) const noexcept {
        return created <= reach_ && keys_.contains(created);
    }
    /// Whether there is one that does not fit.
    bool crowded() const noexcept { return !keys_.empty() && keys_.rbegin()->first > reach_; }
    /// The last key that fits; 0: there is none.
    std::int64_t reach() const noexcept { return reach_; }
    /// The key ahead of it; null: there is none.
    const std::string* ahead(std::int64_t created, std::int64_t* its_creation) const noexcept;

private:
    struct Key {
        std::string key;
        spi::Units units;
    };
    void extend();

    std::map<std::int64_t, Key> keys_;
    std::unordered_map<std::string, std::int64_t> created_;
    std::int64_t reach_ = 0;
    std::uint64_t sum_ = 0;  ///< of the units up to reach_
};

}  // namespace holdfast::etcd
