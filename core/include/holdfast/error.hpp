// Errors. Compare with the portable conditions, and log the native codes.
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

/// The *conditions* that a caller can act on: write `if (ec == errc::timed_out)`. The codes behind
/// them are the backends' own.
enum class errc {
    // another client holds it
    contended = 1,  ///< held by another client, and `wait` was zero
    timed_out,      ///< still held by another client when `wait` ended; nothing is held or queued
    cancelled,      ///< by stop_token or cancellation slot; nothing is held or queued
    // try again later
    unavailable,  ///< the server did not answer in time, or refused the connection
    no_quorum,    ///< fewer than a majority of nodes granted
    in_doubt,     ///< the server may have granted; Holdfast undoes that, at the latest the ttl does
    // this lease is over
    lost,      ///< validity ended, or the server reported the loss
    revoked,   ///< broken by an operator; free at valid_until(), or at once (BreakOptions::now)
    not_held,  ///< the lease is empty or released, or the name has no such holder
    // fix the program or the configuration
    denied,         ///< wrong password or missing permission: a retry does not help
    not_supported,  ///< this backend does not have that capability or option
    kind_mismatch,  ///< at the server the name is another kind of lock, or no lock
    bad_name,  ///< empty, longer than 512 bytes, not UTF-8, with a NUL, or reserved by the backend
    bad_config,      ///< in a URL, file or option; the details are in Diagnostics
    would_deadlock,  ///< the call would wait for what only its caller can end
    closed,          ///< the client was closed
    forked           ///< after fork() the handle is unusable in the child
};

/// Core's own category: the values of errc, and reasons for a loss with the condition errc::lost.
HOLDFAST_EXPORT const boost::system::error_category& category() noexcept;
/// A code of core's category, as std::make_error_code(std::errc) makes one.
HOLDFAST_EXPORT error_code make_error_code(errc) noexcept;
HOLDFAST_EXPORT boost::system::error_condition make_error_condition(errc) noexcept;
/// Whether no server answered. False for what a server said, also where it cannot serve now: its
/// message is the reason.
HOLDFAST_EXPORT bool is_silence(const error_code&) noexcept;

/// Details that do not fit into a code: one entry per mistake or per failed server. Holds no
/// secrets. Not thread-safe.
struct Diagnostics {
    struct Entry {
        std::string where;   ///< "holdfast.toml:12:5 backends.a.ttl", "redis://cache1:6379"
        std::string what;    ///< what happened, in one sentence
        std::string remedy;  ///< what to do about it; may be empty
    };
    std::vector<Entry> entries;

    /// Replaces control characters, and cuts each text at 4096 bytes: servers write parts of them,
    /// and terminals show them.
    HOLDFAST_EXPORT void add(std::string where, std::string what, std::string remedy = {});
    /// All entries, one line each with the remedy indented below it, without a final newline.
    HOLDFAST_EXPORT std::string text() const;
};

}  // namespace holdfast

/// Makes both kinds of code comparable with errc: `ec == errc::lost` works for an error_code, and
/// for the std::error_code that it converts to.
template <>
struct boost::system::is_error_condition_enum<holdfast::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<holdfast::errc> : std::true_type {};
