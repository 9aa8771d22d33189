#include "backend.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "errors.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr milliseconds idle_limit{30'000};

QueueNodePtr place_of(const std::shared_ptr<void>& p) {
    return std::static_pointer_cast<QueueNode>(p);
}

milliseconds look_within(milliseconds ttl) noexcept {
    return std::min(milliseconds(1000), ttl / 3);
}

bool ended(const QueueNode& p) noexcept {
    return p.state == QueueNode::State::gone || p.state == QueueNode::State::failed;
}

}  // namespace

ZooKeeperBackend::ZooKeeperBackend(const spi::Settings& s, spi::Context c)
    : shared_(std::make_shared<Shared>(s, c)), capabilities_(promises(s)) {
    shared_->on_beat = [this] { tidy(); };
}

ZooKeeperBackend::~ZooKeeperBackend() {
    shared_->on_beat = nullptr;
}

// --- sessions
// ---------------------------------------------------------------------------------------

SessionPtr ZooKeeperBackend::session_for(milliseconds ttl) {
    tidy();
    SessionPtr& s = sessions_[ttl];
    if (s && s->usable()) return s;
    if (s) {
        s->retire();
        retired_.push_back(s);
    }
    s = std::make_shared<Session>(shared_, ttl);
    s->start();
    return s;
}

void ZooKeeperBackend::tidy() {
    const auto now = boot_clock::now();
    if (now - tidied_ < milliseconds(50)) return;
    tidied_ = now;
    for (auto at = sessions_.begin(); at != sessions_.end();) {
        const SessionPtr& s = at->second;
        const bool unused = s->idle() && now - s->last_used() > idle_limit;
        if (!s->over() && !unused) {
            ++at;
            continue;
        }
        retired_.push_back(s);
        at = sessions_.erase(at);
    }
    // A retired session stays for as long as something of it is left.
    std::erase_if(retired_, [this](const SessionPtr& s) {
        if (!s->idle() && !s->over()) return false;
        auto task = end_session(s);
        asio::co_spawn(shared_->engine, std::move(task), asio::detached);
        return true;
    });
}

awaitable<void> ZooKeeperBackend::end_session(SessionPtr s) {
    auto closing = s->close(boot_clock::now() + milliseconds(500));
    co_await std::move(closing);
}

awaitable<void> ZooKeeperBackend::close() {
    closed_ = true;
    std::vector<SessionPtr> all = std::exchange(retired_, {});
    for (auto& [ttl, s] : sessions_)
        all.push_back(s);
    sessions_.clear();
    const auto deadline = boot_clock::now() + milliseconds(150);
    for (const SessionPtr& s : all) {
        auto closing = s->close(deadline);
        co_await std::move(closing);
    }
}

// --- attempt
// ----------------------------------------------------------------------------------------

awaitable<void> ZooKeeperBackend::attempt(std::span<spi::Attempt* const> items) {
    std::vector<spi::Attempt*> all(items.begin(), items.end());
    // All requests first, so that they share a round trip.
    for (spi::Attempt* a : all) {
        QueueNodePtr p = place_of(a->place);
        if (p && !ended(*p) && !p->leaving) continue;
        const milliseconds tick = shared_->options.tick;
        if (std::string words = too_short("ttl", a->ttl, tick); !words.empty()) {
            a->detail = std::move(words) + " " + too_short_remedy(tick);
            a->outcome = spi::Attempt::Failed{make(Error::too_short)};
            continue;
        }
        // A place that has ended is taken anew, with a session that lives.
        const SessionPtr session = session_for(a->ttl);
        if (!a->queue && session->known_busy(a->name)) {
            a->outcome = spi::Attempt::Busy{look_within(a->ttl)};
            continue;
        }
        p = session->make_place(a->name, a->owner, a->ttl);
        a->place = p;
        session->enter(p);
    }
    for (spi::Attempt* a : all) {
        QueueNodePtr p = place_of(a->place);
        if (!p) continue;
        auto one = settle(a, std::move(p));
        co_await std::move(one);
    }
    tidy();
}

awaitable<void> ZooKeeperBackend::settle(spi::Attempt* a, QueueNodePtr p) {
    const SessionPtr session = p->session.lock();
    while (true) {
        if (p->state == QueueNode::State::failed || p->refused) {
            // Numbers begin again when the servers have removed the line's own node.
            a->outcome = spi::Attempt::Failed{p->why, p->why == make(Error::used_up)};
            a->detail = p->why.message();
            a->place.reset();
            co_return;
        }
        const bool over = !session || session->over();
        if (ended(*p) || over || p->leaving) {
            a->outcome = spi::Attempt::PlaceLost{};
            a->detail = "the session has ended, or was not confirmed for too long";
            a->place.reset();
            break;
        }
        if (const error_code refused = session->refusal()) {
            session->leave(p, Outcome::abandoned);
            a->place.reset();
            a->outcome = spi::Attempt::Failed{refused};
            a->detail = session->refusal_words();
            co_return;
        }
        if (session->first(*p)) {
            auto grant = granted(a, p, session);
            co_await std::move(grant);
            co_return;
        }
        if (p->listed && session->handle().connected()) {
            p->waited = true;
            if (!a->queue) {
                session->leave(p, Outcome::abandoned);
                auto wait = left(p, a->deadline);
                co_await std::move(wait);
                a->place.reset();
            } else {
                session->keep_waiting(p);
            }
            a->outcome = spi::Attempt::Busy{look_within(a->ttl)};
            co_return;
        }
        // A request's time begins when it is sent. Until then it waits for as long as others are.
        const auto allowed = a->deadline - a->sent;
        auto until = a->deadline;
        if (p->state == QueueNode::State::idle) {
            until = std::max(until, session->asked_last() + allowed);
        } else if (p->asked > a->sent) {
            a->sent = p->asked;
            a->deadline = until = p->asked + allowed;
        }
        if (boot_clock::now() >= until) {
            const bool hangs =
                session->handle().connected() && session->handle().connected_since() < a->sent;
            if (hangs) session->handle().cut();
            if (p->state == QueueNode::State::idle) {
                // Not even sent.
                session->leave(p, Outcome::abandoned);
                a->place.reset();
                const error_code why = session->handle().trouble_code();
                a->outcome = spi::Attempt::Failed{why ? why : make(Error::no_answer)};
            } else {
                a->outcome = spi::Attempt::NoAnswer{make(Error::no_answer)};
            }
            a->detail = session->handle().trouble();
            co_return;
        }
        if (!session->handle().connected()) {
            std::string detail;
            auto ready = session->ready(until, &detail);
            const error_code why = co_await std::move(ready);
            if (!why) {
                session->enter(p);
            } else if (boot_clock::now() < until) {
                // It will not get better by waiting: the session has ended, or was refused.
                session->leave(p, Outcome::abandoned);
                a->place.reset();
                a->outcome = spi::Attempt::Failed{why};
                a->detail = detail.empty() ? why.message() : detail;
                co_return;
            }
            continue;
        }
        auto wait = p->gate.wait(shared_->engine, until);
        co_await std::move(wait);
    }
}

awaitable<void> ZooKeeperBackend::granted(spi::Attempt* a, QueueNodePtr p, SessionPtr session) {
    // No lease outlives what the servers grant a session. One that could not be believed for long
    // is worth waiting for the next heartbeats.
    const auto ttl = std::min(a->ttl, session->handle().timeout());
    auto base = session->base_for(ttl, a->sent);
    while (session->first(*p) && boot_clock::now() < a->deadline &&
           base + ttl - spi::drift(ttl) - boot_clock::now() < ttl / 5) {
        auto wait = shared_->beats.wait(shared_->engine, a->deadline);
        co_await std::move(wait);
        base = session->base_for(ttl, a->sent);
    }
    if (shared_->options.robust && !p->marked && session->first(*p)) {
        auto marking = mark(session, p, a->deadline);
        const error_code why = co_await std::move(marking);
        if (why) {
            a->outcome = spi::Attempt::NoAnswer{why};
            a->detail = why.message();
            co_return;
        }
        base = session->base_for(ttl, a->sent);
    }
    const bool believed = base + ttl - spi::drift(ttl) > boot_clock::now();
    if (!session->first(*p) || !believed) {
        // Its node may be there still. One try ends here, and core withdraws what is in doubt.
        if (a->queue)
            a->outcome = spi::Attempt::Busy{milliseconds(20)};
        else
            a->outcome = spi::Attempt::NoAnswer{make(Error::no_answer)};
        co_return;
    }
    p->state = QueueNode::State::granted;
    p->told = true;
    p->base = base;
    p->answered = boot_clock::now();
    p->expires = base + ttl;
    spi::Attempt::Granted g;
    g.token = FencingToken{static_cast<std::uint64_t>(p->czxid)};
    g.previous = p->previous;
    g.ttl = ttl;
    g.base = base;
    a->outcome = g;
}

// --- withdraw and release
// ---------------------------------------------------------------------------------

awaitable<bool> ZooKeeperBackend::left(QueueNodePtr p, boot_clock::time_point deadline) {
    while (!ended(*p) && boot_clock::now() < deadline) {
        auto wait = p->gate.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!ended(*p)) {
        const SessionPtr session = p->session.lock();
        if (session && session->handle().connected() &&
            session->handle().connected_since() < deadline - milliseconds(50) && p->removing)
            session->handle().cut();
    }
    co_return ended(*p);
}

awaitable<void> ZooKeeperBackend::withdraw(std::span<spi::Attempt* const> items) {
    std::vector<spi::Attempt*> all(items.begin(), items.end());
    for (spi::Attempt* a : all) {
        const QueueNodePtr p = place_of(a->place);
        if (!p || ended(*p)) continue;
        const SessionPtr session = p->session.lock();
        p->told = false;
        if (session) session->leave(p, Outcome::abandoned);
    }
    for (spi::Attempt* a : all) {
        a->withdrawal = {};
        QueueNodePtr p = place_of(a->place);
        if (!p) continue;
        const SessionPtr session = p->session.lock();
        if (!session || session->over()) continue;
        auto wait = left(std::move(p), a->deadline);
        const bool done = co_await std::move(wait);
        if (!done) a->withdrawal = make(Error::no_answer);
    }
}

awaitable<void> ZooKeeperBackend::release(std::span<spi::Held* const> items) {
    std::vector<spi::Held*> all(items.begin(), items.end());
    for (spi::Held* h : all) {
        h->released = ReleaseResult::unreachable;
        const QueueNodePtr p = place_of(h->place);
        const SessionPtr session = p ? p->session.lock() : nullptr;
        if (session && !ended(*p)) session->leave(p, h->outcome);
    }
    for (spi::Held* h : all) {
        QueueNodePtr p = place_of(h->place);
        if (!p) continue;
        const SessionPtr session = p->session.lock();
        bool done = true;
        if (session && !session->over()) {
            auto wait = left(p, h->deadline);
            done = co_await std::move(wait);
        }
        if (!done) continue;
        if (p->was_removed && !p->revoked)
            h->released = ReleaseResult::released;
        else
            h->released =
                p->revoked ? ReleaseResult::owned_by_other : ReleaseResult::already_expired;
    }
}

// --- renew
// ------------------------------------------------------------------------------------------

awaitable<void> ZooKeeperBackend::renew(std::span<spi::Held* const> items) {
    struct Waiting {
        spi::Held* held;
        QueueNodePtr place;
        SessionPtr session;
        bool at_once;
        std::uint64_t need;
    };
    using Renewal = spi::Held::Renewal;
    const auto renewed = [](const Waiting& w) {
        spi::Held& h = *w.held;
        QueueNode& p = *w.place;
        const auto ttl = std::min(h.ttl, w.session->handle().timeout());
        p.renewed_before = true;
        p.base = std::max(p.base, w.session->base_for(ttl, h.sent));
        p.expires = p.base + ttl;
        h.renewed_ttl = ttl;  // never more than the session's
        h.renewal = Renewal::renewed;
        h.renewed_base = p.base;
    };
    std::vector<Waiting> open;
    for (spi::Held* h : items) {
        const QueueNodePtr p = place_of(h->place);
        const SessionPtr session = p ? p->session.lock() : nullptr;
        if (!session || session->over() || ended(*p) || p->leaving || p->revoked) {
            h->renewal = Renewal::lost;
            h->renewal_error = p && p->revoked ? make_error_code(errc::revoked)
                               : p && p->why   ? p->why
                                               : make_error_code(errc::lost);
            continue;
        }
        h->renewal = Renewal::unknown;
        h->renewal_error = make(Error::no_answer);
        if (!session->handle().connected()) continue;
        if (!p->watched) session->watch_own(p);
        // Core renews when a third of the ttl has passed: the next heartbeat is near. A renewal
        // that somebody asks for before is proved by a write of its own, and so is one that comes
        // after heartbeats it missed: its time may be over before the next.
        const auto ttl = std::min(h->ttl, session->handle().timeout());
        const bool due = h->sent >= p->base + ttl / 3;
        const bool missed = session->base_for(ttl, h->sent) > p->base + ttl / 8;
        const bool at_once = !p->renewed_before || !due || missed;
        const std::uint64_t need = at_once ? session->prove() : session->beats_answered() + 1;
        open.push_back({h, p, session, at_once, need});
    }
    while (!open.empty()) {
        auto deadline = boot_clock::time_point::max();
        const auto now = boot_clock::now();
        std::erase_if(open, [&](Waiting& w) {
            spi::Held& h = *w.held;
            QueueNode& p = *w.place;
            if (w.session->over() || ended(p) || p.leaving || p.revoked) {
                h.renewal = Renewal::lost;
                h.renewal_error = p.revoked ? make_error_code(errc::revoked)
                                  : p.why   ? p.why
                                            : make_error_code(errc::lost);
                return true;
            }
            if (!w.session->handle().connected()) return true;
            if (w.session->beats_answered() >= w.need && p.watched) {
                renewed(w);
                return true;
            }
            if (now >= h.deadline) {
                // Where heartbeats are further apart than a request may take, the next one is only
                // not due yet: nothing is wrong, and nothing new is claimed.
                const auto silence = w.session->unanswered_for(now);
                const bool on_time =
                    w.session->well_proved(now) && silence < (h.deadline - h.sent) / 2;
                if (!w.at_once && p.watched && on_time) renewed(w);
                return true;
            }
            deadline = std::min(deadline, h.deadline);
            return false;
        });
        if (open.empty()) break;
        auto wait = shared_->beats.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
}

}  // namespace holdfast::zookeeper
