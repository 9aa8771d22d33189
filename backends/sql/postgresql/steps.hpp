// The verbs as steps on one blocking connection: a lane runs one at a time, a worker as many as
// have queued up. Steps of one kind share a statement; names are distinct in it.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/name_text.hpp"
#include "connection.hpp"

namespace holdfast::postgresql {

/// What stays with an acquisition from one verb to the next.
struct Place {
    bool touched = false;    ///< something of it may be at the server
    bool marked = false;     ///< it has left a mark there, as it has waited for long
    std::int64_t ghost = 0;  ///< until when a request of its own that was not answered may act
    boot_clock::time_point since = boot_clock::now();

    static const Place& of(const std::shared_ptr<void>& place) noexcept {
        static const Place none;
        return place ? *static_cast<const Place*>(place.get()) : none;
    }
};

struct Step : sql::Step {
    Step() = default;
    template <class Item>
    Step(Kind k, const std::string& prefix, const Item& item) : sql::Step(k, prefix, item) {
        ghost = Place::of(item.place).ghost;
        if (queue) came = Place::of(item.place).since;
        marked = Place::of(item.place).marked;
    }

    boot_clock::time_point came{};  ///< since when the caller waits
    bool only_line = false;   ///< a withdrawal that leaves the line, and has no grant to give back
    std::int64_t since = 0;   ///< since when it waits, in the server's us; 0: nobody can tell it
    std::int64_t next = -1;   ///< what becomes of our place in line with a grant: see Sql::grant
    bool expect_free = true;  ///< false: look first, as it is probably held
    bool behind = false;      ///< another client was notified of it: only stand in line
    std::int64_t ghost = 0;   ///< until when an unanswered request of this owner may still act
    bool whole = false;       ///< there is more of its row than the columns say
    bool stood = false;       ///< it had left a mark before
    bool asked = false, called_off = false;  ///< of a grant; under the mutex of Shared

    // --- what became of it
    std::string holder;      ///< busy: its holder, where that was read
    bool placed = false;     ///< this client stands in line now
    bool handed_on = false;  ///< it was freed, and another client was notified
};

/// The row of one name as it was read.
struct Row {
    enum class State : std::uint8_t { absent, free, expired, held };
    State state = State::absent;
    bool plain = true;    ///< false: there is more of it than the columns say
    bool placed = false;  ///< this client stands in line
    bool revoked = false;
    std::string owner;
    std::int64_t token = 0, left_us = 0, held_us = -1;
    int mark = 0;

    bool held() const noexcept { return state == State::held; }
    bool granted_to(const sql::Step& s) const noexcept { return token == s.token; }
};

/// Why there is nothing to renew; no error: it is held as it was granted.
inline error_code why_lost(const Row& row, const sql::Step& s) noexcept {
    if (row.granted_to(s) && row.revoked) return make_error_code(errc::revoked);
    if (row.granted_to(s) && row.held() && row.owner == s.owner) return {};
    return make_error_code(errc::lost);
}

/// The result of a release that found nothing to free.
inline ReleaseResult nothing_to_free(const Row& row, const sql::Step& s) noexcept {
    if (row.granted_to(s))
        // Free with our token: an earlier release of ours got through, unless it was broken.
        return row.state == Row::State::free && !row.revoked ? ReleaseResult::released
                                                             : ReleaseResult::already_expired;
    return row.held() ? ReleaseResult::owned_by_other : ReleaseResult::already_expired;
}

using Rows = std::map<std::string, Row, std::less<>>;

/// The row of one name, whole.
struct NameRow {
    bool present = false, placed = false;  ///< placed: this client stands in line
    sql::Columns columns;
    std::string version;
    std::int64_t now = 0;

    /// Who holds it. Nothing: the row is of another program.
    std::optional<sql::NameState> state() const;
};
using NameRows = std::map<std::string, NameRow, std::less<>>;

/// Reads rows whole; absent ones are there as such.
Said read(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          NameRows&);

/// What a row has to say from now on, if it is still as it was read.
struct Change {
    std::string key;
    const NameRow* row = nullptr;
    sql::Columns columns;
    boot_clock::time_point deadline;
    bool synced = false;
};
/// Names of those that were written, and whether somebody waits for them.
Said write(Connection&, const std::vector<Change>&, std::map<std::string, bool, std::less<>>& done);

/// The steps that need more than a mutex has in its columns, of any names: a row is read, and
/// written if nobody has changed it since.
void run_whole(Connection&, std::vector<Step*> steps);

/// Tells the clients that stand in line for these names, but this one. Best effort.
void tell_all(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline);

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
