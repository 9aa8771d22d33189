#include "connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"

namespace holdfast::resp {
namespace {

// A server that has not answered for so long a request whose time is over is taken for gone; and
// one that is a replica by now is asked by a new connection so often.
constexpr milliseconds longest_silence{1000};
// A connection is for all callers, so it is not given up at the deadline of a short first one.
constexpr milliseconds least_connect_time{2000};

}  // namespace

Connection::Connection(asio::any_io_executor e, std::shared_ptr<Server> s, tls::Context* tls)
    : executor_(std::move(e)), server_(std::move(s)), tls_(tls), watch_(executor_) {}

asio::awaitable<error_code> Connection::ready(boot_clock::time_point deadline,
                                              std::string* detail) {
    const auto self = shared_from_this();
    const unsigned failures_before = failures_;
    while (!link_ || retiring_) {
        if (closed_) co_return make_error_code(errc::closed);
        if (failures_ != failures_before) {
            *detail = last_detail_;
            co_return last_error_;
        }
        if (boot_clock::now() >= deadline) {
            *detail =
                opening_ ? opening_->unanswered() : "no answer from " + server_->target.display;
            co_return make(Error::no_answer);
        }
        if (!link_ && !opening_) {
            opening_ = std::make_shared<Link>(executor_, server_, tls_);
            auto task = connect(std::max(deadline, boot_clock::now() + least_connect_time));
            asio::co_spawn(executor_, std::move(task), asio::detached);
            continue;  // it may have failed already
        }
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
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
        ++links_;
        start_read();
    }
    gate_.open();
}

asio::awaitable<Connection::Answer> Connection::exchange(std::string bytes, std::size_t commands,
                                                         boot_clock::time_point deadline,
                                                         std::uint64_t link) {
    const auto self = shared_from_this();
    const auto p = std::make_shared<Pending>();
    if (!link_ || (link != 0 && link != links_)) {
        p->answer.why = closed_ ? make_error_code(errc::closed) : make(Error::closed);
        co_return std::move(p->answer);
    }
    p->commands = commands;
    p->sent = boot_clock::now();
    p->deadline = deadline;
    p->answer.sent = true;
    p->answer.link = links_;
    // Without memory either nothing happens, or the connection fails: an answer that is owed to
    // nobody, or a request that nobody will answer, would shift all that follow.
    p->answer.replies.reserve(commands);
    out_.reserve(out_.size() + bytes.size());
    pending_.push_back(p);
    out_ += bytes;
    server_->requests.fetch_add(commands, std::memory_order_relaxed);
    try {
        if (!write_under_way_) start_write();
        watch(deadline);
    } catch (const std::exception&) {
        fail(make(Error::closed));
    }
    if (p->told) co_return std::move(p->answer);
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
    watch_.expires_at(spi::net::steady(deadline));
    watch_.async_wait([self = shared_from_this()](error_code ec) {
        if (ec) return;
        self->watched_ = boot_clock::time_point::max();
        self->look_at_time();
    });
}

void Connection::look_at_time() {
    if (pending_.empty()) return;
    const auto now = boot_clock::now();
    auto next = boot_clock::time_point::max();
    for (const auto& p : pending_)
        if (!p->told && p->deadline > now) next = std::min(next, p->deadline);
    const Pending& first = *pending_.front();
    const bool first_is_late = first.told || first.deadline <= now;
    const auto given_up = first.sent + longest_silence;
    if (next == boot_clock::time_point::max() || (first_is_late && given_up <= now))
        return fail(make(Error::no_answer));
    for (const auto& p : pending_)
        if (p->deadline <= now) tell(*p, make(Error::no_answer));
    watch(first_is_late ? std::min(next, given_up) : next);
}

void Connection::start_write() {
    write_under_way_ = true;
    // The bytes belong to the write: it may outlive this link by a moment.
    const auto bytes = std::make_shared<std::string>();
    bytes->swap(out_);
    link_->write(asio::buffer(*bytes),
                 [self = shared_from_this(), link = link_, bytes](error_code ec, std::size_t) {
                     if (self->link_ != link) return;
                     if (ec) return self->fail(make(Error::closed));
                     if (self->out_.empty()) {
                         self->write_under_way_ = false;
                         return;
                     }
                     try {
                         self->start_write();
                     } catch (const std::exception&) {
                         self->fail(make(Error::closed));
                     }
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
        if (!p.told) p.answer.replies.push_back(std::move(codec.reply()));
        codec.reply() = {};
        if (++p.answered < p.commands) continue;
        if (!p.told) complete.push_back(std::move(pending_.front()));
        pending_.pop_front();
    }
    if (link_ && retiring_ && pending_.empty()) fail(make(Error::closed));
    if (link_) start_read();
    // Last: they go on from here, and may ask, or close, this connection.
    for (const auto& p : complete)
        if (p->complete) std::move (*p->complete)();
}

void Connection::fail(error_code why) {
    if (!link_) return;
    link_->close();
    link_.reset();
    write_under_way_ = retiring_ = false;
    out_.clear();
    for (const auto& p : std::exchange(pending_, {}))
        tell(*p, why);
    gate_.open();
}

void Connection::tell(Pending& p, error_code why) {
    if (std::exchange(p.told, true)) return;
    p.answer.why = why;
    p.answer.replies.clear();
    if (p.complete) asio::post(executor_, std::move(*p.complete));
}

bool Connection::retire() {
    const auto now = boot_clock::now();
    if (!link_ || now - retired_ < longest_silence) return false;
    retired_ = now;
    retiring_ = true;
    if (pending_.empty()) fail(make(Error::closed));
    return true;
}

void Connection::close() noexcept {
    closed_ = true;
    last_error_ = make_error_code(errc::closed);
    if (opening_) opening_->close();
    fail(make_error_code(errc::closed));
    watch_.cancel();
    gate_.open();
}

}  // namespace holdfast::resp
