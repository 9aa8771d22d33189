// Every statement of this backend; their texts are in statements.sql and session.sql. The README
// prints those of an acquire and a release, and a test compares them with what the server really
// ran.
//
// Common to all: one statement is one transaction. It decides itself whether it is synced to the
// disk, since a session's setting would not survive a connection pooler. Time is the server's
// clock_timestamp(). Rows that another transaction has locked are skipped, so that nothing waits
// for it, except to take back what is our own, and for a moment to stand in line.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "../common/table_format.hpp"

namespace holdfast::postgresql {

enum class Sql : std::uint8_t {
    grant,    ///< name, owner, ttl ms, deadline us, client, next -> token, previous, whether a
              ///< client waits
    release,  ///< name, owner, token, mark -> name, whether a client waits; if it was ours
    hand_on,  ///< the same and client: releases and tells -> the same, whether there is more than
              ///< the columns say, whether another was notified
    grant_many,    ///< arrays of the same, but one client -> name, and the same
    release_many,  ///< arrays of the same, but for rows that somebody else has locked -> the same
    ensure,        ///< names: makes missing rows
    stand,  ///< names, since us, client, also if free: it stands in line -> names where it does
    tell,   ///< names, client, whether it leaves: see below -> name, whether another was notified
    renew,  ///< arrays: name, owner, token, ttl ms -> name, text
    withdraw,  ///< arrays: name, owners with the ends of their ghosts, last end -> name, whether it
               ///< is free and a client waits
    read,      ///< names, client -> see TableRow
    write,     ///< arrays: name, version, owner, token, expires us, acquired us, mark, previous,
               ///< revoked, text, deadline us; how it is synced, lock_timeout; array: whether it
               ///< notifies all; client -> name, whether a client waits, how many others were
               ///< notified; for rows that still have that version
    write_many,  ///< the same, but for rows that somebody else has locked
    grant_free,  ///< name, owner, ttl ms, deadline us, units, limit, whether shared: to a reader or
                 ///< to permits, if nobody has it -> token, previous, whether a client waits
    release_alone,  ///< name, owner, token, units, limit, whether shared, client: of the only
                    ///< holder, and notifies all others -> name, how many
    tell_all,       ///< names, client: notifies all others in line -> name, how many
    echo,           ///< channel: notifies it of an empty name
    list,           ///< prefix, limit -> names
    record,         ///< name, text: keeps it in a row of its own
    recorded,       ///< name -> text, for a day
    sweep,          ///< name -> last name looked at, how many were looked at
    count_
};

// The line of a name: the clients that wait for it and can be notified, each with the time since
// when the first of its callers waits. `tell` removes the client that waits longest from the line
// of a free name, and sends the name on that client's channel. Without waiters nothing is written
// into a row. `next` of a grant: -1 the client is not in line, 0 it leaves, else since when the
// next of its callers waits, so that it stands in line again. A notified client holds nothing: it
// asks like any other, and so does one that hears nothing.

/// With the client's id appended, the channel that it listens on. The payload is the name in the
/// table.
inline constexpr const char* channel = "holdfast_";
/// How long a place in line lasts, unless the client renews it.
inline constexpr std::chrono::seconds place_lasts{5};

inline constexpr sql::TableFormat table_format{"postgresql", 2};

/// An identifier as SQL has it; empty for an empty name.
std::string as_identifier(std::string_view name);

/// The statements for one table. Immutable, safe to share.
class Statements {
public:
    /// `schema`: of the table, as SQL has it (see as_identifier); empty: as in search_path.
    explicit Statements(const std::string& schema);

    const std::string& text(Sql s) const noexcept { return texts_[static_cast<std::size_t>(s)]; }
    /// How many columns its answer has.
    static int columns(Sql) noexcept;
    /// The name of the prepared statement, made from its text, so that no two versions share one.
    const std::string& name(Sql s) const noexcept { return names_[static_cast<std::size_t>(s)]; }
    const std::string& create() const noexcept { return create_; }
    /// The first statement on each connection. Parameters: the process id that the server gave us;
    /// seconds of silence until TCP's first probe, and between probes; their number.
    const std::string& hello() const noexcept { return hello_; }
    /// The same where the server's functions about itself may not be used.
    const std::string& plain_hello() const noexcept { return plain_hello_; }
    /// The table's owner, if it must not get our permissions; its code; other users that may give
    /// it triggers.
    const std::string& audit() const noexcept { return audit_; }
    /// Whether a standby may take over that lacks the last commits.
    const std::string& facts() const noexcept { return facts_; }

private:
    std::array<std::string, static_cast<std::size_t>(Sql::count_)> texts_, names_;
    std::string create_, hello_, plain_hello_, audit_, facts_;
};

}  // namespace holdfast::postgresql
