#include "four_letters.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "holdfast/spi/net/socket.hpp"
#include "holdfast/spi/net/watchdog.hpp"

namespace holdfast::zookeeper {
namespace {

struct Connection {
    explicit Connection(const boost::asio::any_io_executor& e) : socket(e) {}
    void close() noexcept {
        error_code ignored;
        socket.close(ignored);
    }
    spi::net::tcp::socket socket;
};

}  // namespace

boost::asio::awaitable<std::string> four_letters(std::shared_ptr<Shared> shared,
                                                 spi::Endpoint server, std::string word,
                                                 boot_clock::time_point deadline) {
    namespace asio = boost::asio;
    constexpr std::size_t most = 64U << 10U;
    std::string text;
    std::vector<std::string> hosts{server.host};
    auto looking = shared->names.look_up(std::move(hosts), deadline);
    const auto found = co_await std::move(looking);
    if (!found.front()) co_return text;
    std::vector<spi::net::tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, server.port);
    const auto connection = std::make_shared<Connection>(shared->engine);
    const spi::net::Watchdog<Connection> watchdog(shared->engine, deadline, connection);
    auto connecting = spi::net::connect(connection->socket, all, deadline);
    const auto reached = co_await std::move(connecting);
    if (!reached) co_return text;
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    const auto bytes = asio::buffer(word);
    co_await asio::async_write(connection->socket, bytes, token);
    auto space = asio::dynamic_buffer(text, most);
    if (!ec) co_await asio::async_read(connection->socket, space, token);
    // It answers and closes.
    if (ec != asio::error::eof) text.clear();
    co_return text;
}

}  // namespace holdfast::zookeeper
