// The transaction that makes an owner's key, for all kinds of locks, and its answer. It is granted
// at once if the line is empty, or if it may stand beside all that is there: other readers, or
// holders of permits as long as the sum is within the limit.
#pragma once
#include <span>

#include "holdfast/lease.hpp"
#include "messages.hpp"
#include "owner_state.hpp"

namespace holdfast::etcd {

struct Entering {
    bool queue = false;  ///< make a key even if others are in the way
    bool list = false;   ///< return the whole line, after the change
    /// Its key is made, and the line is not looked at, since a member looks at each key: where
    /// somebody in line is known not to fit, it will not either. Not for permits, whose limit is
    /// compared with that of others.
    bool behind = false;
    std::int64_t lease = 0;
};
void entering(const OwnerState&, const Entering&, Transaction);

struct Entered {
    enum class Outcome : std::uint8_t {
        granted,
        made,        ///< its key was made, behind others
        stands,      ///< its key existed
        busy,        ///< nothing was done
        left,        ///< its owner has left before
        other_kind,  ///< permits where a mutex is, another limit, or the other way round
        marked,      ///< nothing was done: the marker of permits exists
        foreign,     ///< a foreign key is at the name itself
        unreadable
    } outcome = Outcome::unreadable;
    PreviousHolder previous = PreviousHolder::unknown;
    KeyValue found;                               ///< its own key, or the marker
    const std::vector<KeyValue>* line = nullptr;  ///< null: it was not requested
};
Entered read_entering(const OwnerState&, const Entering&, const Result&);

/// Removes a marker that is left over from expired holders.
void clearing(const OwnerState&, std::int64_t marker_created, Transaction);
/// True if the line was empty, or another client has removed the marker or made another.
bool is_clear(const Result&, std::int64_t marker_created);

/// Compares: what is at the name itself is what this kind of lock needs there.
void if_proper_name(const OwnerState&, Transaction);
bool is_proper(const OwnerState&, const std::vector<KeyValue>& at_name);
/// Each request deletes the key of its place. The last ones to leave a line also delete the marker.
void add_leaving(std::span<const OwnerState* const>, std::span<Transaction> requests);

}  // namespace holdfast::etcd
