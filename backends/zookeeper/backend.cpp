#include "backend.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr milliseconds idle_limit{30'000};

QueueNodePtr place_of(const std::shared_ptr<void>& p) {
    return std::static_pointer_cast<QueueNode>(p);
}

milliseconds look_within(milliseconds ttl) noexcept {
    return std::min(milliseconds(1000), ttl / 3);
}

/// Why a session's requests have no effect, as far as it knows.
error_code why_silent(Session& session) {
    if (session.refusal()) return session.refusal();
    const error_code trouble = session.handle().trouble_code();
    return trouble ? trouble : make(Error::no_answer);
}

std::string words_of(error_code why, Session& session) {
    if (why == session.refusal()) return session.refusal_words();
    return why == session.handle().trouble_code() ? session.handle().trouble() : why.message();
}

bool ended(const QueueNode& p) noexcept {
    return p.state == QueueNode::State::gone || p.state == QueueNode::State::failed;
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
    for (auto& [times, s] : sessions_)
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
        // Who was refused while it waited is told so below.
        if (p && (p->refused || (!ended(*p) && !p->leaving))) continue;
        const milliseconds tick = shared_->options.tick;
        if (std::string words = too_short("ttl", a->ttl, tick); !words.empty()) {
            a->detail = std::move(words) + " " + too_short_remedy(tick);
            a->outcome = spi::Attempt::Failed{make(Error::too_short)};
            continue;
        }
        // A place that has ended is taken anew, with a session that lives.
        const SessionPtr session = session_for(a->ttl, a->lock_delay);
        if (!a->queue && session->known_busy(*a)) {
            a->outcome = spi::Attempt::Busy{look_within(a->ttl)};
            continue;
        }
        p = session->make_place(*a);
        a->place = p;
        session->enter(p->turn ? p->turn : p);
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
        // Permits are asked for by whoever is the first in the line for them.
        const QueueNodePtr at = p->turn && !p->enlisted ? p->turn : p;
        if (at->state == QueueNode::State::failed || at->refused) {
            if (session) session->leave(p, Outcome::abandoned);
            // Numbers begin again when the servers have removed the line's own node.
            a->outcome = spi::Attempt::Failed{at->why, at->why == make(Error::used_up)};
            a->detail = at->why.message();
            a->place.reset();
            co_return;
        }
        const bool over = !session || session->over();
        if (ended(*at) || over || at->leaving) {
            if (session) session->leave(p, Outcome::abandoned);
            a->outcome = spi::Attempt::Failed{make_error_code(errc::unavailable)};
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
        const bool strangers = at->listed && at->strangers;
        if (strangers || (at == p && p->listed && (p->limit > 0 ? !p->agreed : p->folder))) {
            auto asking = strangers ? no_claims_beside(a, at, session) : agree(a, p, session);
            const error_code why = co_await std::move(asking);
            if (why == errc::kind_mismatch) {
                session->leave(p, Outcome::abandoned);
                auto wait = left(p, a->deadline);
                co_await std::move(wait);
                if (p->limit > 0) remove_folders(session, p->name);
                a->place.reset();
                a->outcome = spi::Attempt::Failed{why};
                co_return;
            }
            if (why) {
                a->outcome = spi::Attempt::NoAnswer{why};
                a->detail = why.message();
                co_return;
            }
            p = place_of(a->place);
            continue;
        }
        if (session->lets_in(*at)) {
            if (at == p) {
                auto grant = granted(a, p, session);
                co_await std::move(grant);
                co_return;
            }
            session->enter(p);
            continue;
        }
        if (session->blocked(at) && session->handle().connected()) {
            at->waited = true;
            if (!a->queue) {
                session->leave(p, Outcome::abandoned);
                auto wait = left(p, a->deadline);
                co_await std::move(wait);
                a->place.reset();
            } else {
                session->keep_waiting(at);
            }
            a->outcome = spi::Attempt::Busy{look_within(a->ttl)};
            co_return;
        }
        // A request's time begins when it is sent. Until then it waits for as long as others are.
        const auto allowed = a->deadline - a->sent;
        auto until = a->deadline;
        if (at->state == QueueNode::State::idle) {
            until = std::max(until, session->asked_last() + allowed);
        } else if (at->asked > a->sent) {
            a->sent = at->asked;
            a->deadline = until = at->asked + allowed;
        }
        if (boot_clock::now() >= until) {
            const bool hangs =
                session->handle().connected() && session->handle().connected_since() < a->sent;
            if (hangs) session->handle().cut();
            if (at->state == QueueNode::State::idle && (at == p->turn || !p->turn)) {
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
                session->enter(at);
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
        auto wait = at->gate.wait(shared_->engine, until);
        co_await std::move(wait);
    }
}

awaitable<void> ZooKeeperBackend::granted(spi::Attempt* a, QueueNodePtr p, SessionPtr session) {
    // No lease outlives what the servers grant a session. One that could not be believed for long
    // is worth waiting for the next heartbeats.
    const auto ttl = std::min(a->ttl, session->lease_time());
    auto base = session->base_for(ttl, a->sent);
    while (session->lets_in(*p) && boot_clock::now() < a->deadline &&
           base + ttl - spi::drift(ttl) - boot_clock::now() < ttl / 5) {
        auto wait = shared_->beats.wait(shared_->engine, a->deadline);
        co_await std::move(wait);
        base = session->base_for(ttl, a->sent);
    }
    if (shared_->options.robust && !p->marked && p->limit == 0 && session->lets_in(*p)) {
        auto marking =
            p->reads ? read_mark(session, p, a->deadline) : mark(session, p, a->deadline);
        const error_code why = co_await std::move(marking);
        if (why) {
            a->outcome = spi::Attempt::NoAnswer{why};
            a->detail = why.message();
            co_return;
        }
        base = session->base_for(ttl, a->sent);
    }
    const bool believed = base + ttl - spi::drift(ttl) > boot_clock::now();
    if (!session->lets_in(*p) || !believed) {
        // Its node may be there still. One try ends here, and core withdraws what is in doubt.
        if (a->queue)
            a->outcome = spi::Attempt::Busy{milliseconds(20)};
        else
            a->outcome = spi::Attempt::NoAnswer{make(Error::no_answer)};
        co_return;
    }
    p->state = QueueNode::State::granted;
    p->told = true;
    if (const QueueNodePtr turn = std::exchange(p->turn, nullptr))
        session->leave(turn, Outcome::done);  // the next one's
    p->base = base;
    p->answered = boot_clock::now();
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
    while (!ended(*p) && p->refusal != errc::denied && boot_clock::now() < deadline) {
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
        if (!p) continue;
        const SessionPtr session = p->session.lock();
        p->told = false;
        if (session) session->leave(p, Outcome::abandoned);
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
        if (!done) {
            h->release_error = p->refusal ? p->refusal : why_silent(*session);
            h->detail = words_of(h->release_error, *session);
            continue;
        }
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
        const auto ttl = std::min(h.ttl, w.session->lease_time());
        p.renewed_before = true;
        p.base = std::max(p.base, w.session->base_for(ttl, h.sent));
        p.expires = p.base + ttl;
        h.renewed_ttl = ttl;  // never more than the session's
        h.renewal = Renewal::renewed;
        h.renewed_base = p.base;
        h.asked = p.wanted_back;
    };
    const auto not_renewed = [](const Waiting& w) {
        const error_code why = w.place->refusal;
        w.held->renewal_error = why ? why : why_silent(*w.session);
        w.held->detail = words_of(w.held->renewal_error, *w.session);
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
        h->renewal_error = why_silent(*session);
        h->detail = words_of(h->renewal_error, *session);
        if (!session->handle().connected()) continue;
        if (!p->watched) session->watch_own(p);
        if (h->units.mode == Mode::shared) session->downgrade(p);
        // Core renews when a third of the ttl has passed: the next heartbeat is near. A renewal
        // that somebody asks for before is proved by a write of its own, and so is one that comes
        // after heartbeats it missed: its time may be over before the next.
        const auto ttl = std::min(h->ttl, session->lease_time());
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
            if (!w.session->handle().connected()) {
                not_renewed(w);
                return true;
            }
            // A downgrade is repeated until it is answered.
            const bool as_asked = h.units.mode != Mode::shared || p.reads;
            if (!as_asked && p.watched) w.session->downgrade(w.place);
            if (w.session->beats_answered() >= w.need && p.watched && as_asked) {
                renewed(w);
                return true;
            }
            if (now >= h.deadline) {
                // Where heartbeats are further apart than a request may take, the next one is only
                // not due yet: nothing is wrong, and nothing new is claimed.
                const auto silence = w.session->unanswered_for(now);
                const bool on_time =
                    w.session->well_proved(now) && silence < (h.deadline - h.sent) / 2;
                if (!w.at_once && p.watched && as_asked && on_time)
                    renewed(w);
                else
                    not_renewed(w);
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
