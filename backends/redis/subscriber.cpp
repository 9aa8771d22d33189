#include "subscriber.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "errors.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::redis {
namespace {

constexpr milliseconds shortest_pause{50}, longest_pause{1000}, connect_time{2000};

}  // namespace

Subscriber::Subscriber(asio::any_io_executor e, std::shared_ptr<Shared> s, asio::ssl::context* tls,
                       Ear ear)
    : executor_(std::move(e)),
      shared_(std::move(s)),
      tls_(tls),
      ear_(std::move(ear)),
      // Random, so that nobody else listens on it or can guess it.
      channel_("hf:c:" + spi::make_owner({}).substr(0, 22)),
      pause_(executor_) {}

asio::awaitable<void> Subscriber::ready(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    while (!subscribed_ && !channel_.empty() && !closed_ && boot_clock::now() < deadline) {
        if (!running_) {
            running_ = true;
            auto task = run();
            asio::co_spawn(executor_, std::move(task), asio::detached);
        }
        asio::steady_timer wait(executor_, steady(deadline));
        waiting_.push_back(&wait);
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await wait.async_wait(token);
        std::erase(waiting_, &wait);
    }
}

asio::awaitable<void> Subscriber::run() {
    const auto self = shared_from_this();
    milliseconds pause = shortest_pause;
    while (!closed_) {
        const auto link = std::make_shared<Link>(executor_, shared_, tls_);
        link_ = link;
        std::string detail;
        const auto deadline = boot_clock::now() + connect_time;
        error_code ec;
        Ended ended = Ended::lost;
        try {
            ec = co_await link->open(deadline, &detail);
            if (!ec && !closed_) ended = co_await listen(link);
        } catch (const std::exception&) {
            // Out of memory or of descriptors: tried again below.
        }
        link->close();
        link_.reset();
        if (std::exchange(subscribed_, false)) pause = shortest_pause;
        if (closed_) break;
        if (ended == Ended::refused) {
            channel_.clear();
            break;
        }
        if (!ear_.wanted() && waiting_.empty()) break;
        pause_.expires_after(pause);
        pause = std::min(pause * 2, longest_pause);
        auto token = asio::redirect_error(asio::use_awaitable, ec);
        co_await pause_.async_wait(token);
    }
    running_ = false;
    changed();
}

asio::awaitable<Subscriber::Ended> Subscriber::listen(std::shared_ptr<Link> link) {
    Command c;
    c.add("SUBSCRIBE").add(channel_);
    const auto bytes = std::make_shared<std::string>();
    c.encode(*bytes);
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    link->write(asio::buffer(*bytes), [link, bytes](error_code ec, std::size_t) {
        if (ec) link->close();
    });
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
            if (r.is(Reply::Type::error)) {
                if (from_reply(r.text) != make(Error::denied)) co_return Ended::lost;
                ear_.refused(std::string(shown(r.text)));
                co_return Ended::refused;
            }
            if (!r.is(Reply::Type::array) || r.count != 3) co_return Ended::lost;
            const auto items = r.items();
            if (items[0].text == "subscribe") {
                patience.cancel();
                subscribed_ = true;
                changed();
                if (std::exchange(ever_, true)) ear_.again();
            } else if (items[0].text == "message" && items[2].is_text()) {
                ear_.message(items[2].text);
            } else {
                co_return Ended::lost;
            }
        }
    }
    co_return Ended::lost;
}

void Subscriber::changed() {
    for (asio::steady_timer* t : waiting_)
        t->cancel();
}

void Subscriber::close() noexcept {
    closed_ = true;
    if (link_) link_->close();
    pause_.cancel();
    changed();
}

}  // namespace holdfast::redis
