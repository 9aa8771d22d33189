#include "session.hpp"

#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/owner.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

Session::Session(std::shared_ptr<Shared> shared, milliseconds ttl, milliseconds lock_delay)
    : shared_(std::move(shared)),
      ttl_(ttl),
      lock_delay_(lock_delay),
      validity_(shared_->options.tick),
      last_used_(boot_clock::now()),
      ensemble_known_(shared_->options.hosts.size() < 2),
      beat_timer_(shared_->engine),
      beacon_(shared_->options.base + "/_hf_session-" + make_guid()) {
    handle_ = std::make_shared<Handle>(shared_, ttl_ + lock_delay_, *this);
}

Session::~Session() {
    drop();
}

void Session::start() {
    handle_->start();
    arm_beat(boot_clock::now() + interval());
}

milliseconds Session::interval() const {
    return std::max(Validity::spacing(shared_->options.tick), lease_time() / 8);
}

milliseconds Session::pace(boot_clock::time_point now) const {
    const bool late = validity_.base() && now - *validity_.base() > lease_time() / 2;
    return late || unproved_ ? Validity::spacing(shared_->options.tick) : interval();
}

boot_clock::time_point Session::surely_until() const {
    return spi::valid_until(*validity_.base(), handle_->timeout()) - lock_delay_;
}

boot_clock::time_point Session::base_for(milliseconds ttl, boot_clock::time_point sent) const {
    if (!validity_.base()) return boot_clock::time_point(boot_clock::duration(1));
    // From there the rule ends a lease with what is proved.
    const boot_clock::time_point zero;
    return std::min(sent, surely_until() - (spi::valid_until(zero, ttl) - zero));
}

bool Session::usable() const {
    if (over_ || retired_ || refused_) return false;
    return !validity_.base() || well_proved(boot_clock::now());
}

bool Session::well_proved(boot_clock::time_point now) const {
    if (!validity_.base()) return false;
    const milliseconds t = lease_time();
    // Just before the next heartbeat is answered three of them have passed; half of what is left
    // then is trouble.
    const milliseconds least = std::min(t / 3, (t - 3 * interval()) / 2);
    return surely_until() - now > least;
}

bool Session::outlives_change(boot_clock::duration answer) const {
    const bool holds = std::any_of(places_.begin(), places_.end(),
                                   [](const QueueNodePtr& p) { return p->held(); });
    if (!holds || !validity_.base()) return true;
    // The connection, three writes of a new chain, and the renewal that believes them.
    const auto proof = 5 * answer + 2 * Validity::spacing(shared_->options.tick);
    return boot_clock::now() + proof < surely_until();
}

boot_clock::duration Session::unanswered_for(boot_clock::time_point now) const {
    return beating_ ? now - beat_sent_ : boot_clock::duration::zero();
}

error_code Session::why_silent() const {
    if (refused_) return refused_;
    const error_code trouble = handle_->trouble_code();
    return trouble ? trouble : make(Error::no_answer);
}

std::string Session::words_of(error_code why) const {
    if (why == refused_) return refusal_words();
    return why == handle_->trouble_code() ? handle_->trouble() : why.message();
}

awaitable<error_code> Session::ready(boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    last_used_ = boot_clock::now();
    if (!handle_->connected()) handle_->hurry();
    const auto is_ready = [this] { return handle_->connected() && ensemble_known_; };
    while (!over_ && !refused_ && !is_ready() && boot_clock::now() < deadline) {
        auto wait = state_gate_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (detail != nullptr) *detail = refusal_words_.empty() ? handle_->trouble() : refusal_words_;
    if (refused_) co_return refused_;
    if (over_) co_return from_rc(ZSESSIONEXPIRED);
    if (is_ready()) co_return error_code();
    if (handle_->trouble_code()) co_return handle_->trouble_code();
    co_return make(Error::no_answer);
}

// --- what the handle says
// -------------------------------------------------------------------------------

void Session::connected(bool first) {
    if (over_) return;
    disconnected_since_.reset();
    if (first) validity_.created(handle_->connect_sent());
    const milliseconds length = lease_time(), tick = shared_->options.tick;
    if (std::string words = too_short("session", length, tick); !words.empty()) {
        // The servers' maxSessionTimeout: nothing of this length could be believed for long.
        words += " The servers grant no more";
        if (lock_delay_ > milliseconds::zero())
            words += " beside a lock_delay of " + spi::format_duration(lock_delay_);
        words += ": see their maxSessionTimeout.";
        return refuse(make(Error::too_short), std::move(words));
    }
    if (first && length > ttl_ && length / 2 > tick)
        shared_->events->warn("The servers grant no session shorter than " +
                              spi::format_duration(length) +
                              ", by default two of their ticks, so their tickTime may be longer "
                              "than tick_time=" +
                              spi::format_duration(tick) +
                              ". Exclusion depends on it: set tick_time to their tickTime.");
    // Before all else, so that no grant comes before the answer.
    if (!ensemble_known_) ask_for_ensemble();
    beating_ = false;
    chain_due_ = boot_clock::now();
    send_beat(true);
    arm_beat(boot_clock::now() + interval());
    for (auto& [parent, l] : lines_) {
        l.answered = l.sent;
        l.wanted = false;
    }
    const auto all = places_;
    std::unordered_set<std::string> synced;
    for (const QueueNodePtr& p : all) {
        p->end_removal_request();
        const bool in_doubt = p->state == QueueNode::State::in_doubt;
        if (in_doubt && synced.insert(p->parent).second) handle_->sync(p->parent);
        if (in_doubt)
            look_for(p);
        else if (p->leaving())
            remove_node(p);
        else if (p->state == QueueNode::State::queued)
            want_list(line(*p));
        else if (p->held() && p->renewed_before)
            watch_own(p);
    }
    let_in();
    state_gate_.open();
}

void Session::refuse(error_code why, std::string words) {
    refused_ = why;
    refusal_words_ = std::move(words);
    state_gate_.open();
}

void Session::ask_for_ensemble() {
    handle_->get("/zookeeper/config", false, [weak = weak_from_this()](Call& c) {
        const auto self = weak.lock();
        if (!self || unanswered(c.rc)) return;
        self->ensemble_known_ = true;
        self->state_gate_.open();
        // One line for each server, none where it stands alone. Unreadable: as configured.
        const auto one = c.text.find("server.");
        if (c.rc != ZOK || (one != c.text.npos && c.text.find("server.", one + 1) != c.text.npos))
            return;
        self->refuse(make(Error::no_ensemble),
                     "The server that answered, one of " + hosts_text(self->shared_->options) +
                         ", is in no ensemble, so the others would grant the same lock. Name only "
                         "that server, or make them one ensemble.");
    });
}

void Session::disconnected() {
    disconnected_since_ = boot_clock::now();
    validity_.disconnected();
    behind_ = unproved_ = true;
    beating_ = false;
    prove_soon_ = false;
    for (auto& [parent, verified_parent] : known_parents_)
        verified_parent = {};
    for (auto& [parent, l] : lines_)
        l.unwatch();
    for (const QueueNodePtr& p : places_)
        p->end_watch();
    shared_->beats.open();
    for (const QueueNodePtr& p : places_)
        if (p->held()) shared_->events->at_risk(p->owner);
}

void Session::ended(int rc) {
    if (std::exchange(over_, true)) return;
    if (rc == ZAUTHFAILED) {
        refused_ = from_rc(ZAUTHFAILED);
        if (handle_->trouble_code()) refused_ = handle_->trouble_code();
    }
    validity_.disconnected();
    beat_timer_.cancel();
    fail_all(make(Error::session_over));
    state_gate_.open();
    shared_->beats.open();
}

void Session::fail_all(error_code why) {
    const auto all = places_;
    for (const QueueNodePtr& p : all) {
        const bool lost = p->held();
        const bool waits = p->waits();
        end_place(p, QueueNode::State::gone, why);
        if (lost) shared_->events->lost(p->owner, why);
        if (waits) shared_->events->wake(p->owner);
    }
    lines_.clear();
    entering_.clear();
}

void Session::give_up_waiting(boot_clock::time_point now) {
    // The servers have ended the session by now, or forgotten it: one that was restored from older
    // data does not even answer it. Whoever waits stands in line again, in a new session; what this
    // one may have left is deleted if it ever comes back.
    const auto away = now - *disconnected_since_;
    if (away <= handle_->timeout()) return;
    if (away > 2 * handle_->timeout() + std::chrono::seconds(5)) return ended(0);
    if (std::exchange(gave_up_, true)) return;
    retired_ = true;
    const auto all = places_;
    for (const QueueNodePtr& p : all) {
        if (p->state == QueueNode::State::granted || p->leaving()) continue;
        leave(p, Outcome::abandoned);
        p->gate.open();
        shared_->events->wake(p->owner);
    }
    state_gate_.open();
}

// --- the heartbeat
// --------------------------------------------------------------------------------------

void Session::arm_beat(boot_clock::time_point due) {
    beat_timer_.expires_at(spi::net::steady(due));
    beat_timer_.async_wait([weak = weak_from_this()](error_code ec) {
        const auto self = weak.lock();
        if (!ec && self && !self->over_) self->beat();
    });
}

void Session::beat() {
    const auto now = boot_clock::now();
    expire_places(now);
    if (handle_->connected()) {
        see_to_lines();
        sweep_ghosts(now);
        // Those whose delete was refused as well.
        for (const QueueNodePtr& p : places_)
            if (p->leaving()) remove_node(p);
        // Nothing else would tell that this server hangs, or is cut off from the others.
        const auto patience = std::max<boot_clock::duration>(lease_time() / 4, 2 * interval());
        if (beating_ && now - beat_sent_ > patience)
            handle_->cut();
        else if (!beating_ && now >= chain_due_)
            send_beat(true);
    }
    if (disconnected_since_ && validity_.base()) give_up_waiting(now);
    if (shared_->on_beat) shared_->on_beat();
    if (over_) return;
    auto next = now + interval();
    if (!beating_ && chain_due_ > now) next = std::min(next, chain_due_);
    arm_beat(next);
}

std::uint64_t Session::prove() {
    if (beating_) {
        prove_soon_ = true;
        return sent_ + 1;
    }
    send_beat(boot_clock::now() >= chain_due_);
    return sent_;
}

void Session::send_beat(bool chained) {
    if (over_ || !handle_->connected()) return;
    const auto now = boot_clock::now();
    beating_ = true;
    beat_sent_ = now;
    ++sent_;
    if (chained) chain_due_ = now + pace(now);
    const bool creating = !has_beacon_;
    auto then = [weak = weak_from_this(), now, chained, creating](Call& c) {
        if (const auto self = weak.lock()) self->beat_answered(now, chained, creating, c.rc);
    };
    if (!creating) {
        handle_->set(beacon_, {}, -1, std::move(then));
        return;
    }
    create_base();
    handle_->create(beacon_, spi::make_owner({}), Handle::Kind::ephemeral, std::move(then));
}

void Session::create_base() {
    const std::string& base = shared_->options.base;
    for (std::size_t at = base.find('/', 1); !base.empty(); at = base.find('/', at + 1)) {
        create_parent(base.substr(0, at), {}, Handle::Kind::persistent);
        if (at == base.npos) break;
    }
}

void Session::create_parent(const std::string& path, std::string_view data, Handle::Kind kind,
                            Handle::Then then) {
    handle_->create(path, data, kind, [weak = weak_from_this(), then = std::move(then)](Call& c) {
        // Servers refuse it also where the node exists, so that this alone says nothing.
        const auto self = weak.lock();
        if (self && from_rc(c.rc) == errc::denied) self->no_parent_ = from_rc(c.rc);
        if (self && c.rc == ZOK) self->no_parent_ = {};
        if (then) then(c);
    });
}

error_code Session::why_not_made(int rc) const {
    return rc == ZNONODE && no_parent_ ? no_parent_ : from_rc(rc);
}

void Session::beat_answered(boot_clock::time_point sent, bool chained, bool creating, int rc) {
    if (over_ || unanswered(rc)) return;
    beating_ = false;
    const bool written = rc == ZOK;
    if (written || (creating && rc == ZNODEEXISTS)) has_beacon_ = true;
    if (written) {
        answered_ = sent_;
        if (chained) {
            const auto now = boot_clock::now();
            const auto before = validity_.base();
            const bool late = before && now - *before > lease_time() / 2;
            validity_.acknowledged(sent, now);
            if (validity_.base() != before) unproved_ = false;
            // The servers are there again. A lease whose renewal failed meanwhile would ask again
            // when its pause is over, which may be too late.
            if (std::exchange(behind_, false) || (late && validity_.base() != before))
                shared_->events->at_risk({});
            chain_due_ = std::max(chain_due_, validity_.next());
        }
    } else if (rc == ZNONODE) {
        has_beacon_ = false;
        if (creating && no_parent_)
            refuse(no_parent_, "the node " + shared_->options.base +
                                   " does not exist, and the server denied permission to make it");
    } else if (const error_code why = from_rc(rc); rc != ZNODEEXISTS && why != errc::unavailable) {
        refuse(why);
    }
    if (std::exchange(prove_soon_, false)) send_beat(boot_clock::now() >= chain_due_);
    shared_->beats.open();
    // What is due next, now that its time is known.
    if (!beating_) arm_beat(std::max(chain_due_, boot_clock::now() + milliseconds(1)));
}

// --- the end
// ----------------------------------------------------------------------------------------

awaitable<void> Session::close(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    over_ = true;
    beat_timer_.cancel();
    auto closing = handle_->close(deadline);
    co_await std::move(closing);
    fail_all(make_error_code(errc::closed));
    state_gate_.open();
    shared_->beats.open();
}

void Session::drop() {
    over_ = true;
    beat_timer_.cancel();
    handle_->drop();
}

}  // namespace holdfast::zookeeper
