// A server that speaks PostgreSQL's protocol and answers statements with anything, and a proxy that
// changes at random what a real server answers: what is on the way to a server can do both.
#pragma once
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace postgresql_tests {

using Tcp = boost::asio::ip::tcp;

/// Accepts connections on a free loopback port, each with a thread of its own, until it is
/// destroyed.
class Acceptor {
public:
    using Serve = std::function<void(Tcp::socket&, std::size_t number)>;
    explicit Acceptor(Serve serve) : serve_(std::move(serve)) {
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
    std::string url(const std::string& query) const {
        return "postgresql://holdfast@127.0.0.1:" +
               std::to_string(acceptor_.local_endpoint().port()) + "/holdfast?sslmode=disable&" +
               query;
    }
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
    Tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
    std::atomic<bool> ending_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Tcp::socket>> sockets_;
    std::vector<std::thread> serving_;
    std::thread thread_;
};

// --- messages of the protocol

inline std::string in_bytes(std::uint32_t n, int bytes) {
    std::string out;
    while (bytes-- > 0)
        out += static_cast<char>(n >> (8U * static_cast<unsigned>(bytes)));
    return out;
}
inline std::string message(char kind, const std::string& body) {
    return kind + in_bytes(static_cast<std::uint32_t>(body.size() + 4), 4) + body;
}
inline std::string row_description(unsigned columns) {
    std::string body = in_bytes(columns, 2);
    for (unsigned i = 0; i < columns; ++i)
        body += "c" + std::to_string(i) + '\0' + in_bytes(0, 4) + in_bytes(0, 2) + in_bytes(25, 4) +
                in_bytes(0xFFFF, 2) + in_bytes(0xFFFF'FFFF, 4) + in_bytes(0, 2);
    return message('T', body);
}
using Cells = std::vector<std::optional<std::string>>;
inline std::string data_row(const Cells& cells) {
    std::string body = in_bytes(static_cast<std::uint32_t>(cells.size()), 2);
    for (const auto& cell : cells)
        body += cell ? in_bytes(static_cast<std::uint32_t>(cell->size()), 4) + *cell
                     : in_bytes(0xFFFF'FFFF, 4);
    return message('D', body);
}
inline std::string rows(const std::vector<Cells>& all, unsigned columns) {
    std::string out = row_description(columns);
    for (const Cells& cells : all)
        out += data_row(cells);
    return out + message('C', std::string("SELECT 1") + '\0');
}
inline std::string notice(const std::string& severity, const std::string& text) {
    return message('N', "S" + severity + '\0' + "V" + severity + '\0' + "C01000" + '\0' + "M" +
                            text + '\0' + '\0');
}

/// A server that lets everybody in.
struct Hostile {
    std::string greeting;     ///< sent when the client is let in
    bool introduces = false;  ///< answers the first statement of a connection as a server does
    std::string answer;       ///< to all other statements
    std::string comment;      ///< of the table
};
inline void serve(const Hostile& how, Tcp::socket& socket) {
    namespace asio = boost::asio;
    const auto take = [&](std::size_t n) {
        std::string bytes(n, '\0');
        asio::read(socket, asio::buffer(bytes));
        return bytes;
    };
    const auto number = [&] {
        std::uint32_t n = 0;
        for (const char c : take(4))
            n = n << 8U | static_cast<unsigned char>(c);
        return n;
    };
    const auto give = [&](const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); };
    const std::string ready = message('Z', "I");
    for (;;) {  // it asks for encryption first
        const std::string begin = take(number() - 4);
        if (begin.substr(0, 2) != std::string("\x04\xd2", 2)) break;
        give("N");
    }
    const auto says = [](const std::string& name, const std::string& value) {
        return message('S', name + '\0' + value + '\0');
    };
    give(message('R', in_bytes(0, 4)) + how.greeting + says("server_version", "15.3") +
         says("client_encoding", "UTF8") + says("standard_conforming_strings", "on") +
         message('K', in_bytes(4242, 4) + in_bytes(1, 4)) + ready);
    bool first = true, parsed = false, bound = false;
    for (;;) {
        const char kind = take(1)[0];
        (void)take(number() - 4);
        parsed = parsed || kind == 'P';
        bound = bound || kind == 'B';
        if (kind == 'X') return;
        if (kind != 'S' && kind != 'Q') continue;
        std::string out = parsed ? message('1', "") : "";
        if (bound) out += message('2', "");
        if (kind == 'S' && !bound)
            give(out + ready);  // only prepared
        else if (std::exchange(first, false) && how.introduces)
            give(out +
                 rows({{"4242", "f", "off", "1795475838555088", how.comment, "16400 1", "t", "",
                        "public", ""}},
                      10) +
                 ready);
        else
            give(out + how.answer + ready);
        parsed = bound = false;
    }
}

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
                    out.replace(at, n4, in_bytes(odd[below(std::size(odd))], 4).substr(4 - n4));
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

}  // namespace postgresql_tests
