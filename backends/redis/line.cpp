// The waiters of this client, and what a hand-over message means: a grant without a request where
// the protocol proves it, else a hint.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "../resp/errors.hpp"
#include "backend.hpp"

namespace holdfast::redis {
namespace {

// So long may a subscription delay an attempt, of a free lock as well.
constexpr milliseconds subscribe_time{250};

}  // namespace

QueueBackend::QueueBackend(const spi::Settings& s, spi::Context c,
                           std::shared_ptr<tls::Context> tls, std::shared_ptr<Member> member)
    : RedisBackend(s, c, std::move(tls), std::move(member)) {
    Subscriber::Listener listener;
    listener.message = [this](std::string_view payload) { on_message(payload); };
    listener.again = [this] { on_gap(); };
    listener.wanted = [this] { return anyone_waits(); };
    listener.warn = [this](std::string text) { context_.events.warn(std::move(text)); };
    subscriber_ = std::make_shared<Subscriber>(c.engine, shared_, tls_.get(), make_channel(),
                                               std::move(listener));
}

awaitable<void> QueueBackend::attempt(std::span<spi::Attempt* const> all) {
    const auto now = boot_clock::now();
    std::vector<spi::Attempt*> items;
    bool queues = false;
    auto deadline = now;
    for (spi::Attempt* a : all) {
        if (take_handed(*a, *shared_, now)) continue;
        items.push_back(a);
        deadline = std::max(deadline, a->deadline);
        if (a->queue) {
            state_of(a->place);
            waiters_.add(a->owner, a->place);
            queues = true;
        }
    }
    if (items.empty()) co_return;
    // Subscribed before queued, so that the server can notify us; without a subscription a place in
    // the queue is still better than none.
    if (queues) {
        spi::Failure unreachable;
        if (!connection_->is_ready()) unreachable = co_await connection_->ready(deadline);
        if (unreachable) {
            unreachable = shared_->where->judged(std::move(unreachable));
            for (spi::Attempt* a : items) {
                a->outcome = spi::Attempt::Failed{unreachable.why, waits_out(unreachable.why)};
                a->detail = unreachable.detail;
            }
            co_return;
        }
        const auto patience =
            now + std::min<boot_clock::duration>((deadline - now) / 2, subscribe_time);
        co_await subscriber_->ready(patience);
    }
    auto task = RedisBackend::attempt(items);
    co_await std::move(task);
}

awaitable<void> QueueBackend::withdraw(std::span<spi::Attempt* const> all) {
    auto task = RedisBackend::withdraw(all);
    co_await std::move(task);
    for (const spi::Attempt* a : all)
        if (!a->withdrawal) waiters_.forget(a->owner);
}

awaitable<void> QueueBackend::release(std::span<spi::Held* const> all) {
    auto task = RedisBackend::release(all);
    co_await std::move(task);
    for (const spi::Held* h : all)
        if (h->released != ReleaseResult::unreachable) waiters_.forget(h->owner);
}

void QueueBackend::leave() {
    // They ask the server that has their slots now, and that one has their messages.
    waiters_.clear();
    RedisBackend::leave();
}

awaitable<void> QueueBackend::close() {
    subscriber_->close();
    auto task = RedisBackend::close();
    co_await std::move(task);
}

awaitable<void> QueueBackend::give_back(std::string name, std::string owner) {
    try {
        Keys keys;
        keys.assign(shared_->options.prefix, name);
        Leave leave(*shared_, keys, owner, boot_clock::now() + milliseconds(2000));
        Operations one(1, &leave);
        auto task = drive(std::move(one));
        co_await std::move(task);
    } catch (const std::exception&) {
        // The window ends it.
    }
}

bool QueueBackend::anyone_waits() const {
    return waiters_.any([](const std::shared_ptr<void>& place) {
        const OwnerState* p = find_state(place);
        return p != nullptr && p->queued;
    });
}

void QueueBackend::on_message(std::string_view payload) {
    std::string_view rest = payload;
    const std::string_view owner = word(rest);
    const std::int64_t said = number(word(rest));
    const std::string_view told = word(rest);  // one letter, for readers and permits a token too
    const std::string_view key = rest;
    const std::string& prefix = shared_->options.prefix;
    if (said <= 0 || told.empty() || !key.starts_with(prefix)) return;
    const auto* const known = waiters_.find(owner);
    if (known == nullptr) return;  // never ours, or given back already
    const auto place = known->lock();
    if (OwnerState* p = find_state(place)) {
        hear(*p, static_cast<std::uint64_t>(said), told, *shared_, boot_clock::now());
        return context_.events.wake(owner);
    }
    // That acquisition has ended: the lock must not stay with us until the window is over.
    auto task = give_back(std::string(key.substr(prefix.size())), std::string(owner));
    waiters_.forget(owner);
    asio::co_spawn(context_.engine, std::move(task), asio::detached);
}

void QueueBackend::on_gap() {
    for (const std::string& owner : waiters_.present())
        context_.events.wake(owner);
}

}  // namespace holdfast::redis
