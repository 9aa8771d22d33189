// The keys of one lock. All hash to one slot, so scripts may use them together where keys are
// spread by slot.
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
    /// `all`: the other keys, too.
    void assign(std::string_view prefix, std::string_view name, bool all = true);
    /// Adds them in the order that scripts expect.
    void add_to(Command&) const;
    /// The same, and the key of readers and permits, whose text `parts` must live as long as the
    /// command.
    void add_all_to(Command&, std::string& parts) const;
};

/// "{key}:hf:X", or "{tag}:hf:X:key" for a key with a tag of its own.
void sibling(std::string& out, std::string_view key, char which);
/// Where the last break of a name is recorded, and for how long.
std::string record_key(std::string_view prefix, std::string_view name);
inline constexpr const char* record_seconds = "86400";
/// True for names that look like one of our own sibling keys.
bool reserved(std::string_view prefix, std::string_view name) noexcept;
/// The lock key of a state key; nullopt for other keys.
std::optional<std::string_view> lock_of_state(std::string_view key) noexcept;
/// Escapes text so that SCAN's MATCH takes it literally.
std::string literal_pattern(std::string_view);

}  // namespace holdfast::redis
