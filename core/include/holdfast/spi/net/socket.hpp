// TCP sockets as every backend wants them, and the way to a server that has several addresses.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/export.hpp"

namespace holdfast::spi::net {

using tcp = boost::asio::ip::tcp;

/// Non-blocking, without delay, with a keep-alive that notices a dead peer within some 15 s; no
/// program that is started meanwhile inherits it. -1: see errno.
HOLDFAST_EXPORT int open_socket(const tcp& protocol) noexcept;
/// What connect(2) came to once poll() says that it is over; 0: connected.
HOLDFAST_EXPORT int connect_error(int fd) noexcept;

/// Connects to the first of these that can be reached, and says which. A dead one takes its share
/// of the time only; the last one has all that is left, so the caller closes the socket at the
/// deadline. Closing it ends all. `detail`: what each of them said.
HOLDFAST_EXPORT boost::asio::awaitable<result<tcp::endpoint>> connect(
    tcp::socket&, const std::vector<tcp::endpoint>& all, boot_clock::time_point deadline,
    std::string* detail);

}  // namespace holdfast::spi::net
