// Every grant of one client by its owner id, so that a word from the server about one of them finds
// it at once, however many there are.
#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace holdfast {

class LeaseImpl;

/// Owner ids begin with random characters: the first ones tell them apart.
struct OwnerHash {
    std::size_t operator()(std::string_view owner) const noexcept {
        std::uint64_t first = 0;
        std::memcpy(&first, owner.data(), std::min(owner.size(), sizeof first));
        return first;
    }
};

/// Thread-safe. Keeps no grant alive.
class LeaseIndex {
public:
    void add(LeaseImpl&);
    void remove(const LeaseImpl&) noexcept;
    /// Null: there is none, or its last owner is just letting go of it.
    std::shared_ptr<LeaseImpl> find(std::string_view owner) const;
    std::vector<std::shared_ptr<LeaseImpl>> all() const;

private:
    mutable std::mutex mutex_;
    boost::unordered_flat_map<std::string_view, LeaseImpl*, OwnerHash> by_owner_;
};

}  // namespace holdfast
