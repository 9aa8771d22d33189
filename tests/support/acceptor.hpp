// Accepts connections in a server's place.
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test_support {

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

/// Accepts connections on a free port, each with a thread of its own, until it is destroyed. A
/// connection ends with `serve`, which may throw when the client has gone.
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

}  // namespace test_support
