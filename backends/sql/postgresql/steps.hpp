// The verbs as steps on one blocking connection: a lane runs one at a time, a worker all that have
// queued up. Steps of one kind share a statement, in which names are distinct.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/name_text.hpp"
#include "../common/step.hpp"
#include "connection.hpp"

namespace holdfast::postgresql {

/// What is known of an owner, from one verb to the next.
struct OwnerState {
    bool touched = false;    ///< something of it may be at the server
    bool marked = false;     ///< it has left a mark there, since it has waited for long
    std::int64_t ghost = 0;  ///< until when an unanswered request of this owner may act
    boot_clock::time_point since = boot_clock::now();

    static OwnerState of(const std::shared_ptr<void>& place) noexcept {
        return place ? *static_cast<const OwnerState*>(place.get()) : OwnerState();
    }
};

struct Step : sql::Step {
    Step() = default;
    template <class Item>
    Step(Kind k, const std::string& prefix, const Item& item) : sql::Step(k, prefix, item) {
        const OwnerState owner_state = OwnerState::of(item.place);
        ghost = owner_state.ghost;
        if (queue) came = owner_state.since;
        marked = owner_state.marked;
    }

    boot_clock::time_point came{};  ///< since when the caller waits
    bool only_line = false;   ///< a withdrawal that leaves the line, without a grant to release
    std::int64_t since = 0;   ///< since when it waits, in the server's us; 0: it cannot be notified
    std::int64_t next = -1;   ///< what becomes of our place in line with a grant: see Sql::grant
    bool expect_free = true;  ///< false: look first, since it is probably held
    bool behind = false;      ///< another client was notified: only stand in line
    std::int64_t ghost = 0;   ///< until when an unanswered request of this owner may still act
    bool general = false;     ///< its row has more than the columns say
    bool marks = false;       ///< whether it has a mark once what was judged is written
    int misses = 0;           ///< how often others were ahead of its first mark
    bool asked = false, called_off = false;  ///< of a grant; guarded by the mutex of Shared

    // --- the outcome
    std::string holder;      ///< busy: the holder, if that was read
    bool placed = false;     ///< this client is in line now
    bool handed_on = false;  ///< it was freed, and another client was notified
};

/// The row of one name as it was read.
struct TableRow {
    bool present = false, placed = false;  ///< placed: this client stands in line
    sql::Columns columns;
    std::string version;
    std::int64_t now = 0;

    /// It has no more than the columns of a mutex.
    bool columns_only() const noexcept { return columns.text.empty(); }
    /// Of such a row: an exclusive holder, whose time has not expired.
    bool held() const noexcept { return !columns.owner.empty() && columns.expires > now; }

    /// The state; nullopt when the row is from another program.
    std::optional<spi::NameState> state() const;
};
using TableRows = std::map<std::string, TableRow, std::less<>>;

/// Reads whole rows; missing ones are returned as absent.
Said read(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          TableRows&);

/// What to write into a row, if it is unchanged since it was read.
struct Change {
    std::string key;
    const TableRow* row = nullptr;
    sql::Columns columns;
    boot_clock::time_point deadline;
    bool synced = false;
};
/// Writes rows. `done`: the names written, and whether a client waits for each. Of several, those
/// that somebody else has locked are left out; for a single one that is waited, up to `patience`.
Said write(Connection&, const std::vector<Change>&, std::map<std::string, bool, std::less<>>& done,
           milliseconds patience = milliseconds(100));

/// Runs steps that need more than the columns of a mutex, of any names: reads a row, and writes it
/// if it has not changed since.
void run_general(Connection&, std::vector<Step*> steps);

/// Notifies the other clients in the lines of these names. Best effort.
void tell_all(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline);

/// For each of these names that is free, notifies the first client in line. Returns the names for
/// which that is another client than this one. `leave`: this client leaves the lines. Best effort:
/// a client that is not notified polls.
std::vector<std::string> tell(Connection&, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave);

/// How long the notifying client leaves a name to the notified client.
inline constexpr milliseconds courtesy{20};

/// How long a waiter sleeps without being notified: until the lease ends, and at most min(ttl/3, 1
/// s).
milliseconds look_within(std::int64_t left_us, milliseconds ttl) noexcept;

/// Runs the steps, renewals first and then what frees a name, and writes their outcomes. Blocks
/// until the last deadline at the latest. A step whose deadline passes before anything was sent has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Looks at the next thousand rows, and deletes free ones that are older than a day and were
/// released cleanly. Best effort.
void sweep(Connection&, boot_clock::time_point deadline, std::string& cursor) noexcept;

}  // namespace holdfast::postgresql
