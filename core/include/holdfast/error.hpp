// Errors: native codes in, portable conditions out. Compare with the conditions, log the codes.
#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "holdfast/export.hpp"

namespace holdfast {

using boost::system::error_code;
template <class T>
using result = boost::system::result<T>;

/// What a caller can act on. A *condition*: write `if (ec == errc::timed_out)`; backends keep their
/// own native codes behind it.
enum class errc {
    // somebody else has it
    contended = 1,  ///< held by another and `wait` was zero
    timed_out,      ///< still held by another when `wait` ended; nothing is held or queued
    cancelled,      ///< stop_token or cancellation slot; nothing is held or queued
    // ask again later
    unavailable,  ///< the server did not answer in time, or refused the connection
    no_quorum,    ///< fewer than a majority of nodes granted
    in_doubt,     ///< the server may have acted; Holdfast is undoing it, at the latest the ttl does
    // this lease is over
    lost,      ///< validity ended before the call
    revoked,   ///< broken by an operator; nobody else gets the name before valid_until()
    not_held,  ///< the lease is empty or released
    // fix the program or the configuration
    denied,          ///< wrong password or missing right: trying again does not help
    not_supported,   ///< this backend does not have that capability or option
    kind_mismatch,   ///< the name exists at the server as something that is not this lock
    bad_name,        ///< empty, longer than 512 bytes, not UTF-8, or reserved by the backend
    bad_config,      ///< URL, file or option; the words are in Diagnostics
    would_deadlock,  ///< the call would wait for what only its caller can end
    closed,          ///< the client was closed
    forked           ///< the handle belongs to the parent process
};

/// Core's own category; its codes are the values of errc.
HOLDFAST_EXPORT const boost::system::error_category& category() noexcept;
/// As std::make_error_code(std::errc): a code of core's category.
HOLDFAST_EXPORT error_code make_error_code(errc) noexcept;
HOLDFAST_EXPORT boost::system::error_condition make_error_condition(errc) noexcept;

/// The words that do not fit into a code: one entry per mistake or per failed server.
/// Secrets never appear here. Not thread-safe.
struct Diagnostics {
    struct Entry {
        std::string where;   ///< "holdfast.toml:12:5 backends.a.ttl", "redis://cache1:6379"
        std::string what;    ///< what happened, in one sentence
        std::string remedy;  ///< what to do about it; may be empty
    };
    std::vector<Entry> entries;

    /// Servers have a say in these words, and terminals show them: control characters are replaced,
    /// and what is longer than 4096 bytes is cut.
    HOLDFAST_EXPORT void add(std::string where, std::string what, std::string remedy = {});
    /// All entries, one line each (the remedy indented below), without a final newline.
    HOLDFAST_EXPORT std::string text() const;
};

}  // namespace holdfast

/// Both kinds of code compare with errc: `ec == errc::lost` for an error_code, and for the
/// std::error_code that it converts to.
template <>
struct boost::system::is_error_condition_enum<holdfast::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<holdfast::errc> : std::true_type {};
