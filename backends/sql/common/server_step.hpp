// The verbs as steps on a connection to a database server, and the rows that they meet there.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "name_text.hpp"
#include "step.hpp"

namespace holdfast::sql {

/// What is known of an owner, from one verb to the next.
struct OwnerState {
    bool touched = false;    ///< something of it may be at the server
    bool marked = false;     ///< it has left a mark there, since it has waited for long
    bool waits = false;      ///< it was busy, so it probably still is
    std::int64_t ghost = 0;  ///< until when an unanswered request of this owner may act
    boot_clock::time_point since = boot_clock::now();

    static OwnerState of(const std::shared_ptr<void>& place) noexcept {
        return place ? *static_cast<const OwnerState*>(place.get()) : OwnerState();
    }
    static OwnerState& in(std::shared_ptr<void>& place) {
        if (!place) place = std::make_shared<OwnerState>();
        return *static_cast<OwnerState*>(place.get());
    }
};

struct ServerStep : Step {
    ServerStep() = default;
    template <class Item>
    ServerStep(Kind k, const std::string& prefix, const Item& item) : Step(k, prefix, item) {
        const OwnerState owner_state = OwnerState::of(item.place);
        ghost = owner_state.ghost;
        if (queue) came = owner_state.since;
        marked = owner_state.marked;
        expect_free = !owner_state.waits;
    }

    boot_clock::time_point came{};  ///< since when the caller waits
    std::int64_t ghost = 0;   ///< until when an unanswered request of this owner may still act
    bool expect_free = true;  ///< false: look first, since it is probably held
    bool general = false;     ///< its row has more than the columns say
    bool marks = false;       ///< whether it has a mark once what was judged is written
    int misses = 0;           ///< how often others were ahead of its first mark
    bool asked = false, called_off = false;  ///< of a grant; guarded by the mutex of Server

    // --- of a line of clients that the server notifies
    bool only_line = false;  ///< a withdrawal that leaves the line, without a grant to release
    std::int64_t since = 0;  ///< since when it waits, in the server's us; 0: it cannot be notified
    std::int64_t next = -1;  ///< what becomes of our place in line with a grant
    bool behind = false;     ///< another client was notified: only stand in line

    // --- the outcome
    std::string holder;      ///< busy: the holder, if that was read
    bool placed = false;     ///< this client is in line now
    bool handed_on = false;  ///< it was freed, and another client was notified
};

using Steps = std::vector<ServerStep*>;

/// The row of one name as it was read.
struct TableRow {
    bool present = false, placed = false;  ///< placed: this client stands in line
    Columns columns;
    std::string version;
    std::string gone;  ///< owners that left while a request of theirs may still act
    std::int64_t now = 0;

    /// It has no more than the columns of a mutex.
    bool columns_only() const noexcept { return columns.text.empty(); }
    /// Of such a row: an exclusive holder, whose time has not expired.
    bool held() const noexcept { return !columns.owner.empty() && columns.expires > now; }

    /// The state; nullopt when the row is from another program.
    std::optional<spi::NameState> state() const {
        auto found = read_state(columns, now, false);
        if (found) found->least_token = now;
        return found;
    }
};
using TableRows = std::map<std::string, TableRow, std::less<>>;

/// What to write into a row, if it is unchanged since it was read.
struct Change {
    std::string key;
    const TableRow* row = nullptr;
    Columns columns;
    boot_clock::time_point deadline;
    bool synced = false;
    bool tells = false;  ///< others may be granted the name once this is written
};
/// The names written, and whether a client waits for each and was not notified of it.
using Written = std::map<std::string, bool, std::less<>>;

/// How a statement ended.
struct Reply {
    spi::Failure failed;       ///< none: it was answered
    bool nothing_done = true;  ///< with a failure: surely nothing was changed
};

/// A row that is free, or was, and could not be had: somebody is just at it, or has locked it.
inline constexpr milliseconds just_missed{10};

/// How long a waiter sleeps without being notified: until the lease ends, and at most as long as
/// any waiter.
inline milliseconds look_within(std::int64_t left_us, milliseconds ttl) noexcept {
    const auto longest = std::max(spi::Attempt::Busy::unnotified(ttl), milliseconds(1));
    return std::clamp(milliseconds(left_us / 1000 + 1), milliseconds(1), longest);
}

inline bool is_attempt(const ServerStep* s) noexcept {
    return s->kind == Step::Kind::attempt;
}

inline Steps still_open(const Steps& steps) {
    Steps open;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(open),
                 [](const ServerStep* s) { return !s->done; });
    return open;
}

inline boot_clock::time_point last_deadline(const Steps& steps) {
    auto last = boot_clock::time_point::min();
    for (const ServerStep* s : steps)
        last = std::max(last, s->deadline);
    return last;
}

inline std::vector<std::string> keys_of(const Steps& steps) {
    std::vector<std::string> keys;
    for (const ServerStep* s : steps)
        keys.push_back(s->key);
    return keys;
}

}  // namespace holdfast::sql
