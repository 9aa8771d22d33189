// TCP sockets with the settings of all backends, and connecting to a server with several addresses.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/export.hpp"
#include "holdfast/spi/failure.hpp"

namespace holdfast::spi::net {

using tcp = boost::asio::ip::tcp;

/// Non-blocking, without Nagle's delay, with a keep-alive that notices a dead peer within some 15
/// s. Programs that are started meanwhile do not inherit it. -1: see errno.
HOLDFAST_EXPORT int open_socket(const tcp& protocol) noexcept;
/// The result of connect(2), once poll() says that it has ended; 0: connected.
HOLDFAST_EXPORT int connect_error(int fd) noexcept;

/// Connects to the first of these that can be reached, and returns it. A dead one takes only its
/// share of the time. The last one has all that is left, so the caller closes the socket at the
/// deadline, which ends the call. A failure has what each of them said.
HOLDFAST_EXPORT boost::asio::awaitable<Answer<tcp::endpoint>> connect(
    tcp::socket&, const std::vector<tcp::endpoint>& all, boot_clock::time_point deadline);

}  // namespace holdfast::spi::net
