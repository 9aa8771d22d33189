// The verbs as steps on one blocking connection: a lane runs one at a time, a worker all that have
// queued up. Steps of one kind share a packet and a transaction.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../common/row_rounds.hpp"
#include "connection.hpp"

namespace holdfast::mysql {

/// The rows of the table, as the rules of a name need them.
class Table final : public sql::Table {
public:
    explicit Table(Connection& c) noexcept
        : sql::Table(c.shared(), Waiters::poll), connection_(c) {}

    spi::Failure open(boot_clock::time_point deadline) override {
        return connection_.open(deadline);
    }
    sql::Reply read(const std::vector<std::string>& keys, boot_clock::time_point deadline,
                    sql::TableRows&) override;
    sql::Reply ensure(const std::vector<std::string>& keys,
                      boot_clock::time_point deadline) override;
    sql::Reply write(const std::vector<sql::Change>&, sql::Written&,
                     milliseconds patience) override;
    bool has_left(const Step&, const sql::TableRow&) const override;
    bool lay_ghost(const Step&, sql::TableRow&) override;

private:
    Connection& connection_;
};

/// Runs the steps, renewals first and then what frees a name, and writes their outcomes. Blocks
/// until the last deadline at the latest. A step whose deadline passes before anything was sent has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Looks at the next thousand rows, and deletes free ones that are older than a day and were
/// released cleanly. Best effort.
void sweep(Connection&, boot_clock::time_point deadline, std::string& cursor) noexcept;

}  // namespace holdfast::mysql
