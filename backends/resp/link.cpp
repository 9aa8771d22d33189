#include "link.hpp"

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"
#include "handshake.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/net/socket.hpp"
#include "holdfast/spi/net/watchdog.hpp"

namespace holdfast::resp {
namespace {

constexpr std::size_t most_buffered = 8U << 20U;  // operators' lists are long; grants are short

std::string words(const char* what, const std::string& where) {
    return std::string(what) + " " + where;
}

}  // namespace

Link::Link(asio::any_io_executor executor, std::shared_ptr<Server> server, tls::Context* tls)
    : executor_(std::move(executor)),
      server_(std::move(server)),
      context_(tls),
      socket_(executor_),
      codec_(most_buffered) {}

void Link::close() noexcept {
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
}

asio::awaitable<error_code> Link::open(boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    const spi::net::Watchdog<Link> watchdog(executor_, deadline, self);
    error_code ec = co_await connect(deadline, detail);
    if (!ec && context_ != nullptr) ec = co_await secure(detail);
    if (!ec) ec = co_await introduce(detail);
    if (ec && watchdog.fired()) {
        ec = make(Error::no_answer);
        *detail = words("no answer from", server_->target.display);
    }
    if (ec) close();
    co_return ec;
}

std::string Link::unanswered() const {
    if (resolving_)
        return server_->target.host + ": " + spi::HostNames::words(asio::error::timed_out);
    return words("no answer from", server_->target.display);
}

asio::awaitable<error_code> Link::connect(boot_clock::time_point deadline, std::string* detail) {
    const Target& o = server_->target;
    std::vector<std::string> hosts{o.host};
    // A little less than all, so that the error can name the server that did not answer.
    const auto soon = deadline - (deadline - boot_clock::now()) / 10;
    auto looking = server_->names.look_up(std::move(hosts), soon);
    resolving_ = true;
    const auto found = co_await std::move(looking);
    resolving_ = false;
    if (!found.front()) {
        *detail = o.host + ": " + spi::HostNames::words(found.front().error());
        co_return make(Error::unresolved);
    }
    std::vector<tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, o.port);
    if (closed_) co_return make(Error::refused);
    auto task = spi::net::connect(socket_, all, deadline, detail);
    const auto reached = co_await std::move(task);
    if (!reached) co_return make(Error::refused);
    server_->reached(*reached);
    co_return error_code();
}

asio::awaitable<error_code> Link::secure(std::string* detail) {
    auto shaking = tls::secure(tls_, socket_, *context_, server_->target.host, detail);
    const error_code ec = co_await std::move(shaking);
    co_return ec ? make(Error::tls) : ec;
}

asio::awaitable<error_code> Link::introduce(std::string* detail) {
    Handshake handshake;
    std::string bytes;
    error_code ec = handshake.begin(*server_, bytes, *detail);
    if (ec) co_return ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    const auto out = asio::buffer(bytes);
    if (tls_)
        co_await asio::async_write(*tls_, out, token);
    else
        co_await asio::async_write(socket_, out, token);
    std::array<char, 4096> in{};
    const auto room = asio::buffer(in);
    while (!ec && handshake.left() > 0) {
        std::size_t n = 0;
        if (tls_)
            n = co_await tls_->async_read_some(room, token);
        else
            n = co_await socket_.async_read_some(room, token);
        if (ec) break;
        if (!codec_.feed({in.data(), n})) co_return make(Error::protocol);
        for (auto next = codec_.next(); next != Codec::Next::more; next = codec_.next()) {
            if (next == Codec::Next::broken || handshake.left() == 0) {
                *detail = words("no Redis server at", server_->target.display);
                co_return make(Error::protocol);
            }
            const error_code refused = handshake.take(codec_.reply(), *server_, *detail);
            if (refused) co_return refused;
        }
    }
    if (ec) {
        *detail = server_->target.display + ": " + ec.message();
        co_return make(Error::closed);
    }
    co_return error_code();
}

}  // namespace holdfast::resp
