#include "connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"

namespace holdfast::redis {

Connection::Connection(asio::any_io_executor e, std::shared_ptr<Shared> s, asio::ssl::context* tls)
    : executor_(std::move(e)), shared_(std::move(s)), tls_(tls), watch_(executor_) {}

asio::awaitable<error_code> Connection::ready(boot_clock::time_point deadline,
                                              std::string* detail) {
    const auto self = shared_from_this();
    const unsigned failures_before = failures_;
    while (!link_) {
        if (closed_) co_return make_error_code(errc::closed);
        if (failures_ != failures_before) {
            *detail = last_detail_;
            co_return last_error_;
        }
        if (boot_clock::now() >= deadline) {
            *detail = "no answer from " + shared_->options.display;
            co_return make(Error::no_answer);
        }
        if (!opening_) {
            opening_ = std::make_shared<Link>(executor_, shared_, tls_);
            auto task = connect(deadline);
            asio::co_spawn(executor_, std::move(task), asio::detached);
            continue;  // it may have failed already
        }
        asio::steady_timer wait(executor_, steady(deadline));
        waiting_.push_back(&wait);
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await wait.async_wait(token);
        std::erase(waiting_, &wait);
    }
    co_return error_code();
}

asio::awaitable<void> Connection::connect(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const auto link = opening_;
    std::string detail;
    error_code ec;
    try {
        ec = co_await link->open(deadline, &detail);
    } catch (const std::exception& e) {
        ec = make(Error::refused);
        detail = e.what();
    }
    opening_.reset();
    if (closed_) {
        link->close();
    } else if (ec) {
        last_error_ = ec;
        last_detail_ = std::move(detail);
        ++failures_;
    } else {
        link_ = link;
        start_read();
    }
    changed();
}

void Connection::changed() {
    for (asio::steady_timer* t : waiting_)
        t->cancel();
}

asio::awaitable<Connection::Answer> Connection::exchange(std::string bytes, std::size_t commands,
                                                         boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const auto p = std::make_shared<Pending>();
    if (!link_) {
        p->answer.why = closed_ ? make_error_code(errc::closed) : make(Error::closed);
        co_return std::move(p->answer);
    }
    p->commands = commands;
    p->deadline = deadline;
    p->answer.sent = true;
    pending_.push_back(p);
    shared_->requests.fetch_add(commands, std::memory_order_relaxed);
    out_ += bytes;
    if (!write_under_way_) start_write();
    watch(deadline);
    auto answered = completion(*p);
    co_await std::move(answered);
    co_return std::move(p->answer);
}

asio::awaitable<void> Connection::completion(Pending& p) {
    auto token = asio::use_awaitable;
    return asio::async_initiate<asio::use_awaitable_t<>, void()>(
        [&p](auto handler) { p.complete.emplace(std::move(handler)); }, token);
}

void Connection::watch(boot_clock::time_point deadline) {
    if (deadline >= watched_) return;
    watched_ = deadline;
    watch_.expires_at(steady(deadline));
    watch_.async_wait([self = shared_from_this()](error_code ec) {
        if (ec) return;
        self->watched_ = boot_clock::time_point::max();
        auto next = boot_clock::time_point::max();
        for (const auto& p : self->pending_)
            next = std::min(next, p->deadline);
        if (next <= boot_clock::now()) return self->fail(make(Error::no_answer));
        self->watch(next);
    });
}

void Connection::start_write() {
    write_under_way_ = true;
    // The bytes belong to the write: it may outlive this link by a moment.
    const auto bytes = std::make_shared<const std::string>(std::exchange(out_, {}));
    link_->write(asio::buffer(*bytes),
                 [self = shared_from_this(), link = link_, bytes](error_code ec, std::size_t) {
                     if (self->link_ != link) return;
                     if (ec) return self->fail(make(Error::closed));
                     if (self->out_.empty())
                         self->write_under_way_ = false;
                     else
                         self->start_write();
                 });
}

void Connection::start_read() {
    link_->read_some(asio::buffer(in_),
                     [self = shared_from_this(), link = link_](error_code ec, std::size_t n) {
                         if (self->link_ != link) return;
                         if (ec) return self->fail(make(Error::closed));
                         self->read(n);
                     });
}

void Connection::read(std::size_t bytes) {
    Codec& codec = link_->codec();
    if (!codec.feed({in_.data(), bytes})) return fail(make(Error::protocol));
    std::vector<std::shared_ptr<Pending>> complete;
    for (auto next = codec.next(); next != Codec::Next::more; next = codec.next()) {
        // An answer that nobody asked for is as bad as one that cannot be read.
        if (next == Codec::Next::broken || pending_.empty()) {
            fail(make(Error::protocol));
            break;
        }
        Pending& p = *pending_.front();
        p.answer.replies.push_back(std::move(codec.reply()));
        codec.reply() = {};
        if (p.answer.replies.size() < p.commands) continue;
        complete.push_back(std::move(pending_.front()));
        pending_.pop_front();
    }
    if (link_) start_read();
    // Last: they go on from here, and may ask, or close, this connection.
    for (const auto& p : complete)
        std::move (*p->complete)();
}

void Connection::fail(error_code why) {
    if (!link_) return;
    link_->close();
    link_.reset();
    write_under_way_ = false;
    out_.clear();
    for (const auto& p : std::exchange(pending_, {})) {
        p->answer.why = why;
        p->answer.replies.clear();
        asio::post(executor_, std::move(*p->complete));
    }
}

void Connection::close() noexcept {
    closed_ = true;
    last_error_ = make_error_code(errc::closed);
    if (opening_) opening_->close();
    fail(make_error_code(errc::closed));
    watch_.cancel();
    changed();
}

}  // namespace holdfast::redis
