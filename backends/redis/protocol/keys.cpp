#include "keys.hpp"

#include "../cluster/slots.hpp"

namespace holdfast::redis {

void Keys::assign(std::string_view prefix, std::string_view name, bool all) {
    lock.assign(prefix);
    lock += name;
    if (!all) return;
    sibling(state, lock, 's');
    sibling(queue, lock, 'q');
    sibling(waiters, lock, 'w');
    sibling(tombs, lock, 'x');
}

bool in_two_slots(std::string_view prefix, std::string_view name) {
    Keys keys;
    keys.assign(prefix, name);
    return slot_of(keys.lock) != slot_of(keys.state);
}

void Keys::add_to(Command& c) const {
    c.add(lock).add(state).add(queue).add(waiters).add(tombs);
}

void Keys::add_all_to(Command& c, std::string& parts) const {
    add_to(c);
    sibling(parts, lock, 'r');
    c.add(parts);
}

std::optional<std::string_view> lock_of_state(std::string_view key) noexcept {
    if (!key.starts_with('{')) return std::nullopt;
    const auto at = key.find("}:hf:s");
    if (at == key.npos) return std::nullopt;
    const auto rest = key.substr(at + 6);
    if (rest.empty()) return key.substr(1, at - 1);
    if (rest.front() != ':') return std::nullopt;
    return rest.substr(1);
}

}  // namespace holdfast::redis
