// The verbs of the default mode: every one is one script call for up to 32 locks.
#include <algorithm>

#include "backend.hpp"
#include "errors.hpp"
#include "lane.hpp"

namespace holdfast::redis {
namespace {

using spi::Attempt;
using spi::Held;

/// No answer, for all of them, with the words for it.
void silence(const std::vector<Attempt*>& items, error_code why, bool sent,
             const std::string& detail, const Shared& shared) {
    for (Attempt* a : items) {
        a->detail = detail;
        take_silence(why, sent, *a, shared);
    }
}

std::int64_t ghost_of(const std::shared_ptr<void>& place, const Shared& shared) {
    const Place* p = find_place(place);
    return p != nullptr && p->ghost > shared.clock.server_ms(boot_clock::now()) ? p->ghost : 0;
}

/// The answers for `n` locks; empty when there are not as many.
std::vector<std::string> texts_of(const Reply& r, std::size_t n) {
    std::vector<std::string> out;
    if (n == 1 && r.is_text()) {
        out.push_back(r.text);
    } else if (r.is(Reply::Type::array) && r.count == n) {
        for (const Reply& item : r.items())
            out.push_back(item.text);
    }
    return out;
}

}  // namespace

FencedBackend::FencedBackend(const spi::Settings& s, spi::Context c) : RedisBackend(s, c) {
    if (!shared_->options.queue) return;
    Subscriber::Ear ear;
    ear.message = [this](std::string_view payload) { on_message(payload); };
    ear.again = [this] { on_gap(); };
    ear.wanted = [this] { return anyone_waits(); };
    ear.refused = [this](std::string words) {
        context_.sink.warn("the server lets this user not subscribe to &hf:c:* (" + words +
                           "): waiters are not told of a release and look by themselves");
    };
    subscriber_ = std::make_shared<Subscriber>(c.engine, shared_, tls_.get(), std::move(ear));
}

// --- attempt
// ----------------------------------------------------------------------------------------

awaitable<void> FencedBackend::attempt(std::span<Attempt* const> all) {
    const auto now = boot_clock::now();
    std::vector<Attempt*> items;
    bool queues = false;
    auto deadline = now;
    for (Attempt* a : all) {
        if (take_handed(*a, now)) continue;
        items.push_back(a);
        deadline = std::max(deadline, a->deadline);
        if (a->queue && subscriber_) {
            enrol(*a);
            queues = true;
        }
    }
    if (items.empty()) co_return;
    // No place in line before the server can tell us of our turn; but a line without being told is
    // better than none.
    if (queues) {
        std::string detail;
        const error_code unreachable = co_await connection_->ready(deadline, &detail);
        if (unreachable) {
            silence(items, unreachable, false, detail, *shared_);
            co_return;
        }
        const auto patience = now + (deadline - now) / 2;
        co_await subscriber_->ready(patience);
    }
    auto task = enter(std::move(items));
    co_await std::move(task);
    if (shared_->options.replicas > 0) {
        auto sure = confirm(all);
        co_await std::move(sure);
    }
}

awaitable<void> FencedBackend::enter(std::vector<Attempt*> items) {
    const Scripts& scripts = Scripts::all();
    for (int round = 0; round < 2 && !items.empty(); ++round) {
        auto deadline = items.front()->deadline;
        for (const Attempt* a : items)
            deadline = std::max(deadline, a->deadline);
        std::string detail;
        const error_code unreachable = co_await connection_->ready(deadline, &detail);
        if (unreachable) {
            silence(items, unreachable, false, detail, *shared_);
            co_return;
        }
        const Script& script = items.size() == 1 ? scripts.enter_one : scripts.enter_many;
        std::vector<Keys> keys(items.size());
        Command c;
        begin(c, script, 5 * static_cast<long long>(items.size()));
        for (std::size_t i = 0; i < items.size(); ++i) {
            keys[i].assign(shared_->options.prefix, items[i]->name);
            add_keys(c, keys[i]);
        }
        const bool queues = subscriber_ && std::any_of(items.begin(), items.end(),
                                                       [](const Attempt* a) { return a->queue; });
        c.add(queues ? std::string_view(subscriber_->channel()) : std::string_view());
        for (const Attempt* a : items)
            add_enter(c, *a, *shared_);
        Answer answer = co_await run(c, &script, deadline, &detail);
        if (answer.why) {
            silence(items, answer.why, answer.sent, detail, *shared_);
            co_return;
        }
        const Reply& r = answer.replies.front();
        if (r.is(Reply::Type::error)) {
            // One wrong key ends a script for all of them: then each is asked for alone.
            if (items.size() > 1 && from_reply(r.text) == make(Error::wrong_type)) {
                for (Attempt* a : items) {
                    std::vector<Attempt*> one(1, a);
                    auto task = enter(std::move(one));
                    co_await std::move(task);
                }
                co_return;
            }
            for (Attempt* a : items)
                take_error(r.text, *a);
            co_return;
        }
        const auto texts = texts_of(r, items.size());
        std::vector<Attempt*> late;
        for (std::size_t i = 0; i < items.size(); ++i) {
            Attempt& a = *items[i];
            const std::string_view text = i < texts.size() ? std::string_view(texts[i]) : "";
            if (take_enter(text, a, *shared_) == Entered::late) {
                late.push_back(&a);
                continue;
            }
            // Told of its turn while the look was under way.
            if (std::holds_alternative<Attempt::Busy>(a.outcome)) take_handed(a, boot_clock::now());
        }
        items = std::move(late);
    }
}

// --- leave
// ------------------------------------------------------------------------------------------

awaitable<bool> FencedBackend::leave(std::vector<std::string_view> names,
                                     std::vector<std::string_view> owners, std::string how,
                                     std::vector<std::int64_t> ghosts,
                                     std::vector<LeaveTexts> texts, boot_clock::time_point deadline,
                                     std::vector<std::string>* answers, error_code* why) {
    const std::size_t n = names.size();
    const Script& script = n == 1 ? Scripts::all().leave_one : Scripts::all().leave_many;
    std::vector<Keys> keys(n);
    Command c;
    begin(c, script, 5 * static_cast<long long>(n));
    for (std::size_t i = 0; i < n; ++i) {
        keys[i].assign(shared_->options.prefix, names[i]);
        add_keys(c, keys[i]);
    }
    for (std::size_t i = 0; i < n; ++i)
        add_leave(c, owners[i], how[i], ghosts[i], texts[i]);
    std::string detail;
    Answer answer = co_await run(c, &script, deadline, &detail);
    *why = answer.why;
    if (answer.why) co_return false;
    const Reply& r = answer.replies.front();
    if (r.is(Reply::Type::error)) {
        *why = from_reply(r.text);
        co_return false;
    }
    *answers = texts_of(r, n);
    if (answers->size() != n) *why = make(Error::protocol);
    co_return !*why;
}

awaitable<error_code> FencedBackend::withdraw(std::span<Attempt* const> all) {
    std::vector<std::string_view> names, owners;
    std::vector<std::int64_t> ghosts;
    auto deadline = boot_clock::now();
    for (const Attempt* a : all) {
        names.push_back(a->name);
        owners.push_back(a->owner);
        ghosts.push_back(ghost_of(a->place, *shared_));
        deadline = std::max(deadline, a->deadline);
    }
    std::string how(all.size(), 'u');
    std::vector<LeaveTexts> texts(all.size());
    std::vector<std::string> answers;
    error_code why;
    auto task = leave(std::move(names), std::move(owners), std::move(how), std::move(ghosts),
                      std::move(texts), deadline, &answers, &why);
    const bool done = co_await std::move(task);
    if (!done && why == make(Error::wrong_type)) {
        // What is kept under that name is no lock, so nothing of ours can be held there; the others
        // of this call are asked for alone.
        for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) {
            auto one = withdraw(all.subspan(i, 1));
            const error_code failed = co_await std::move(one);
            if (failed) co_return failed;
        }
        co_return error_code();
    }
    if (!done) co_return why;
    for (Attempt* a : all) {
        if (Place* p = find_place(a->place)) p->queued = false;
        places_.erase(std::string(a->owner));
    }
    co_return error_code();
}

awaitable<void> FencedBackend::release(std::span<Held* const> all) {
    std::vector<std::string_view> names, owners;
    std::vector<std::int64_t> ghosts;
    std::vector<LeaveTexts> texts(all.size());
    std::string how;
    const auto now = boot_clock::now();
    auto deadline = now;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Held& h = *all[i];
        names.push_back(h.name);
        owners.push_back(h.owner);
        ghosts.push_back(ghost_of(h.place, *shared_));
        how += letter_of(h.how);
        assign(texts[i], h.token, *shared_, now);
        deadline = std::max(deadline, h.deadline);
    }
    for (Held* h : all)
        h->released = ReleaseResult::unreachable;
    std::vector<std::string> answers;
    error_code why;
    auto task = leave(std::move(names), std::move(owners), std::move(how), std::move(ghosts),
                      std::move(texts), deadline, &answers, &why);
    const bool done = co_await std::move(task);
    // One wrong key ends a script for all of them: then each is released alone.
    if (!done && why == make(Error::wrong_type) && all.size() > 1) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto one = release(all.subspan(i, 1));
            co_await std::move(one);
        }
    }
    if (!done) co_return;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->released = take_leave(answers[i]);
        if (const auto at = places_.find(all[i]->owner); at != places_.end()) places_.erase(at);
    }
}

awaitable<void> FencedBackend::give_back(std::string name, std::string owner) {
    std::vector<std::string_view> names(1, name), owners(1, owner);
    std::vector<std::int64_t> ghosts(1, 0);
    std::vector<LeaveTexts> texts(1);
    std::string how(1, 'u');
    std::vector<std::string> answers;
    error_code why;
    const auto deadline = boot_clock::now() + milliseconds(2000);
    try {
        auto task = leave(std::move(names), std::move(owners), std::move(how), std::move(ghosts),
                          std::move(texts), deadline, &answers, &why);
        co_await std::move(task);
    } catch (const std::exception&) {
        // The window ends it.
    }
}

// --- renew
// ------------------------------------------------------------------------------------------

awaitable<void> FencedBackend::renew(std::span<Held* const> all) {
    const Script& script = Scripts::all().renew;
    std::vector<Held*> items(all.begin(), all.end());
    for (Held* h : items)
        h->renewal = Held::Renewal::unknown;
    for (int round = 0; round < 2 && !items.empty(); ++round) {
        auto deadline = items.front()->deadline;
        for (const Held* h : items)
            deadline = std::max(deadline, h->deadline);
        std::string detail;
        const error_code unreachable = co_await connection_->ready(deadline, &detail);
        Answer answer;
        answer.why = unreachable;
        if (!unreachable) {
            std::vector<Keys> keys(items.size());
            Command c;
            begin(c, script, 3 * static_cast<long long>(items.size()));
            for (std::size_t i = 0; i < items.size(); ++i) {
                keys[i].assign(shared_->options.prefix, items[i]->name);
                c.add(keys[i].lock).add(keys[i].state).add(keys[i].tombs);
            }
            for (const Held* h : items) {
                const Place* p = find_place(h->place);
                const bool first = p != nullptr && p->unclaimed;
                c.add(h->owner).add_number(h->ttl.count()).add_number(first ? 1 : 0);
                c.add_number(shared_->clock.server_ms(h->deadline));
            }
            answer = co_await run(c, &script, deadline, &detail);
        }
        error_code why = answer.why;
        if (!why && answer.replies.front().is(Reply::Type::error))
            why = from_reply(answer.replies.front().text);
        if (!why && (!answer.replies.front().is(Reply::Type::array) ||
                     answer.replies.front().count != items.size()))
            why = make(Error::protocol);
        if (why) {
            for (Held* h : items)
                h->renewal_error = why;
            co_return;
        }
        std::vector<Held*> late;
        for (std::size_t i = 0; i < items.size(); ++i) {
            Held& h = *items[i];
            std::string_view rest = answer.replies.front().elements[i].text;
            const std::string_view what = word(rest);
            if (what == "y") {
                h.renewal = Held::Renewal::renewed;
                if (Place* p = find_place(h.place)) p->unclaimed = false;
            } else if (what == "n" || what == "x") {
                h.renewal = Held::Renewal::lost;
                h.renewal_error = make_error_code(what == "x" ? errc::revoked : errc::lost);
            } else if (what == "l") {
                shared_->clock.sample(number(rest) * 1000, boot_clock::now());
                h.renewal_error = make(Error::no_answer);
                late.push_back(&h);
            } else {
                h.renewal_error = make(Error::protocol);
            }
        }
        items = std::move(late);
    }
    if (shared_->options.replicas > 0) {
        auto sure = confirm(all);
        co_await std::move(sure);
    }
}

std::unique_ptr<spi::Lane> FencedBackend::open_lane() {
    if (!shared_->options.lanes()) return nullptr;
    return std::make_unique<Lane>(shared_);
}

std::unique_ptr<spi::AsyncLane> FencedBackend::open_async_lane() {
    if (!shared_->options.lanes()) return nullptr;
    return std::make_unique<Lane>(shared_);
}

awaitable<void> FencedBackend::close() {
    if (subscriber_) subscriber_->close();
    connection_->close();
    closed_ = true;
    co_return;
}

}  // namespace holdfast::redis
