// The grants of one client by owner id, so that a message from the server finds its grant at once,
// however many there are.
#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace holdfast {

class LeaseImpl;

/// Owner ids begin with random characters, which serve as the hash.
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
    /// Null: there is none, or its last reference is just being dropped.
    std::shared_ptr<LeaseImpl> find(std::string_view owner) const;
    std::vector<std::shared_ptr<LeaseImpl>> all() const;

private:
    mutable std::mutex mutex_;
    boost::unordered_flat_map<std::string_view, LeaseImpl*, OwnerHash> by_owner_;
};

}  // namespace holdfast
