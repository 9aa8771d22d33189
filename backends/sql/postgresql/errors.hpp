// Error codes for what can go wrong with a PostgreSQL server.
#pragma once
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::postgresql {

enum class Error {
    unresolved = 1,    ///< the host's name has no address
    refused,           ///< no connection to any of its addresses
    no_answer,         ///< no answer in time
    connecting,        ///< the server answers, and is not ready for the first statement yet
    closed,            ///< the connection broke
    starting,          ///< the server is starting, stopping or recovering
    too_many,          ///< it has no connection left
    denied,            ///< user, password, or pg_hba.conf
    no_database,       ///< the database does not exist
    read_only,         ///< a standby, or transactions are read-only
    no_table,          ///< the table is missing, and we have no permission to make it
    no_right,          ///< the table exists, and we have no permission to use it
    foreign_table,     ///< a table with that name that is not ours
    no_key,            ///< the table has lost its primary key
    untrusted_table,   ///< its owner, or its code, would get our permissions
    newer_format,      ///< made by a newer version
    older_format,      ///< made by an older version
    foreign_row,       ///< the row is another kind of lock
    timed_out,         ///< statement_timeout, lock_timeout, or cancelled by an administrator
    conflict,          ///< serialisation failure or deadlock, again and again
    no_resources,      ///< disk full, out of memory
    bad_text,          ///< the database's encoding has no such characters
    too_old,           ///< older than PostgreSQL 12
    strange_answer,    ///< rows or columns that the statement cannot have
    refused_statement  ///< any other error
};

const boost::system::error_category& category() noexcept;
error_code make(Error) noexcept;

/// The code for an SQLSTATE.
Error from_state(std::string_view state) noexcept;
/// True if an answer with that SQLSTATE proves that the statement left nothing behind. Not if the
/// server ended the connection, which it may do just after the commit.
bool rolled_back(std::string_view state) noexcept;
/// True if the server cannot serve for a moment: a caller that may wait continues to ask.
bool cannot_now(const error_code&) noexcept;
/// True if the same statement may succeed at once.
bool worth_repeating(std::string_view state) noexcept;

}  // namespace holdfast::postgresql
