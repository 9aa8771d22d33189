// The exit codes of every subcommand: part of the interface, documented in holdfast(1).
#pragma once
#include "holdfast/error.hpp"

namespace holdfast::cli {

enum Exit : int {
    exit_ok = 0,
    exit_no = 1,  ///< the question was answered with no: nothing to break, not broken
    exit_slow = 1,
    exit_unsafe = 2,
    exit_unknown = 3,  ///< of `doctor`
    exit_usage = 64,
    exit_bad_name = 65,
    exit_unavailable = 69,
    exit_internal = 70,
    exit_output = 74,  ///< what was asked for could not be written
    exit_contended = 75,
    exit_lost = 76,
    exit_denied = 77,
    exit_config = 78,
    exit_not_executable = 126,
    exit_not_found = 127
};

/// Which of them stands for an error of the library.
inline int exit_code(error_code ec) {
    if (!ec) return exit_ok;
    if (ec == errc::contended || ec == errc::timed_out) return exit_contended;
    if (ec == errc::unavailable || ec == errc::no_quorum || ec == errc::in_doubt ||
        ec == errc::kind_mismatch)
        return exit_unavailable;
    if (ec == errc::lost || ec == errc::revoked) return exit_lost;
    if (ec == errc::not_held) return exit_no;
    if (ec == errc::denied) return exit_denied;
    if (ec == errc::bad_name) return exit_bad_name;
    if (ec == errc::bad_config || ec == errc::not_supported) return exit_config;
    return exit_internal;
}

}  // namespace holdfast::cli
