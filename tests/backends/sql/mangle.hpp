// A proxy that changes at random what a real server answers, as what is on the way to it can do.
#pragma once
#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acceptor.hpp"

namespace sql_tests {

using test_support::Acceptor;
using test_support::Tcp;

/// Forwards, and changes one answer in `one_in`.
inline void mangle(Acceptor& acceptor, Tcp::socket& client, std::uint16_t port,
                   std::mt19937_64 random, unsigned one_in) {
    namespace asio = boost::asio;
    Tcp::socket fresh(client.get_executor());
    fresh.connect({asio::ip::address_v4::loopback(), port});
    const auto server = acceptor.adopt(std::move(fresh));
    std::thread to_server([&client, server] {
        std::vector<char> bytes(65536);
        boost::system::error_code ec;
        for (;;) {
            const auto n = client.read_some(asio::buffer(bytes), ec);
            if (!ec) asio::write(*server, asio::buffer(bytes.data(), n), ec);
            if (ec) break;
        }
        server->shutdown(Tcp::socket::shutdown_both, ec);
    });
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    std::vector<char> bytes(65536);
    boost::system::error_code ec;
    for (auto skip = below(6);;) {
        const auto n = server->read_some(asio::buffer(bytes), ec);
        if (ec) break;
        std::string out(bytes.data(), n);
        if (skip > 0) {
            --skip;
        } else if (below(one_in) == 0) {
            const auto at = below(out.size());
            switch (below(7)) {
                case 0:
                    out[at] = static_cast<char>(random());
                    break;
                case 1:
                    out.resize(at);
                    break;
                case 2:
                    out += out;
                    break;
                case 3:
                    out.erase(at, 1 + below(9));
                    break;
                case 4:  // a number for many digits
                    out.replace(at, 1, "99999999999999999999");
                    break;
                case 5: {  // a length, or how many columns
                    constexpr std::uint32_t odd[] = {0, 1, 3, 0xFFFF, 0x7FFF'FFFF, 0xFFFF'FFFF};
                    const auto n4 = std::min<std::size_t>(4, out.size() - at);
                    const std::uint32_t value = odd[below(std::size(odd))];
                    for (std::size_t i = 0; i < n4; ++i)
                        out[at + i] = static_cast<char>(value >> (8 * i));
                    break;
                }
                default:
                    out.insert(at, std::string(1 + below(40), static_cast<char>(random())));
            }
        }
        asio::write(client, asio::buffer(out), ec);
        if (ec) break;
    }
    client.shutdown(Tcp::socket::shutdown_both, ec);
    server->shutdown(Tcp::socket::shutdown_both, ec);
    to_server.join();
}

}  // namespace sql_tests
