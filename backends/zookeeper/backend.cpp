#include "backend.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <set>

#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "renewal.hpp"
#include "settling.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr milliseconds idle_limit{30'000};

/// Its node outlives what was believed of it. One that is repeated was in time, or was not.
bool is_late(const spi::Held& h, const QueueNode& p) {
    const auto ttl = std::chrono::duration_cast<milliseconds>(p.expires - p.base);
    return !p.leaving() && h.sent >= spi::valid_until(p.base, ttl);
}

}  // namespace

ZooKeeperBackend::ZooKeeperBackend(const spi::Settings& s, spi::Context c)
    : shared_(std::make_shared<Shared>(s, c)), capabilities_(promises(s)) {
    shared_->on_beat = [this] { tidy(); };
    const Options& o = shared_->options;
    const bool local = std::all_of(o.hosts.begin(), o.hosts.end(), [](const spi::Endpoint& h) {
        return spi::on_this_machine(h.host);
    });
    if (!o.password.empty() && !local)
        c.events.warn(o.display +
                      ": the password crosses the network in clear; a tunnel (stunnel for "
                      "instance) keeps it secret");
}

ZooKeeperBackend::~ZooKeeperBackend() {
    shared_->on_beat = nullptr;
}

// --- sessions
// ---------------------------------------------------------------------------------------

SessionPtr ZooKeeperBackend::session_for(milliseconds ttl, milliseconds lock_delay) {
    tidy();
    SessionPtr& s = sessions_[{ttl, lock_delay}];
    if (s && s->usable()) return s;
    if (s) {
        s->retire();
        retired_.push_back(s);
    }
    s = std::make_shared<Session>(shared_, ttl, lock_delay);
    s->start();
    return s;
}

void ZooKeeperBackend::tidy() {
    const auto now = boot_clock::now();
    if (now - tidied_ < milliseconds(50)) return;
    tidied_ = now;
    for (auto at = sessions_.begin(); at != sessions_.end();) {
        const SessionPtr& s = at->second;
        // The watches of observers are this session's.
        const bool observes = !shared_->observed.empty() &&
                              at->first == std::pair(shared_->options.ttl, milliseconds(0));
        const bool unused = s->idle() && !observes && now - s->last_used() > idle_limit;
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

std::string ZooKeeperBackend::serving() const {
    std::set<std::string> servers;  // each session has its own
    for (const auto& [times, s] : sessions_)
        servers.insert(s->handle().server());
    servers.erase("");
    std::string all;
    for (const std::string& one : servers)
        all += (all.empty() ? "" : ", ") + one;
    return all;
}

awaitable<void> ZooKeeperBackend::end_session(SessionPtr s) {
    auto closing = s->close(boot_clock::now() + milliseconds(500));
    co_await std::move(closing);
}

awaitable<void> ZooKeeperBackend::close() {
    closed_ = true;
    std::vector<SessionPtr> all = std::exchange(retired_, {});
    for (auto& [times, s] : sessions_)
        all.push_back(s);
    sessions_.clear();
    const auto deadline = boot_clock::now() + closing_time;
    for (const SessionPtr& s : all) {
        auto closing = s->close(deadline);
        co_await std::move(closing);
    }
}

// --- attempt
// ----------------------------------------------------------------------------------------

awaitable<void> ZooKeeperBackend::attempt(std::span<spi::Attempt* const> all) {
    // All requests first, so that they share a round trip.
    for (spi::Attempt* a : all) {
        QueueNodePtr p = place_of(a->place);
        // A waiter that was refused learns that below.
        if (p && (p->refused || (!p->ended() && !p->leaving()))) continue;
        const milliseconds tick = shared_->options.tick;
        if (std::string words = too_short("ttl", a->ttl, tick); !words.empty()) {
            a->detail = std::move(words) + " " + too_short_remedy(tick);
            a->outcome = spi::Attempt::Failed{make(Error::too_short)};
            continue;
        }
        // A place that has ended is taken anew, with a session that lives.
        const SessionPtr session = session_for(a->ttl, a->lock_delay);
        if (!a->queue && session->queues().known_busy(*a)) {
            a->outcome = spi::Attempt::Busy{spi::Attempt::Busy::unnotified(a->ttl)};
            continue;
        }
        p = session->own().make_place(*a);
        a->place = p;
        session->own().enter(p->turn ? p->turn : p);
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
    using Step = Settling::Step;
    Settling s(a, std::move(p));
    for (Step step = Step::again; step != Step::done;) {
        if (step == Step::again) {
            step = s.next();
        } else if (step == Step::ask_strangers || step == Step::agree) {
            auto asking = step == Step::agree ? agree(a, s.place, s.session)
                                              : no_claims_beside(a, s.at, s.session);
            const spi::Failure failed = co_await std::move(asking);
            step = s.agreed(failed);
        } else if (step == Step::grant) {
            auto grant = granted(a, s.place, s.session);
            co_await std::move(grant);
            co_return;
        } else if (step == Step::leave || step == Step::leave_folders) {
            auto leaving = left(s.place, a->deadline);
            co_await std::move(leaving);
            if (step == Step::leave_folders) remove_folders(s.session, s.place->name);
            a->place.reset();
            co_return;
        } else if (step == Step::reconnect) {
            auto ready = s.session->ready(s.until);
            const spi::Failure failed = co_await std::move(ready);
            step = s.reconnected(failed);
        } else {
            auto wait = s.at->gate.wait(shared_->engine, s.until);
            co_await std::move(wait);
            step = Step::again;
        }
    }
}

awaitable<void> ZooKeeperBackend::granted(spi::Attempt* a, QueueNodePtr p, SessionPtr session) {
    // No lease outlives what the servers grant a session. One that could not be believed for long
    // is worth waiting for the next heartbeats.
    const auto ttl = std::min(a->ttl, session->heartbeat().lease_time());
    auto base = session->heartbeat().base_for(ttl, a->sent);
    while (session->queues().lets_in(*p) && boot_clock::now() < a->deadline &&
           spi::valid_until(base, ttl) - boot_clock::now() < ttl / 5) {
        auto wait = shared_->beats.wait(shared_->engine, a->deadline);
        co_await std::move(wait);
        base = session->heartbeat().base_for(ttl, a->sent);
    }
    if (shared_->options.robust && !p->marked && p->limit == 0 && session->queues().lets_in(*p)) {
        auto marking =
            p->reads() ? read_mark(session, p, a->deadline) : mark(session, p, a->deadline);
        const error_code why = co_await std::move(marking);
        if (why) {
            a->outcome = spi::Attempt::NoAnswer{why};
            a->detail = why.message();
            co_return;
        }
        base = session->heartbeat().base_for(ttl, a->sent);
    }
    const bool believed = spi::valid_until(base, ttl) > boot_clock::now();
    if (!session->queues().lets_in(*p) || !believed) {
        // Its node may be there still. One try ends here, and core withdraws what is in doubt.
        if (a->queue)
            a->outcome = spi::Attempt::Busy{milliseconds(20)};
        else
            a->outcome = spi::Attempt::NoAnswer{make(Error::no_answer)};
        co_return;
    }
    p->state = QueueNode::State::granted;
    if (const QueueNodePtr turn = std::exchange(p->turn, nullptr))
        session->own().leave(turn, Outcome::done);  // the next one's
    p->base = base;
    p->expires = base + ttl;
    spi::Attempt::Granted g;
    if (p->limit == 0) g.token = FencingToken{static_cast<std::uint64_t>(p->czxid)};
    g.previous = p->previous;
    g.ttl = ttl;
    g.base = base;
    a->outcome = g;
}

// --- withdraw and release
// ---------------------------------------------------------------------------------

awaitable<bool> ZooKeeperBackend::left(QueueNodePtr p, boot_clock::time_point deadline) {
    if (p->turn) {
        auto turn = left(p->turn, deadline);
        if (!co_await std::move(turn)) co_return false;
    }
    // What a server refuses it refuses again; the session goes on trying.
    while (!p->ended() && p->refusal != errc::denied && boot_clock::now() < deadline) {
        auto wait = p->gate.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!p->ended()) {
        const SessionPtr session = p->session.lock();
        if (session && session->handle().connected() &&
            session->handle().connected_since() < deadline - milliseconds(50) &&
            p->removal == QueueNode::Removal::requested)
            session->handle().cut();
    }
    co_return p->ended();
}

awaitable<void> ZooKeeperBackend::withdraw(std::span<spi::Attempt* const> all) {
    for (spi::Attempt* a : all) {
        const QueueNodePtr p = place_of(a->place);
        if (!p) continue;
        const SessionPtr session = p->session.lock();
        p->give_up_grant();
        if (session) session->own().leave(p, Outcome::abandoned);
    }
    for (spi::Attempt* a : all) {
        a->withdrawal = {};
        const QueueNodePtr p = place_of(a->place);
        if (!p) continue;
        const SessionPtr session = p->session.lock();
        if (!session || session->over()) continue;
        auto wait = left(p, a->deadline);
        const bool done = co_await std::move(wait);
        if (!done) a->withdrawal = p->refusal ? p->refusal : make(Error::no_answer);
    }
}

awaitable<void> ZooKeeperBackend::release(std::span<spi::Held* const> all) {
    for (spi::Held* h : all) {
        h->released = ReleaseResult::unreachable;
        const QueueNodePtr p = place_of(h->place);
        const SessionPtr session = p ? p->session.lock() : nullptr;
        if (!session || p->ended()) continue;
        if (is_late(*h, *p)) p->lapse();
        session->own().leave(p, h->outcome);
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
        if (!done) {
            h->release_error = p->refusal ? p->refusal : session->why_silent();
            h->detail = session->words_of(h->release_error);
            continue;
        }
        const bool by_us =
            p->state == QueueNode::State::removed && p->loss == QueueNode::Loss::none;
        h->released = p->revoked() ? ReleaseResult::owned_by_other
                      : by_us      ? ReleaseResult::released
                                   : ReleaseResult::already_expired;
    }
}

// --- renew
// ------------------------------------------------------------------------------------------

awaitable<void> ZooKeeperBackend::renew(std::span<spi::Held* const> items) {
    std::vector<Renewal> open;
    for (spi::Held* h : items)
        if (auto one = Renewal::begin(*h)) open.push_back(std::move(*one));
    while (!open.empty()) {
        const auto now = boot_clock::now();
        std::erase_if(open, [&](Renewal& r) { return r.answered(now); });
        if (open.empty()) break;
        auto deadline = boot_clock::time_point::max();
        for (const Renewal& r : open)
            deadline = std::min(deadline, r.deadline());
        auto wait = shared_->beats.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
}

}  // namespace holdfast::zookeeper
