// mode=plain: the commands of a batch go out together and are answered one by one.
#include <algorithm>
#include <numeric>

#include "backend.hpp"
#include "errors.hpp"
#include "lane.hpp"
#include "plain.hpp"

namespace holdfast::redis {
namespace {

using spi::Attempt;
using spi::Held;

template <class Item>
boot_clock::time_point latest(std::span<Item* const> all) {
    auto deadline = boot_clock::time_point::min();
    for (const Item* i : all)
        deadline = std::max(deadline, i->deadline);
    return deadline;
}

}  // namespace

awaitable<void> PlainBackend::attempt(std::span<Attempt* const> all) {
    const auto deadline = latest(all);
    std::string detail;
    Answer answer;
    answer.why = co_await connection_->ready(deadline, &detail);
    if (!answer.why) {
        std::string bytes;
        Command c;
        for (const Attempt* a : all) {
            const std::string k = key(a->name);
            add_plain_set(c, k, *a);
            c.encode(bytes);
        }
        answer = co_await connection_->exchange(std::move(bytes), all.size(), deadline);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        Attempt& a = *all[i];
        if (answer.why) {
            a.detail = detail;
            take_silence(answer.why, answer.sent, a, *shared_);
            continue;
        }
        take_plain_set(answer.replies[i], a);
        // An earlier request whose answer was lost may have taken it: then it is ours.
        if (!std::holds_alternative<Attempt::Busy>(a.outcome) || find_place(a.place) == nullptr)
            continue;
        Command c;
        const std::string k = key(a.name);
        const Script& script = Scripts::all().plain_renew;
        begin(c, script, 1);
        c.add(k).add(a.owner).add_number(a.ttl.count());
        Answer own = co_await run(c, &script, deadline, &a.detail);
        if (own.why) {
            take_silence(own.why, true, a, *shared_);
        } else if (own.replies.front().is(Reply::Type::integer) &&
                   own.replies.front().integer == 1) {
            Attempt::Granted g;
            g.ttl = a.ttl;
            a.outcome = g;
        }
    }
    if (shared_->options.replicas > 0) {
        auto sure = confirm(all);
        co_await std::move(sure);
    }
}

awaitable<PlainBackend::Answer> PlainBackend::call_each(std::vector<Call> calls,
                                                        const Script& script,
                                                        boot_clock::time_point deadline) {
    Answer all;
    std::string detail;
    all.why = co_await connection_->ready(deadline, &detail);
    all.replies.resize(calls.size());
    std::vector<std::size_t> open(calls.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    for (bool whole = false; !all.why && !open.empty(); whole = true) {
        std::string bytes;
        Command c;
        for (const std::size_t i : open) {
            begin(c, script, 1);
            if (whole) with_text(c, script);
            c.add(calls[i].key).add(calls[i].owner);
            if (calls[i].ttl) c.add_number(calls[i].ttl->count());
            c.encode(bytes);
        }
        Answer answer = co_await connection_->exchange(std::move(bytes), open.size(), deadline);
        all.why = answer.why;
        if (answer.why) break;
        std::vector<std::size_t> again;
        for (std::size_t i = 0; i < open.size(); ++i) {
            Reply& r = answer.replies[i];
            if (!whole && forgotten(r))
                again.push_back(open[i]);
            else
                all.replies[open[i]] = std::move(r);
        }
        open = std::move(again);
    }
    co_return all;
}

awaitable<error_code> PlainBackend::withdraw(std::span<Attempt* const> all) {
    std::vector<Call> calls;
    for (const Attempt* a : all)
        calls.push_back({key(a->name), a->owner});
    const Script& script = Scripts::all().plain_release;
    auto task = call_each(std::move(calls), script, latest(all));
    const Answer answer = co_await std::move(task);
    if (answer.why) co_return answer.why;
    for (const Reply& r : answer.replies)
        if (r.is(Reply::Type::error)) co_return from_reply(r.text);
    co_return error_code();
}

awaitable<void> PlainBackend::renew(std::span<Held* const> all) {
    std::vector<Call> calls;
    for (const Held* h : all)
        calls.push_back({key(h->name), h->owner, h->ttl});
    const Script& script = Scripts::all().plain_renew;
    auto task = call_each(std::move(calls), script, latest(all));
    const Answer answer = co_await std::move(task);
    for (std::size_t i = 0; i < all.size(); ++i) {
        Held& h = *all[i];
        h.renewal = Held::Renewal::unknown;
        h.renewal_error = answer.why;
        if (answer.why) continue;
        const Reply& r = answer.replies[i];
        if (r.is(Reply::Type::error)) {
            h.renewal_error = from_reply(r.text);
            // The key has become something else: whatever it is, it is not our lock.
            if (h.renewal_error == errc::kind_mismatch) h.renewal = Held::Renewal::lost;
        } else if (!r.is(Reply::Type::integer)) {
            h.renewal_error = make(Error::protocol);
        } else if (r.integer == 1) {
            h.renewal = Held::Renewal::renewed;
        } else {
            h.renewal = Held::Renewal::lost;
            h.renewal_error = make_error_code(r.integer == 2 ? errc::revoked : errc::lost);
        }
    }
    if (shared_->options.replicas > 0) {
        auto sure = confirm(all);
        co_await std::move(sure);
    }
}

awaitable<void> PlainBackend::release(std::span<Held* const> all) {
    const auto deadline = latest(all);
    std::vector<Call> calls;
    for (Held* h : all) {
        h->released = ReleaseResult::unreachable;
        calls.push_back({key(h->name), h->owner});
    }
    const Script& script = Scripts::all().plain_release;
    auto task = call_each(std::move(calls), script, deadline);
    const Answer answer = co_await std::move(task);
    if (answer.why) co_return;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (const auto told = take_plain_release(answer.replies[i])) {
            all[i]->released = *told;
            continue;
        }
        // It is not ours: is it somebody else's?
        Command c;
        const std::string k = key(all[i]->name);
        c.add("GET").add(k);
        std::string detail;
        const auto there = co_await ask(c, nullptr, deadline, &detail);
        if (there) all[i]->released = take_plain_get(*there);
    }
}

std::unique_ptr<spi::Lane> PlainBackend::open_lane() {
    if (!shared_->options.lanes()) return nullptr;
    return std::make_unique<PlainLane>(shared_);
}

std::unique_ptr<spi::AsyncLane> PlainBackend::open_async_lane() {
    if (!shared_->options.lanes()) return nullptr;
    return std::make_unique<PlainLane>(shared_);
}

}  // namespace holdfast::redis
