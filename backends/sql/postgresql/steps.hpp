// The verbs as steps on one blocking connection: a lane runs one at a time, a worker as many as
// have queued up. Steps of one kind share a statement; names are distinct in it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "connection.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::postgresql {

/// One attempt, withdrawal, renewal or release, or leaving a line. Owns its texts, since the caller
/// may give up at its deadline while the server hangs.
struct Step {
    enum class Kind : std::uint8_t { attempt, withdraw, renew, release, leave };
    Kind kind{};
    std::string key;  ///< namespace and name
    std::string owner;
    boot_clock::time_point deadline;
    milliseconds ttl{};
    std::int64_t token = 0;
    std::int64_t since = 0;   ///< since when it waits, in the server's us; 0: nobody can tell it
    std::int64_t next = -1;   ///< what becomes of our place in line with a grant: see Sql::grant
    bool expect_free = true;  ///< false: look first, as it is probably held
    bool behind = false;      ///< another client was told of it: only stand in line
    std::int64_t ghost = 0;   ///< until when an unanswered request of this owner may still act
    Outcome how = Outcome::done;

    // --- what became of it
    decltype(spi::Attempt::outcome) outcome;
    spi::Held::Renewal renewal = spi::Held::Renewal::unknown;
    ReleaseResult released = ReleaseResult::unreachable;
    error_code error;
    std::string detail;
    std::string holder;        ///< busy: who holds it, where that was read
    std::int64_t left_us = 0;  ///< busy: for how long, at least
    bool placed = false;       ///< this client stands in line now
    bool freed = false;        ///< somebody else can have it now
    bool handed_on = false;    ///< and another client was told so
    bool done = false;         ///< answered; later stages leave it alone
};

/// The row of one name as it was read.
struct Row {
    std::string owner;
    bool owned = false, plain = true, revoked = false, placed = false;
    std::int64_t token = 0, left_us = 0, held_us = -1;
    int mark = 0;
    bool live() const noexcept { return owned && left_us > 0; }
};

/// Reads the rows of these keys, in no order; absent ones are left out.
Said look(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          std::vector<std::pair<std::string, Row>>& rows);

/// Tells of those of these names that are free whoever stands first in line, and returns those of
/// which it was another client than this one. `leave`: this one goes out of the lines. Best effort:
/// who is not told looks.
std::vector<std::string> tell(Connection&, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave);

/// So long somebody who was told is left alone by the client that told him.
inline constexpr milliseconds courtesy{20};

/// How long a waiter sleeps when nobody wakes it: until the lease ends, and at most
/// min(ttl/3, 1 s).
milliseconds look_again(std::int64_t left_us, milliseconds ttl) noexcept;

/// Runs the steps, what frees something first, and writes what became of each. Blocks at most until
/// the last deadline. A step whose deadline has passed before anything was sent has surely done
/// nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Looks at the next thousand rows and deletes those that are free after a clean release and older
/// than a day. Best effort.
void sweep(Connection&, boot_clock::time_point deadline, std::string& cursor) noexcept;

}  // namespace holdfast::postgresql
