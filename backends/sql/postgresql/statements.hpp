// Every statement of this backend, in one place: the README prints those of an acquire and a
// release, and a test compares them with what the server really ran.
//
// What holds for all of them: one statement is one transaction; whether it is synced to the disk is
// decided inside it, as a setting of the session would not survive a connection pooler; time is the
// server's clock_timestamp(); rows that somebody else has locked are passed over, so that nothing
// here waits for a foreign transaction, except to take back what is our own.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace holdfast::postgresql {

enum class Sql : std::uint8_t {
    grant,         ///< name, owner, ttl ms, deadline us -> token, previous
    release,       ///< name, owner, token, mark -> one row when it was ours
    grant_many,    ///< arrays of the same -> name, token, previous
    release_many,  ///< arrays of the same -> name
    look,          ///< names -> see Row
    ensure,        ///< names: makes the rows that are missing
    want,          ///< names, ms: somebody waits -> names that are still held
    renew,         ///< arrays: name, owner, token, ttl ms -> name
    withdraw,      ///< arrays: name, owners with the ends of their ghosts, last end -> name
    revoke,        ///< name, token -> one row
    revoke_now,    ///< the same, and it is free
    list,          ///< prefix, limit -> names
    sweep,         ///< name -> last name looked at, how many were looked at
    count_
};

/// mark: what the next holder is told: 0 none, 1 released, 2 abandoned, 3 crashed.
inline constexpr int mark_released = 1, mark_abandoned = 2, mark_crashed = 3;

/// The channel on which a release tells those who wait; the payload is the name in the table.
inline constexpr const char* channel = "holdfast_lease";

/// What the table's comment begins with; the number is the layout's format.
inline constexpr const char* table_comment = "Holdfast leases, format 1";

/// The statements for one table. Immutable, safe to share.
class Statements {
public:
    /// `schema`: of the table; empty: as search_path says.
    explicit Statements(const std::string& schema);

    const std::string& text(Sql s) const noexcept { return texts_[static_cast<std::size_t>(s)]; }
    /// The name of the prepared statement: made of its text, so that no two versions share one.
    const std::string& name(Sql s) const noexcept { return names_[static_cast<std::size_t>(s)]; }
    const std::string& create() const noexcept { return create_; }
    /// Asked first on each connection. One parameter: the process id that the server gave us.
    const std::string& hello() const noexcept { return hello_; }

private:
    std::array<std::string, static_cast<std::size_t>(Sql::count_)> texts_, names_;
    std::string create_, hello_;
};

}  // namespace holdfast::postgresql
