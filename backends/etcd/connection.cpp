#include "connection.hpp"

#include <google/protobuf/message_lite.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/scope_exit.hpp>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/net/socket.hpp"
#include "holdfast/spi/net/watchdog.hpp"

namespace holdfast::etcd {

namespace {

std::string not_grpc(const std::string& host, const std::string& words) {
    return host + " does not speak gRPC: " + words +
           "; name the port for clients (2379, not 2380 for the members)";
}

spi::Failure unresolved(const std::string& host, const error_code& why) {
    return {make(Error::unresolved), host + ": " + spi::HostNames::words(why)};
}

}  // namespace

/// A call with one answer, which a coroutine waits for.
class Connection::Exchange final : public wire::Call {
public:
    Exchange(const asio::any_io_executor& e, google::protobuf::MessageLite& a,
             boot_clock::time_point deadline)
        : timer(e, spi::net::steady(deadline)), answer(a) {}
    void message(std::string_view bytes) override {
        ++messages;
        readable = answer.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    }
    void ended(const wire::End& e) override {
        end = e;
        over = true;
        timer.cancel();
    }
    asio::steady_timer timer;  ///< cancelled when it is over
    google::protobuf::MessageLite& answer;
    wire::End end;
    unsigned messages = 0;
    bool readable = false, over = false;
};

Connection::Connection(std::shared_ptr<Shared> s, tls::Context* t, std::size_t m)
    : member(m),
      shared_(std::move(s)),
      tls_(t),
      host_(shared_->options.hosts[m]),
      name_(spi::text_of(host_)),
      socket_(shared_->engine),
      client_(name_, t != nullptr) {}

void Connection::close(const std::string& why) noexcept {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    socket_.close(ignored);
    const auto self = weak_from_this().lock();
    client_.broke(why);
    gate_.open();
}

void Connection::retire() noexcept {
    retired_ = true;
    gate_.open();
    retire_if_idle();
}

void Connection::retire_if_idle() noexcept {
    if (retired_ && client_.calls() == 0) close();
}

std::string Connection::serving() const {
    return ready_ && !closed_ ? spi::text_of(host_, address_) : std::string();
}

// --- connecting

awaitable<spi::Failure> Connection::ready(boot_clock::time_point deadline) {
    if (!opening_) open();
    opening_ = true;
    while (!ready_ && !closed_ && boot_clock::now() < deadline) {
        auto wait = gate_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (ready_ && !closed_) co_return spi::Failure();
    // The caller's time may be over before that of the connection.
    spi::Failure why = failed_;
    if (!why && resolving_) why = unresolved(host_.host, asio::error::timed_out);
    if (!why) why = {make(Error::unreachable), name_ + ": no answer"};
    co_return why;
}

void Connection::open() {
    auto task = [](std::shared_ptr<Connection> self) -> awaitable<void> {
        auto connecting = self->connect();
        spi::Failure failed = co_await std::move(connecting);
        if (failed && !self->closed_) self->failed_ = std::move(failed);
        if (self->failed_) self->close();
        if (self->closed_) co_return;
        self->ready_ = true;
        self->gate_.open();
        auto reading = self->read();
        co_await std::move(reading);
    };
    // What is thrown, for want of memory, ends its calls, and the next ones get another connection.
    asio::co_spawn(shared_->engine, task(shared_from_this()),
                   [self = shared_from_this()](const std::exception_ptr& thrown) {
                       if (thrown) self->close();
                   });
}

awaitable<spi::Failure> Connection::connect() {
    const auto deadline = boot_clock::now() + shared_->options.request_timeout;
    const spi::net::Watchdog<Connection> watchdog(shared_->engine, deadline, shared_from_this());
    std::vector<std::string> hosts{host_.host};
    auto looking = shared_->names.look_up(std::move(hosts), deadline);
    resolving_ = true;
    const auto found = co_await std::move(looking);
    resolving_ = false;
    if (!found.front()) co_return unresolved(host_.host, found.front().error());
    std::vector<spi::net::tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, host_.port);
    auto task = spi::net::connect(socket_, all, deadline);
    const auto reached = co_await std::move(task);
    if (!reached) co_return spi::Failure(make(Error::unreachable), reached.error().detail);
    address_ = reached->address().to_string();
    if (tls_ == nullptr) co_return spi::Failure();
    auto shaking = tls::secure(secure_, socket_, *tls_, host_.host, "h2");
    const spi::Failure failed = co_await std::move(shaking);
    if (failed && failed.detail.empty())
        co_return spi::Failure(
            make(Error::unreachable),
            host_.host + ": " + failed.why.message() + tls::after_asking(secure_->native_handle()));
    if (failed) co_return spi::Failure(make(Error::tls), host_.host + ": " + failed.detail);
    if (!tls::speaks(*secure_, "h2"))
        co_return spi::Failure(make(Error::no_grpc),
                               not_grpc(name_, "it has no HTTP/2 over TLS (ALPN)"));
    co_return spi::Failure();
}

// --- bytes

awaitable<void> Connection::read() {
    while (!closed_) {
        error_code ec;
        auto token = asio::redirect_error(asio::use_awaitable, ec);
        const auto buffer = asio::buffer(in_);
        const std::size_t n = co_await tls::read_some(secure_, socket_, buffer, token);
        if (closed_) co_return;
        if (ec) co_return close(why_cut(ec));
        ++heard_;
        receiving_ = true;
        const bool goes_on = client_.receive({in_.data(), n});
        receiving_ = false;
        if (!goes_on) co_return close(client_.trouble());
        flush();
        retire_if_idle();
    }
}

std::string Connection::why_cut(const error_code& ec) {
    if (heard_ > 0) return ec.message();
    if (!secure_) return ec.message() + tls::as_with_tls("etcds://");
    // Since TLS 1.3 a member that refuses the client says so only after the handshake.
    std::string words = tls::explain(*secure_, ec, *tls_, host_.host);
    if (words.empty()) words = ec.message() + tls::after_asking(secure_->native_handle());
    return words;
}

void Connection::flush() {
    if (!ready_ || writing_ || receiving_ || closed_) return;
    try {
        out_.clear();
        client_.send(out_);
        if (!out_.empty()) {
            tls::write(
                secure_, socket_, asio::buffer(out_),
                [self = shared_from_this()](error_code ec, std::size_t) { self->written(ec); });
            writing_ = true;
            return;
        }
    } catch (const std::exception&) {
        return close();  // some bytes are lost
    }
    if (!client_.trouble().empty()) close(client_.trouble());
}

void Connection::written(error_code ec) {
    writing_ = false;
    if (ec) return close(ec.message());
    flush();
}

// --- calls

wire::Client::Request Connection::request(const Request& r) const {
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    return {.path = r.method, .token = r.token, .longest = r.longest << 20U};
}

awaitable<Connection::Outcome> Connection::ask(Request r, google::protobuf::MessageLite& answer,
                                               boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    Outcome out;
    out.fresh = !used;
    if (!ready_ || closed_) {
        auto opening = ready(deadline);
        static_cast<spi::Failure&>(out) = co_await std::move(opening);
        if (out) co_return out;
    }
    Exchange exchange(shared_->engine, answer, deadline);
    auto asked = request(r);
    asked.timeout = std::max(
        milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline - boot_clock::now()));
    const std::uint64_t heard = heard_;
    const auto id = client_.call(asked, r.message, exchange);
    BOOST_SCOPE_EXIT_ALL(this, id) {
        client_.cancel(id);
    };
    flush();
    if (!exchange.over) {
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await exchange.timer.async_wait(token);
    }
    if (!exchange.over) {
        out.doubt = client_.begun(id);
        client_.cancel(id);
        flush();
        out.why = make(Error::no_answer);
        out.detail = name_ + ": no answer";
        if (heard == heard_) retire();  // it may be cut off
        retire_if_idle();
        co_return out;
    }
    used = used || exchange.end.http != 0;
    out = outcome(exchange.end, out.fresh);
    if (!out.why && (exchange.messages != 1 || !exchange.readable)) {
        out.why = make(Error::protocol);
        out.doubt = true;
    }
    retire_if_idle();
    co_return out;
}

Connection::Outcome Connection::outcome(const wire::End& end, bool fresh) const {
    using enum wire::End::By;
    Outcome out;
    out.fresh = fresh;
    if (end.by == status && end.status == 0) return out;
    out.detail = name_ + ": " + end.words;
    constexpr unsigned not_found = 404;
    switch (end.by) {
        case status:
            out.detail = end.words;
            out.said = true;
            out.why = from_status(end.status, end.words);
            break;
        case unprocessed:
            out.unprocessed = true;
            out.why = make(Error::closed);
            break;
        case foreign:
            // It has not understood the request, or is between us and a member.
            out.why =
                make(end.http == 0 || end.http == not_found ? Error::no_grpc : Error::protocol);
            out.detail = not_grpc(name_, end.words);
            break;
        case unreadable:
            out.why = make(Error::protocol);
            break;
        case broken:
            // One that was kept may have ended before the request came.
            out.why = make(fresh || end.http != 0 ? Error::closed : Error::unreachable);
            break;
    }
    out.doubt = end.by == broken || (out.why && !out.unprocessed && !nothing_done(out.why));
    return out;
}

// --- a call with many messages

void Connection::Watcher::message(std::string_view bytes) {
    begun_ = true;
    gate_.open();
    if (!piece_(bytes)) end();
}

void Connection::Watcher::ended(const wire::End&) {
    over_ = true;
    gate_.open();
}

void Connection::Watcher::end() noexcept {
    if (std::exchange(over_, true)) return;
    stopped_ = true;
    if (connection_) {
        connection_->client_.cancel(id_);
        connection_->flush();
    }
    gate_.open();
}

awaitable<error_code> Connection::follow(Request r, Watcher& watcher,
                                         boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    watcher.connection_ = self;
    BOOST_SCOPE_EXIT_ALL(this, &watcher) {
        client_.cancel(watcher.id_);
        watcher.connection_.reset();
    };
    auto opening = ready(deadline);
    const spi::Failure failed = co_await std::move(opening);
    error_code why = failed.why;
    if (!why && !watcher.over_) {
        auto asked = request(r);
        asked.stays_open = true;
        watcher.id_ = client_.call(asked, r.message, watcher);
        flush();
    }
    while (!why && !watcher.over_) {
        if (!watcher.begun_ && boot_clock::now() >= deadline) {
            watcher.end();
            why = make(Error::no_answer);
            break;
        }
        const auto until = watcher.begun_ ? boot_clock::time_point::max() : deadline;
        auto wait = watcher.gate_.wait(shared_->engine, until);
        co_await std::move(wait);
    }
    retire_if_idle();
    if (!why && !watcher.begun_ && !watcher.stopped_) why = make(Error::closed);
    co_return why;
}

}  // namespace holdfast::etcd
