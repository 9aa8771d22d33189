// Connects in bounded time, which libpqxx cannot: socket, TLS, password.
#pragma once
#include <string>

#include "holdfast/spi/failure.hpp"
#include "session.hpp"
#include "shared.hpp"

namespace holdfast::postgresql {

/// Returns a connected handle by `end`, or an error by `silence` if the server has said nothing by
/// then. `address`: empty for the Unix socket.
spi::Answer<PgHandle> connect(Shared&, const spi::Endpoint& host, const std::string& address,
                              Shared::Opening&, boot_clock::time_point silence,
                              boot_clock::time_point end);

/// The SQLSTATE in a message of libpq in its verbose form; empty if there is none.
std::string_view state_in(std::string_view message) noexcept;
/// The first line of a message, shortened, without libpq's prefix.
std::string words_of(std::string_view message);

}  // namespace holdfast::postgresql
