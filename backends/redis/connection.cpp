#include "connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"

namespace holdfast::redis {

Connection::Connection(asio::any_io_executor e, std::shared_ptr<Shared> s, asio::ssl::context* tls)
    : executor_(std::move(e)), shared_(std::move(s)), tls_(tls) {}

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
    const auto p = std::make_shared<Pending>(executor_);
    if (!link_) {
        p->answer.why = closed_ ? make_error_code(errc::closed) : make(Error::closed);
        co_return std::move(p->answer);
    }
    p->commands = commands;
    p->answer.sent = true;
    pending_.push_back(p);
    shared_->requests.fetch_add(commands, std::memory_order_relaxed);
    out_ += bytes;
    if (!write_under_way_) start_write();
    while (!p->complete) {
        p->done.expires_at(steady(deadline));
        error_code stopped;
        auto token = asio::redirect_error(asio::use_awaitable, stopped);
        co_await p->done.async_wait(token);
        if (!p->complete && boot_clock::now() >= deadline) fail(make(Error::no_answer));
    }
    co_return std::move(p->answer);
}

void Connection::complete(Pending& p) {
    p.complete = true;
    p.done.cancel();
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
    for (auto next = codec.next(); next != Codec::Next::more; next = codec.next()) {
        // An answer that nobody asked for is as bad as one that cannot be read.
        if (next == Codec::Next::broken || pending_.empty()) return fail(make(Error::protocol));
        Pending& p = *pending_.front();
        p.answer.replies.push_back(std::move(codec.reply()));
        codec.reply() = {};
        if (p.answer.replies.size() < p.commands) continue;
        complete(p);
        pending_.pop_front();
    }
    start_read();
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
        complete(*p);
    }
}

void Connection::close() noexcept {
    closed_ = true;
    last_error_ = make_error_code(errc::closed);
    if (opening_) opening_->close();
    fail(make_error_code(errc::closed));
    changed();
}

}  // namespace holdfast::redis
