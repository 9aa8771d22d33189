// Accepts a backend's connections in a server's place, and a proxy that changes at random what a
// real server answers: what is on the way to a server can do both.
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sql_tests {

using Tcp = boost::asio::ip::tcp;

/// An address of this machine that is not the loopback's; empty without a network.
inline std::string outer_address() {
    // Connecting a datagram socket sends nothing, and says which address would be used.
    const int s = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    ::inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    socklen_t size = sizeof to;
    std::array<char, INET_ADDRSTRLEN> text{};
    if (::connect(s, reinterpret_cast<sockaddr*>(&to), size) == 0 &&
        ::getsockname(s, reinterpret_cast<sockaddr*>(&to), &size) == 0)
        ::inet_ntop(AF_INET, &to.sin_addr, text.data(), text.size());
    ::close(s);
    return text.data();
}

/// Accepts connections on a free port, each with a thread of its own, until it is
/// destroyed.
class Acceptor {
public:
    using Serve = std::function<void(Tcp::socket&, std::size_t number)>;
    explicit Acceptor(Serve serve, const std::string& address = "127.0.0.1")
        : serve_(std::move(serve)), acceptor_(io_, {boost::asio::ip::make_address(address), 0}) {
        thread_ = std::thread([this] { accept(); });
    }
    ~Acceptor() {
        ending_ = true;
        boost::system::error_code ignored;
        Tcp::socket last(io_);
        last.connect(acceptor_.local_endpoint(), ignored);
        thread_.join();
        {
            const std::lock_guard hold(mutex_);
            for (auto& socket : sockets_)
                socket->shutdown(Tcp::socket::shutdown_both, ignored);
        }
        for (auto& t : serving_)
            t.join();
    }
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;
    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    /// Destroying ends this socket as well.
    std::shared_ptr<Tcp::socket> adopt(Tcp::socket socket) {
        auto shared = std::make_shared<Tcp::socket>(std::move(socket));
        const std::lock_guard hold(mutex_);
        sockets_.push_back(shared);
        return shared;
    }

private:
    void accept() {
        for (std::size_t number = 1;; ++number) {
            boost::system::error_code ec;
            Tcp::socket socket(io_);
            acceptor_.accept(socket, ec);
            if (ending_) return;
            if (ec) continue;
            auto shared = adopt(std::move(socket));
            serving_.emplace_back([this, shared, number] {
                try {
                    serve_(*shared, number);
                } catch (const std::exception&) {  // the client has gone
                }
                boost::system::error_code ignored;
                shared->shutdown(Tcp::socket::shutdown_both, ignored);
            });
        }
    }

    const Serve serve_;
    boost::asio::io_context io_;
    Tcp::acceptor acceptor_;
    std::atomic<bool> ending_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Tcp::socket>> sockets_;
    std::vector<std::thread> serving_;
    std::thread thread_;
};

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
