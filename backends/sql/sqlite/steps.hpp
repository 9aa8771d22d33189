// The verbs as steps of one transaction: the lane runs one at a time, the worker all that have
// queued up.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../common/name_text.hpp"
#include "../common/step.hpp"
#include "connection.hpp"

namespace holdfast::sqlite {

using sql::Step;

/// The row of one name, and the data beside it.
struct TableRow {
    bool present = false;
    sql::Columns columns;   ///< their span is that of `expires`
    std::int64_t last = 0;  ///< of the whole file
    int format = 0;

    /// The present holders; nullopt when the row is from another program.
    std::optional<spi::NameState> state() const;
};

/// Reads one row. SQLITE_OK, or an error code.
int look(Connection&, std::string_view key, TableRow&);

/// In a transaction: writes the state into the row. Returns SQLITE_OK, or an error code.
int write(Connection&, std::string_view key, const TableRow&, const spi::NameState&);

/// In a transaction: keeps the record of a break. Returns SQLITE_OK, or an error code.
int record(Connection&, std::string_view key, std::string_view text);

/// Microseconds for which a row with that end and ttl is still held; 0 or less: it has expired, or
/// is from before the start of the machine.
std::int64_t left_us(std::int64_t expires, std::int64_t ttl, std::int64_t now) noexcept;

/// Runs the steps in one transaction and writes their outcomes. Blocks until the last deadline at
/// the latest, unless the disk hangs. A step whose deadline passes before we have the write lock
/// has surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Deletes free rows of clean releases older than a day, among the next 256 rows. Best effort.
void sweep(Connection&, boot_clock::time_point deadline) noexcept;

}  // namespace holdfast::sqlite
