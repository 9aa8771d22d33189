// One connection through the proxy: two sockets and, for each direction, the bytes under way.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "holdfast/lab/fault.hpp"

namespace holdfast::lab::detail {

using Tcp = boost::asio::ip::tcp;

/// Bytes that were read together and the time from which they may be forwarded.
struct Piece {
    std::string bytes;
    std::size_t begin = 0;  // what lies before it has been forwarded or dropped
    std::chrono::steady_clock::time_point due;
};

/// One direction of a connection.
struct Pipe {
    Pipe(Tcp::socket& source, Tcp::socket& destination)
        : from(source), to(destination), timer(source.get_executor()) {}

    Tcp::socket& from;
    Tcp::socket& to;
    boost::asio::steady_timer timer;
    std::deque<Piece> queue;
    std::size_t queued = 0;
    std::uint64_t forwarded = 0;
    std::uint64_t swallowed = 0;
    bool waiting_read = false;
    bool waiting_write = false;
    bool timer_armed = false;
    bool held = false;        // something to read has arrived during a stall
    bool ended = false;       // the source has sent its end of file
    bool end_passed = false;  // and the destination has been told
};

struct Link {
    Link(std::uint64_t number, Tcp::socket accepted)
        : id(number), client(std::move(accepted)), server(client.get_executor()) {}

    Pipe& pipe(Direction direction) {
        return direction == Direction::to_server ? to_server : to_client;
    }

    const std::uint64_t id;
    Tcp::socket client;
    Tcp::socket server;
    Pipe to_server{client, server};
    Pipe to_client{server, client};
    bool open = true;
    bool connecting = false;
    bool connected = false;
};

}  // namespace holdfast::lab::detail
