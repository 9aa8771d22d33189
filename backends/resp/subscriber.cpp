#include "subscriber.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::resp {
namespace {

constexpr milliseconds shortest_pause{50}, longest_pause{1000}, connect_time{2000};
constexpr milliseconds probe_after{1000}, probe_time{1000};
// An operator may have granted the permission by then.
constexpr std::chrono::minutes refused_for{1};

/// What a connection that subscribes answers to PING.
bool is_pong(const Reply& r) {
    return r.is(Reply::Type::array) && r.count == 2 && r.items()[0].text == "pong";
}

std::string refusal(std::string_view reply) {
    return "SUBSCRIBE to hf:c:* was refused (" + std::string(shown(reply)) +
           "): waiters are not notified of a release and look by themselves; " +
           (from_reply(reply) == make(Error::no_command)
                ? "the server must have the command, under its name"
                : "ACL SETUSER the user +subscribe &hf:c:*");
}

}  // namespace

std::string make_channel() {
    return "hf:c:" + spi::make_owner({}).substr(0, 22);
}

Subscriber::Subscriber(asio::any_io_executor e, std::shared_ptr<Server> s, tls::Context* tls,
                       std::string channel, Listener listener)
    : executor_(std::move(e)),
      server_(std::move(s)),
      tls_(tls),
      listener_(std::move(listener)),
      channel_(std::move(channel)),
      pause_(executor_),
      silence_(executor_) {}

std::string_view Subscriber::channel() const noexcept {
    return boot_clock::now() < refused_until_ ? std::string_view() : std::string_view(channel_);
}

asio::awaitable<void> Subscriber::ready(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    start();
    while (!subscribed_ && !channel().empty() && !closed_) {
        // What did not work a moment ago is not waited for again: waiters look by themselves.
        failed_ = failed_ || boot_clock::now() >= deadline;
        if (failed_) co_return;
        if (!running_) {
            start();
            continue;  // without a descriptor left it has failed already
        }
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
    }
}

void Subscriber::start() {
    probe();
    if (running_ || closed_ || channel().empty()) return;
    running_ = true;
    auto task = run();
    asio::co_spawn(executor_, std::move(task),
                   [self = shared_from_this()](const std::exception_ptr& failed) {
                       if (!failed) return;
                       self->running_ = false;  // the next waiter begins anew
                       self->gate_.open();
                   });
}

asio::awaitable<void> Subscriber::run() {
    const auto self = shared_from_this();
    milliseconds pause = shortest_pause;
    while (!closed_) {
        const auto link = std::make_shared<Link>(executor_, server_, tls_);
        link_ = link;
        const auto deadline = boot_clock::now() + connect_time;
        error_code ec;
        Ended ended = Ended::lost;
        try {
            const auto failed = co_await link->open(deadline);
            if (!failed && !closed_) ended = co_await listen(link);
        } catch (const std::exception&) {
            // Out of memory or of descriptors: tried again below.
        }
        link->close();
        link_.reset();
        heard();
        if (std::exchange(subscribed_, false))
            pause = shortest_pause;
        else
            failed_ = true;
        gate_.open();
        if (closed_) break;
        if (ended == Ended::refused) {
            refused_until_ = boot_clock::now() + refused_for;
            break;
        }
        if (!listener_.wanted() && !gate_.anyone_waits()) break;
        pause_.expires_after(pause);
        pause = std::min(pause * 2, longest_pause);
        auto token = asio::redirect_error(asio::use_awaitable, ec);
        co_await pause_.async_wait(token);
    }
    running_ = false;
    gate_.open();
}

asio::awaitable<Subscriber::Ended> Subscriber::listen(std::shared_ptr<Link> link) {
    Command c;
    c.add("SUBSCRIBE").add(channel_);
    send(link, c);
    error_code ec;
    const auto room = asio::buffer(in_);
    // A server that never confirms must not keep us here.
    asio::steady_timer patience(executor_, connect_time);
    patience.async_wait([link](error_code stopped) {
        if (!stopped) link->close();
    });
    while (!closed_) {
        auto token = asio::redirect_error(asio::use_awaitable, ec);
        const std::size_t n = co_await link->read_some(room, token);
        if (ec || !link->codec().feed({in_.data(), n})) co_return Ended::lost;
        Codec& codec = link->codec();
        for (auto next = codec.next(); next != Codec::Next::more; next = codec.next()) {
            if (next == Codec::Next::broken) co_return Ended::lost;
            const Reply& r = codec.reply();
            // Without the permission to ask, the answer is an error.
            const bool answered = probing_ && (r.is(Reply::Type::error) || is_pong(r));
            heard();
            if (answered) continue;
            if (r.is(Reply::Type::error)) {
                const error_code why = from_reply(r.text);
                if (why != errc::denied && why != errc::not_supported) co_return Ended::lost;
                if (!std::exchange(warned_, true)) listener_.warn(refusal(r.text));
                co_return Ended::refused;
            }
            if (!r.is(Reply::Type::array) || r.count != 3) co_return Ended::lost;
            const auto items = r.items();
            if (items[0].text == "subscribe") {
                patience.cancel();
                subscribed_ = true;
                gate_.open();
                const bool missed = std::exchange(failed_, false);
                if (std::exchange(ever_, true) || missed) listener_.again();
            } else if (items[0].text == "message" && items[2].is_text()) {
                listener_.message(items[2].text);
            } else {
                co_return Ended::lost;
            }
        }
    }
    co_return Ended::lost;
}

void Subscriber::send(const std::shared_ptr<Link>& link, const Command& c) {
    const auto bytes = std::make_shared<std::string>();
    c.encode(*bytes);
    server_->requests.fetch_add(1, std::memory_order_relaxed);
    link->write(asio::buffer(*bytes), [link, bytes](error_code ec, std::size_t) {
        if (ec) link->close();
    });
}

/// A server that has ended the connection without our knowledge passes this client's waiters over.
void Subscriber::probe() {
    if (!subscribed_ || !link_ || probing_ || boot_clock::now() < heard_ + probe_after) return;
    probing_ = true;
    Command c;
    c.add("PING");
    send(link_, c);
    silence_.expires_after(probe_time);
    silence_.async_wait([link = link_](error_code stopped) {
        if (!stopped) link->close();
    });
}

void Subscriber::heard() noexcept {
    heard_ = boot_clock::now();
    if (std::exchange(probing_, false)) silence_.cancel();
}

void Subscriber::reconnect() noexcept {
    if (link_) link_->close();
}

void Subscriber::leave() noexcept {
    if (link_) link_->leave();
}

void Subscriber::close() noexcept {
    closed_ = true;
    if (link_) link_->close();
    pause_.cancel();
    silence_.cancel();
    gate_.open();
}

}  // namespace holdfast::resp
