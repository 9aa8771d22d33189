#include "connection.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/net/socket.hpp"
#include "holdfast/spi/net/watchdog.hpp"

namespace holdfast::etcd {

namespace http = boost::beast::http;
using Watchdog = spi::net::Watchdog<Connection>;

Connection::Connection(std::shared_ptr<Shared> s, tls::Context* t, std::size_t m)
    : member(m),
      shared_(std::move(s)),
      tls_(t),
      host_(shared_->options.hosts[m]),
      socket_(shared_->engine) {}

void Connection::close() noexcept {
    error_code ignored;
    socket_.close(ignored);
}

std::string Connection::request(const std::string& path, const std::string& body,
                                const std::string& token) const {
    std::string out =
        "POST /v3/" + path + " HTTP/1.1\r\nHost: " + spi::text_of(host_) +
        "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size());
    if (!token.empty()) out += "\r\nAuthorization: " + token;
    out += "\r\n\r\n";
    return out += body;
}

template <class Operation>
awaitable<error_code> Connection::run(Operation operation) {
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    if (secure_)
        co_await operation(*secure_, token);
    else
        co_await operation(socket_, token);
    co_return ec;
}

awaitable<error_code> Connection::write(const std::string& request) {
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    return run([bytes = asio::buffer(request)](auto& stream, auto token) {
        return asio::async_write(stream, bytes, token);
    });
}

awaitable<error_code> Connection::connect(boot_clock::time_point deadline, std::string* detail) {
    std::vector<std::string> hosts{host_.host};
    auto looking = shared_->names.look_up(std::move(hosts), deadline);
    const auto found = co_await std::move(looking);
    if (!found.front()) {
        *detail = host_.host + ": " + spi::HostNames::words(found.front().error());
        co_return make(Error::unresolved);
    }
    std::vector<spi::net::tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, host_.port);
    auto task = spi::net::connect(socket_, all, deadline);
    const auto reached = co_await std::move(task);
    if (!reached) {
        *detail = reached.error().detail;
        co_return make(Error::unreachable);
    }
    if (tls_ == nullptr) co_return error_code();
    auto shaking = tls::secure(secure_, socket_, *tls_, host_.host);
    const spi::Failure failed = co_await std::move(shaking);
    if (!failed) co_return error_code();
    close();
    *detail = host_.host + ": " + failed.detail;
    co_return make(Error::tls);
}

awaitable<error_code> Connection::ask(const std::string& request, std::uint64_t longest,
                                      boot_clock::time_point deadline, Response& answer,
                                      bool& doubt, std::string* detail) {
    const Watchdog watchdog(shared_->engine, deadline, shared_from_this());
    const std::string host = spi::text_of(host_);
    if (!socket_.is_open()) {
        // A member that takes no connection has its share of the time only.
        auto opening = connect(deadline, detail);
        const error_code why = co_await std::move(opening);
        if (why == make(Error::tls) && watchdog.fired()) {
            *detail = host + ": no answer";
            co_return make(Error::unreachable);
        }
        if (why) co_return why;
    }
    auto writing = write(request);
    error_code ec = co_await std::move(writing);
    Parser parser;
    parser.body_limit(longest << 20U);
    if (longest > 1) buffer_.reserve(64U << 10U);  // it reads no more at a time
    if (!ec) {
        auto reading = run([&](auto& stream, auto token) {
            return http::async_read(stream, buffer_, parser, token);
        });
        ec = co_await std::move(reading);
    }
    const bool first = !std::exchange(used, used || !ec);
    if (!ec) {
        answer = parser.release();
        if (!answer.keep_alive()) close();
        co_return ec;
    }
    doubt = true;
    close();
    *detail = host + ": " + (watchdog.fired() ? "no answer" : ec.message());
    if (ec == http::error::body_limit) {
        *detail = host + ": an answer of more than " + std::to_string(longest) + " MiB";
        co_return make(Error::protocol);
    }
    if (watchdog.fired()) co_return make(Error::no_answer);
    // One that was kept may have ended before the request came.
    co_return make(first || parser.got_some() ? Error::closed : Error::unreachable);
}

awaitable<error_code> Connection::follow(const std::string& request,
                                         boot_clock::time_point deadline,
                                         std::function<void(std::string_view)> piece) {
    const auto self = shared_from_this();
    std::string detail;
    Parser parser;
    parser.body_limit(boost::none);
    parser.eager(true);
    auto chunk = [&piece](std::uint64_t, boost::beast::string_view bytes,
                          boost::system::error_code&) {
        piece(std::string_view(bytes.data(), bytes.size()));
        return bytes.size();
    };
    parser.on_chunk_body(chunk);
    error_code ec;
    {
        const Watchdog watchdog(shared_->engine, deadline, self);
        auto opening = connect(deadline, &detail);
        ec = co_await std::move(opening);
        if (!ec) {
            auto writing = write(request);
            ec = co_await std::move(writing);
        }
        if (!ec) {
            auto reading = run([&](auto& stream, auto token) {
                return http::async_read_header(stream, buffer_, parser, token);
            });
            ec = co_await std::move(reading);
        }
    }
    const bool begun = !ec && parser.get().result_int() == 200;
    if (begun) {
        auto reading = run([&](auto& stream, auto token) {
            return http::async_read(stream, buffer_, parser, token);
        });
        co_await std::move(reading);
    }
    close();
    if (begun) co_return error_code();
    co_return ec ? ec : make(Error::protocol);
}

}  // namespace holdfast::etcd
