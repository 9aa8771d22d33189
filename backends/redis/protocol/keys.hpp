// The keys of one lock. All of them hash to one slot, so that scripts may use them together
// wherever keys are spread by slot.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "../wire/codec.hpp"

namespace holdfast::redis {

/// The lock's own key is namespace + name, as other clients of the well-known pattern write it.
struct Keys {
    std::string lock, state, queue, waiters, tombs;
    /// `all`: the lock's own key is not enough.
    void assign(std::string_view prefix, std::string_view name, bool all = true);
    /// In the order in which scripts take them.
    void add_to(Command&) const;
    /// The same, and that of readers and permits, whose text is to live as long as the command.
    void add_all_to(Command&, std::string& parts) const;
};

/// "{key}:hf:X", or "{tag}:hf:X:key" for a key with a tag of its own.
void sibling(std::string& out, std::string_view key, char which);
/// Names that look like one of our own sibling keys.
bool reserved(std::string_view prefix, std::string_view name) noexcept;
/// The lock key to which a state key belongs; nothing when it is no state key.
std::optional<std::string_view> lock_of_state(std::string_view key) noexcept;
/// Text for SCAN's MATCH that stands for itself.
std::string literal_pattern(std::string_view);

}  // namespace holdfast::redis
