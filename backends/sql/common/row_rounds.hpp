// Steps that need the whole row: it is read, judged here by the rules of a name, and written if it
// still has the version that was read. Which statements do that is up to the engine.
// tests/models/postgresql and tests/models/mysql have the protocol.
#pragma once
#include <string>
#include <vector>

#include "server.hpp"

namespace holdfast::sql {

/// The table on one blocking connection, as the rounds need it. An error of a read or of ensure()
/// leaves nothing behind but a free row.
class Table {
public:
    enum class Waiters : bool { poll, hear };
    /// `how`: whether waiters are notified.
    Table(Server& its, Waiters how) noexcept : server(its), polls(how == Waiters::poll) {}
    virtual ~Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    /// Connects, unless it is connected.
    virtual spi::Failure open(boot_clock::time_point deadline) = 0;
    /// Reads whole rows; missing ones are returned as absent.
    virtual Reply read(const std::vector<std::string>& keys, boot_clock::time_point deadline,
                       TableRows&) = 0;
    /// Makes missing rows.
    virtual Reply ensure(const std::vector<std::string>& keys, boot_clock::time_point deadline) = 0;
    /// Writes rows. Of several, those that somebody else has locked may be left out; for a single
    /// one that is waited, up to `patience`. A failure is that of all rows that are not in
    /// `Written`: in doubt if one of them is.
    virtual Reply write(const std::vector<Change>&, Written&, milliseconds patience) = 0;
    /// Where nobody else holds the name, one statement may do. True when that is its outcome.
    virtual bool alone(ServerStep&) { return false; }
    /// Puts into the row what keeps a late request of an owner that leaves from acquiring. True:
    /// it has to be written.
    virtual bool lay_ghost(const ServerStep&, TableRow&) { return false; }
    /// Whether the row says that the owner of an attempt has left.
    virtual bool has_left(const ServerStep&, const TableRow&) const { return false; }
    /// Something of these names was freed, or may be had beside what is held, and somebody waits.
    virtual void tell_all(const std::vector<std::string>& /*keys*/, boot_clock::time_point) {}

    Server& server;
    const bool polls;
};

/// Writes how a statement failed for these steps. A row that others had locked is busy for
/// attempts, unless an earlier request of the same owner may be what has locked it.
void not_run(const Server&, const Steps&, const Reply&);

/// Runs steps of any names, and writes their outcomes.
void run_rounds(Table&, Steps);

// Operators' calls (see sql::Backend), on the name as the table has it.

spi::Answer<spi::Survey> survey(Table&, const std::string& key, boot_clock::time_point deadline);
spi::Answer<spi::Survey> tell(Table&, const std::string& key, const HolderFilter&, spi::Tell,
                              boot_clock::time_point deadline);

}  // namespace holdfast::sql
