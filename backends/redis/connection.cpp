#include "connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "../resp/errors.hpp"
#include "holdfast/spi/net/connect_time.hpp"

namespace holdfast::redis {
namespace {

// A server that has not answered for so long a request whose time is over is taken for gone.
constexpr milliseconds longest_silence{1000};

}  // namespace

Connection::Connection(asio::any_io_executor e, std::shared_ptr<Server> s, tls::Context* tls,
                       milliseconds request_timeout)
    : executor_(std::move(e)),
      server_(std::move(s)),
      tls_(tls),
      patience_(std::min(request_timeout, longest_silence)),
      watch_(executor_) {}

asio::awaitable<spi::Failure> Connection::ready(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const unsigned failures_before = failures_;
    while (!is_ready()) {
        if (closed_) co_return make_error_code(errc::closed);
        if (failures_ != failures_before) co_return last_failure_;
        if (boot_clock::now() >= deadline)
            co_return spi::Failure(
                make(Error::no_answer),
                opening_ ? opening_->unanswered() : "no answer from " + server_->target.display);
        if (!pipeline_ && !opening_) {
            opening_ = std::make_shared<Link>(executor_, server_, tls_);
            auto task = connect(spi::net::connect_until(deadline));
            asio::co_spawn(executor_, std::move(task), asio::detached);
            continue;  // it may have failed already
        }
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
    }
    server_->trust();
    co_return spi::Failure();
}

asio::awaitable<void> Connection::connect(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const auto link = opening_;
    std::shared_ptr<Pipeline> opened;
    spi::Failure failed;
    try {
        failed = co_await link->open(deadline);
        if (!failed) opened = std::make_shared<Pipeline>(link, self);
    } catch (const std::exception& e) {
        failed = {make(Error::refused), e.what()};
    }
    opening_.reset();
    if (closed_) {
        link->close();
    } else if (failed) {
        last_failure_ = std::move(failed);
        ++failures_;
    } else {
        pipeline_ = std::move(opened);
        ++links_;
        heard();
        pipeline_->start();
    }
    gate_.open();
}

asio::awaitable<Connection::Answer> Connection::exchange(std::string bytes, std::size_t commands,
                                                         boot_clock::time_point deadline,
                                                         std::uint64_t link) {
    const auto self = shared_from_this();
    const auto p = std::make_shared<Pending>();
    if (!pipeline_ || (link != 0 && link != links_)) {
        p->answer.failed = closed_ ? make_error_code(errc::closed) : make(Error::closed);
        co_return std::move(p->answer);
    }
    p->commands = commands;
    p->sent = boot_clock::now();
    p->deadline = deadline;
    p->answer.sent = true;
    p->answer.link = links_;
    p->answer.move = server_->moves();
    // Without memory either nothing happens, or the connection fails: an answer that is owed to
    // nobody, or a request that nobody will answer, would shift all that follow.
    p->answer.replies.reserve(commands);
    std::string& out = pipeline_->out();
    out.reserve(out.size() + bytes.size());
    pending_.push_back(p);
    out += bytes;
    server_->requests.fetch_add(commands, std::memory_order_relaxed);
    try {
        pipeline_->send();
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
    auto given_up = first.sent + longest_silence;
    // Nobody waits for it. But where a request has waited for its connection, or for an earlier
    // answer, it had less than a request's time, and the next one would have as little on another.
    if (next == boot_clock::time_point::max()) given_up = std::max(first.sent, heard_) + patience_;
    if (first_is_late && given_up <= now) return fail(make(Error::no_answer));
    for (const auto& p : pending_)
        if (p->deadline <= now) tell(*p, make(Error::no_answer));
    watch(first_is_late ? std::min(next, given_up) : next);
}

bool Connection::take(Reply& reply) {
    if (pending_.empty()) return false;
    Pending& p = *pending_.front();
    if (!p.told) p.answer.replies.push_back(std::move(reply));
    reply = {};
    if (++p.answered < p.commands) return true;
    if (!p.told) complete_.push_back(std::move(pending_.front()));
    pending_.pop_front();
    return true;
}

void Connection::settled() {
    if (retiring_ && pending_.empty()) fail(make(Error::closed));
    if (pipeline_) server_->trust();
    for (const auto& p : std::exchange(complete_, {}))
        if (p->complete) std::move (*p->complete)();
}

void Connection::fail(error_code why) {
    if (!pipeline_) return;
    std::exchange(pipeline_, nullptr)->close();
    server_->doubt();
    retiring_ = false;
    for (const auto& p : std::exchange(pending_, {}))
        tell(*p, why);
    gate_.open();
}

void Connection::tell(Pending& p, error_code why) {
    if (std::exchange(p.told, true)) return;
    p.answer.failed = why;
    p.answer.replies.clear();
    if (p.complete) asio::post(executor_, std::move(*p.complete));
}

bool Connection::retire() {
    if (!pipeline_ || !left_.due(boot_clock::now())) return false;
    retiring_ = true;
    if (pending_.empty()) fail(make(Error::closed));
    return true;
}

void Connection::leave() noexcept {
    if (opening_) opening_->leave();
    fail(make(Error::closed));
}

void Connection::close() noexcept {
    closed_ = true;
    last_failure_ = errc::closed;
    if (opening_) opening_->close();
    fail(make_error_code(errc::closed));
    watch_.cancel();
    gate_.open();
}

}  // namespace holdfast::redis
