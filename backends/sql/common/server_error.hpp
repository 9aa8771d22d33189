// What can go wrong with a database server, the same for each engine; an engine maps its own codes
// to these.
#pragma once
#include <span>

#include "holdfast/spi/net/category.hpp"

namespace holdfast::sql {

enum class Error {
    unresolved = 1,    ///< the host's name has no address
    refused,           ///< no connection to any of its addresses
    no_answer,         ///< no answer in time
    connecting,        ///< the server answers, and is not ready for the first statement yet
    closed,            ///< the connection broke
    starting,          ///< the server is starting, stopping or recovering
    too_many,          ///< it has no connection left
    denied,            ///< user, password, or the server's rules for hosts
    no_database,       ///< the database does not exist
    read_only,         ///< a standby, or transactions are read-only
    old_primary,       ///< another server has been promoted since
    other_cluster,     ///< its data are not those of the server before it
    no_table,          ///< the table is missing, and we have no permission to make it
    no_right,          ///< the table exists, and we have no permission to use it
    foreign_table,     ///< a table with that name that is not ours
    no_key,            ///< the table has lost its primary key
    untrusted_table,   ///< its owner, or its code, would get our permissions
    newer_format,      ///< made by a newer version
    older_format,      ///< made by an older version
    foreign_row,       ///< the row is another kind of lock
    timed_out,         ///< a time-out of the server, or cancelled by an administrator
    conflict,          ///< serialisation failure or deadlock, again and again
    no_resources,      ///< disk full, out of memory
    bad_text,          ///< the database's encoding has no such characters
    too_old,           ///< older than the oldest version that the backend knows
    strange_answer,    ///< rows or columns that the statement cannot have
    strange_settings,  ///< it runs in a way that breaks the promises
    refused_statement  ///< any other error
};

/// What each means for callers and in words: the table for an engine's category.
std::span<const spi::net::Meaning> meanings() noexcept;

/// The codes of one engine, whose category has its name. Immutable.
class Errors {
public:
    explicit Errors(const char* engine) noexcept : category_(engine, meanings()) {}
    error_code make(Error e) const noexcept { return {static_cast<int>(e), category_}; }
    /// True if the server cannot serve for a moment: a caller that may wait continues to ask.
    bool cannot_now(const error_code&) const noexcept;
    /// True if another host of the URL may be the one that serves.
    bool ask_elsewhere(const error_code&) const noexcept;

private:
    const spi::net::Category category_;
};

}  // namespace holdfast::sql
