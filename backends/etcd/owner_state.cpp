#include "owner_state.hpp"

namespace holdfast::etcd {

std::string OwnerState::value_with(const spi::Units& u) const {
    return write_entry({owner, u, lock_delay, asked ? Entry::Flag::asked : Entry::Flag::none});
}

std::string OwnerState::revoked_value() const {
    return write_entry({owner, units, lock_delay, Entry::Flag::revoked});
}

bool OwnerState::learn(std::string_view value_there) {
    const auto entry = read_entry(value_there);
    if (!entry || entry->owner != owner || entry->flag == Entry::Flag::revoked) return false;
    value = value_there;
    units = entry->units;
    asked = entry->flag == Entry::Flag::asked;
    return true;
}

}  // namespace holdfast::etcd
