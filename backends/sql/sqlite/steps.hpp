// The verbs as steps of one transaction: the lane runs one at a time, the worker as many as have
// queued up.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../common/name_text.hpp"
#include "connection.hpp"

namespace holdfast::sqlite {

using sql::Step;

/// The row of one name, and what stands beside it.
struct Row {
    bool present = false;
    sql::Columns columns;   ///< their span is that of `expires`
    std::int64_t last = 0;  ///< of the whole file
    int format = 0;

    /// Who holds it now. Nothing: the row is of another program.
    std::optional<sql::NameState> state() const;
};

/// Reads one row. SQLITE_OK, or an error code.
int look(Connection&, std::string_view key, Row&);

/// In a transaction: has the row say what the state says. SQLITE_OK, or an error code.
int write(Connection&, std::string_view key, const Row&, const sql::NameState&);

/// Microseconds for which a row with that end and ttl is still held; 0 or less: it has run out, or
/// is from before the machine was started.
std::int64_t left_us(std::int64_t expires, std::int64_t ttl, std::int64_t now) noexcept;

/// Runs the steps in one transaction and writes what became of each. Blocks, at most until the last
/// deadline unless the disk hangs. A step whose deadline passes before the write lock is ours has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Deletes free rows of clean releases older than a day, out of the next 256 rows. Best effort.
void sweep(Connection&, boot_clock::time_point deadline) noexcept;

}  // namespace holdfast::sqlite
