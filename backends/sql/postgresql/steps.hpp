// The verbs as steps on one blocking connection: a lane runs one at a time, a worker all that have
// queued up. Steps of one kind share a statement, in which names are distinct.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../common/row_rounds.hpp"
#include "connection.hpp"

namespace holdfast::postgresql {

using sql::Change, sql::Steps, sql::TableRow, sql::TableRows;

/// Reads whole rows; missing ones are returned as absent.
Said read(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline,
          TableRows&);

/// The rows of the table, as the rules of a name need them.
class Table final : public sql::Table {
public:
    explicit Table(Connection& c) noexcept
        : sql::Table(c.shared(), Waiters::hear), connection_(c) {}

    spi::Failure open(boot_clock::time_point deadline) override {
        return connection_.open(deadline);
    }
    sql::Reply read(const std::vector<std::string>& keys, boot_clock::time_point deadline,
                    TableRows&) override;
    sql::Reply ensure(const std::vector<std::string>& keys,
                      boot_clock::time_point deadline) override;
    sql::Reply write(const std::vector<Change>&, sql::Written&, milliseconds patience) override;
    bool alone(Step&) override;
    void tell_all(const std::vector<std::string>& keys, boot_clock::time_point) override;

private:
    Connection& connection_;
};

/// Runs steps that need more than the columns of a mutex, of any names: reads a row, and writes it
/// if it has not changed since.
void run_general(Connection&, Steps steps);

/// Notifies the other clients in the lines of these names. Best effort.
void tell_all(Connection&, const std::vector<std::string>& keys, boot_clock::time_point deadline);

/// For each of these names that is free, notifies the first client in line. Returns the names for
/// which that is another client than this one. `leave`: this client leaves the lines. Best effort:
/// a client that is not notified polls.
std::vector<std::string> tell(Connection&, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave);

/// How long the notifying client leaves a name to the notified client.
inline constexpr milliseconds courtesy{20};

/// Runs the steps, renewals first and then what frees a name, and writes their outcomes. Blocks
/// until the last deadline at the latest. A step whose deadline passes before anything was sent has
/// surely done nothing.
void run_steps(Connection&, std::span<Step* const>);

/// Looks at the next thousand rows, and deletes free ones that are older than a day and were
/// released cleanly. Best effort.
void sweep(Connection&, boot_clock::time_point deadline, std::string& cursor) noexcept;

}  // namespace holdfast::postgresql
