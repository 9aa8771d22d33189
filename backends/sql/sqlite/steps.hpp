// The verbs as steps of one transaction: the lane runs one at a time, the worker as many as have
// queued up.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "connection.hpp"
#include "holdfast/spi/backend.hpp"

namespace holdfast::sqlite {

/// One attempt, withdrawal, renewal or release. Owns its texts, since the caller may give up at its
/// deadline while a disk hangs.
struct Step {
    enum class Kind : std::uint8_t { attempt, withdraw, renew, release };
    Kind kind{};
    std::string key;  ///< namespace and name
    std::string owner;
    boot_clock::time_point deadline;
    milliseconds ttl{};
    std::int64_t token = 0;
    bool queue = false;
    Outcome how = Outcome::done;

    // --- what became of it
    decltype(spi::Attempt::outcome) outcome;
    spi::Held::Renewal renewal = spi::Held::Renewal::unknown;
    ReleaseResult released = ReleaseResult::unreachable;
    error_code error;
    std::string detail;
    bool freed = false;  ///< somebody else can have it now
    bool done = false;   ///< answered; later stages leave it alone
};

/// The row of one name, as the state machine sees it.
struct Row {
    enum class State : std::uint8_t { absent, free, expired, held };
    State state = State::absent;
    bool plain = true;  ///< false: another kind of lock keeps this row
    std::string owner;
    std::int64_t token = 0, left_us = 0, held_us = -1;
    int mark = 0, previous = 0;
    bool revoked = false;
    std::int64_t last = 0;  ///< of the whole file
    int format = 0;
};

/// Reads one row. SQLITE_OK, or an error code.
int look(Connection&, std::string_view key, Row&);

/// How long a waiter sleeps when nobody wakes it: until the lease ends, at most a second.
milliseconds look_again(std::int64_t left_us) noexcept;

/// Runs the steps in one transaction and writes what became of each. Blocks, at most until the last
/// deadline unless the disk hangs. A step whose deadline passes before the write lock is ours has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Deletes free rows of clean releases older than a day, out of the next 256 rows. Best effort.
void sweep(Connection&, boot_clock::time_point deadline) noexcept;

}  // namespace holdfast::sqlite
