#include "owner_state.hpp"

namespace holdfast::etcd {

std::string OwnerState::value_with(const spi::Units& u) const {
    return write_entry({owner, u, lock_delay, asked ? Entry::Flag::asked : Entry::Flag::none});
}

std::string OwnerState::waiting_value() const {
    return write_entry({owner, units, {}, asked ? Entry::Flag::asked : Entry::Flag::none});
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

OwnerStatePtr make_owner_state(const Options& o, const spi::Attempt& a) {
    auto p = std::make_shared<OwnerState>();
    p->owner = a.owner;
    p->line = line_of(o, a.name);
    p->key = p->line + p->owner;
    p->units = a.units;
    p->lock_delay = a.lock_delay;
    p->value = p->value_with(p->units);
    p->tombstone = tombstone_of(o, a.owner);
    if (o.robust && !p->units.permits()) p->marks = marks_of(o, a.name);
    return p;
}

}  // namespace holdfast::etcd
