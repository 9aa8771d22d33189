// Connecting in bounded time, which libpqxx cannot: name, socket, TLS, password.
#pragma once
#include "holdfast/error.hpp"
#include "session.hpp"
#include "shared.hpp"

namespace holdfast::postgresql {

/// A connected handle, at the latest at `deadline`, or null with the reason in `why` and the words
/// in `detail`. `resolve`: whether the host's name may be looked up, which nothing can bound.
Handle connect(Shared&, boot_clock::time_point deadline, bool resolve, error_code& why,
               std::string& detail);

/// The SQLSTATE in a message of libpq in its verbose form; empty when there is none.
std::string_view state_in(std::string_view message) noexcept;
/// The first line of a message, without what libpq puts before it, and not too long.
std::string words_of(std::string_view message);

}  // namespace holdfast::postgresql
