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

asio::awaitable<spi::Failure> Link::open(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const spi::net::Watchdog<Link> watchdog(executor_, deadline, self);
    spi::Failure failed = co_await connect(deadline);
    if (!failed && context_ != nullptr) failed = co_await secure();
    if (!failed) failed = co_await introduce();
    // A look-up and a handshake take their time, and what is asked later counts as asked there.
    if (!failed && place_.move != server_->moves())
        failed = {make(Error::closed), place_.text + ": the server has moved meanwhile"};
    if (!failed && !closed_) server_->reached(endpoint_, place_);
    if (failed && watchdog.fired()) failed = {make(Error::no_answer), unanswered()};
    if (failed && !finding_) failed = server_->where->judged(std::move(failed));
    if (failed) close();
    co_return failed;
}

std::string Link::unanswered() const {
    if (finding_) return server_->where->unanswered();
    const std::string none = words("no answer from", place_.text);
    return shaking_hands_ ? none + as_without_tls(server_->target) : none;
}

void Link::leave() noexcept {
    if (!finding_ && place_.move != server_->moves()) close();
}

asio::awaitable<spi::Failure> Link::connect(boot_clock::time_point deadline) {
    const auto where = server_->where;
    auto looking = where->find(deadline);
    auto found = co_await std::move(looking);
    if (!found) co_return found.error();
    place_ = std::move(*found);
    finding_ = false;
    if (closed_) co_return make(Error::refused);
    auto task = spi::net::connect(socket_, place_.endpoints, deadline);
    const auto reached = co_await std::move(task);
    if (!reached) co_return spi::Failure(make(Error::refused), reached.error().detail);
    endpoint_ = *reached;
    // A lane that is the first to come may find out by itself what is wrong there.
    if (!server_->reached()) server_->reached(endpoint_, place_);
    co_return spi::Failure();
}

asio::awaitable<spi::Failure> Link::secure() {
    auto shaking = tls::secure(tls_, socket_, *context_, place_.host);
    shaking_hands_ = true;
    const spi::Failure failed = co_await std::move(shaking);
    shaking_hands_ = static_cast<bool>(failed);
    if (!failed) co_return spi::Failure();
    if (!failed.detail.empty())
        co_return spi::Failure(make(Error::tls), place_.text + ": " + failed.detail);
    // As when a server fails: of its certificate that says nothing.
    std::string hint = tls::after_asking(tls_->native_handle());
    if (hint.empty()) hint = as_without_tls(server_->target);
    co_return spi::Failure(make(Error::closed), place_.text + ": " + failed.why.message() + hint);
}

asio::awaitable<spi::Failure> Link::introduce() {
    Handshake handshake;
    std::string bytes;
    if (auto failed = handshake.begin(*server_, bytes)) co_return failed;
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    const auto out = asio::buffer(bytes);
    co_await write(out, token);
    std::array<char, 4096> in{};
    const auto room = asio::buffer(in);
    while (!ec && handshake.left() > 0) {
        const std::size_t n = co_await read_some(room, token);
        if (ec) break;
        if (!codec_.feed({in.data(), n})) co_return make(Error::protocol);
        for (auto next = codec_.next(); next != Codec::Next::more; next = codec_.next()) {
            if (next == Codec::Next::broken || handshake.left() == 0)
                co_return spi::Failure(make(Error::protocol),
                                       words("no Redis server at", place_.text));
            if (auto refused = handshake.take(codec_.reply(), *server_)) co_return refused;
        }
    }
    if (!ec) co_return spi::Failure();
    // Since TLS 1.3 a server that refuses the client says so only now.
    std::string words;
    if (tls_) words = tls::explain(*tls_, ec, *context_, place_.host);
    if (!words.empty()) co_return spi::Failure(make(Error::tls), place_.text + ": " + words);
    words = place_.text + ": " + ec.message();
    if (tls_)
        words += tls::after_asking(tls_->native_handle());
    else if (!handshake.answered())
        words += tls::as_with_tls(server_->target.secure);
    co_return spi::Failure(make(Error::closed), words);
}

}  // namespace holdfast::resp
