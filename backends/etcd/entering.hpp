// The transaction that makes an owner's key, for all kinds of locks, and what its answer says. It
// is granted at once where nobody stands in the line, or where all that do are such as it may stand
// beside: other readers, or holders of permits as long as theirs and its own are within the limit.
#pragma once
#include "holdfast/lease.hpp"
#include "messages.hpp"
#include "place.hpp"

namespace holdfast::etcd {

struct Entering {
    bool queue = false;  ///< it makes a key although others are in the way
    bool list = false;   ///< tells the whole line, after what it did
    std::int64_t lease = 0;
    std::string grave;  ///< see grave_of
};
Transaction entering(const Place&, const Entering&);

struct Entered {
    enum class Outcome : std::uint8_t {
        granted,
        made,        ///< its key was made now, behind others
        stands,      ///< it was there
        busy,        ///< nothing was done
        left,        ///< its owner has left before
        other_kind,  ///< permits where a mutex is, of another limit, or the other way round
        marked,      ///< nothing was done, as the marker of permits is there
        foreign,     ///< a key that is none of ours stands at the name itself
        unreadable
    } outcome = Outcome::unreadable;
    PreviousHolder previous = PreviousHolder::unknown;
    KeyValue found;                               ///< its own, or the marker
    const std::vector<KeyValue>* line = nullptr;  ///< null: not asked for
};
Entered read_entering(const Place&, const Entering&, const Result&);

/// Takes the marker away that was left over by holders that ended by time.
Transaction clearing(const Place&, std::int64_t marker_created);
/// Nobody was there, or somebody else has cleared it or made another.
bool is_clear(const Result&, std::int64_t marker_created);

/// What stands at the name itself is as this kind of lock needs it.
std::string proper_name(const Place&);
bool is_proper(const Place&, const std::vector<KeyValue>& at_name);
/// Each request deletes the key of the place beside it; the last ones to leave a line take the
/// marker along.
void add_leaving(const std::vector<const Place*>&, std::vector<Transaction>& requests);

}  // namespace holdfast::etcd
