// Connects in bounded time, which libpqxx cannot: name, socket, TLS, password.
#pragma once
#include <optional>

#include "holdfast/spi/failure.hpp"
#include "session.hpp"
#include "shared.hpp"

namespace holdfast::postgresql {

/// Returns a connected handle by `deadline`. `look_up`: until when to wait for the host's address,
/// whose look-up nothing can bound; none: no look-up.
spi::Answer<PgHandle> connect(Shared&, Shared::Opening&, boot_clock::time_point deadline,
                              std::optional<boot_clock::time_point> look_up);

/// The SQLSTATE in a message of libpq in its verbose form; empty if there is none.
std::string_view state_in(std::string_view message) noexcept;
/// The first line of a message, shortened, without libpq's prefix.
std::string words_of(std::string_view message);

}  // namespace holdfast::postgresql
