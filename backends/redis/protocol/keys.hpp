// The keys of one lock. All hash to one slot, so scripts may use them together where keys are
// spread by slot.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "../../resp/codec.hpp"
#include "../../resp/keys.hpp"

namespace holdfast::redis {

using namespace resp;

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

/// A Redis Cluster keeps the keys of this name apart: it has a "}" and no {tag} before it, or an
/// empty one.
bool in_two_slots(std::string_view prefix, std::string_view name);

/// The lock key of a state key; nullopt for other keys.
std::optional<std::string_view> lock_of_state(std::string_view key) noexcept;

}  // namespace holdfast::redis
