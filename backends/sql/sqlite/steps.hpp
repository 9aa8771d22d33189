// The verbs as steps of one transaction: the lane runs one at a time, the worker as many as have
// queued up.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../common/step.hpp"
#include "connection.hpp"

namespace holdfast::sqlite {

using sql::Step;

/// The row of one name, and what stands beside it.
struct Row : sql::Row {
    int previous = 0;
    std::int64_t last = 0;  ///< of the whole file
    int format = 0;
};

/// Reads one row. SQLITE_OK, or an error code.
int look(Connection&, std::string_view key, Row&);

/// Microseconds for which a row with that end and ttl is still held; 0 or less: it has run out, or
/// is from before the machine was started.
std::int64_t left_us(std::int64_t expires, std::int64_t ttl, std::int64_t now) noexcept;

/// How long a waiter sleeps when nobody wakes it: until the lease ends, at most a second.
milliseconds look_within(std::int64_t left_us) noexcept;

/// Runs the steps in one transaction and writes what became of each. Blocks, at most until the last
/// deadline unless the disk hangs. A step whose deadline passes before the write lock is ours has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Deletes free rows of clean releases older than a day, out of the next 256 rows. Best effort.
void sweep(Connection&, boot_clock::time_point deadline) noexcept;

}  // namespace holdfast::sqlite
