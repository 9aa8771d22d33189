// The verbs as steps on one blocking connection: a lane runs one at a time, a worker as many as
// have queued up. Steps of one kind share a statement; names are distinct in it.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/step.hpp"
#include "connection.hpp"

namespace holdfast::postgresql {

/// What stays with an acquisition from one verb to the next.
struct Place {
    bool touched = false;    ///< something of it may be at the server
    std::int64_t ghost = 0;  ///< until when a request of its own that was not answered may act
};

struct Step : sql::Step {
    Step() = default;
    template <class Item>
    Step(Kind k, const std::string& prefix, const Item& item) : sql::Step(k, prefix, item) {
        if (item.place) ghost = static_cast<const Place*>(item.place.get())->ghost;
    }

    bool only_line = false;   ///< a withdrawal that leaves the line, and has no grant to give back
    std::int64_t since = 0;   ///< since when it waits, in the server's us; 0: nobody can tell it
    std::int64_t next = -1;   ///< what becomes of our place in line with a grant: see Sql::grant
    bool expect_free = true;  ///< false: look first, as it is probably held
    bool behind = false;      ///< another client was notified of it: only stand in line
    std::int64_t ghost = 0;   ///< until when an unanswered request of this owner may still act
    bool asked = false, called_off = false;  ///< of a grant; under the mutex of Shared

    // --- what became of it
    std::string holder;        ///< busy: its holder, where that was read
    std::int64_t left_us = 0;  ///< busy: for how long, at least
    bool placed = false;       ///< this client stands in line now
    bool handed_on = false;    ///< it was freed, and another client was notified
};

struct Row : sql::Row {
    bool placed = false;  ///< this client stands in line
};

using Rows = std::map<std::string, Row, std::less<>>;

/// Reads the rows of these keys into `rows`; absent ones are left out.
Said look(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          Rows& rows);

/// Tells of those of these names that are free whoever stands first in line, and returns those of
/// which it was another client than this one. `leave`: this one goes out of the lines. Best effort:
/// who is not told looks.
std::vector<std::string> tell(Connection&, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave);

/// How long a notified client is left alone by the client that notified it.
inline constexpr milliseconds courtesy{20};

/// How long a waiter sleeps when nobody wakes it: until the lease ends, and at most
/// min(ttl/3, 1 s).
milliseconds look_within(std::int64_t left_us, milliseconds ttl) noexcept;

/// Runs the steps, renewals first and then what frees something, and writes what became of each.
/// Blocks at most until the last deadline. A step whose deadline has passed before anything was
/// sent has surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Looks at the next thousand rows and deletes those that are free after a clean release and older
/// than a day. Best effort.
void sweep(Connection&, boot_clock::time_point deadline, std::string& cursor) noexcept;

}  // namespace holdfast::postgresql
