#include "session.hpp"

#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/owner.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

Session::Session(std::shared_ptr<Shared> shared, milliseconds ttl)
    : shared_(std::move(shared)),
      ttl_(ttl),
      last_used_(boot_clock::now()),
      beat_timer_(shared_->engine),
      beacon_(shared_->options.base + "/_hf_session-" + make_guid()) {
    handle_ = std::make_shared<Handle>(shared_, ttl_, *this);
}

Session::~Session() {
    drop();
}

void Session::start() {
    handle_->start();
    arm_beat(boot_clock::now() + interval());
}

milliseconds Session::closest() const {
    return std::max(milliseconds(10), std::min(shared_->options.tick / 2, handle_->timeout() / 4));
}

milliseconds Session::interval() const {
    return std::max(closest(), handle_->timeout() / 8);
}

milliseconds Session::pace(boot_clock::time_point now) const {
    const milliseconds t = handle_->timeout();
    const bool late = validity_.base() && now - *validity_.base() > t / 2;
    return late ? closest() : interval();
}

boot_clock::time_point Session::base_for(milliseconds ttl, boot_clock::time_point sent) const {
    const auto base = validity_.base();
    if (!base) return boot_clock::time_point(boot_clock::duration(1));
    const milliseconds t = handle_->timeout();
    const auto surely_until = *base + t - spi::drift(t);
    return std::min(sent, surely_until - ttl + spi::drift(ttl));
}

bool Session::usable() const {
    if (over_ || retired_ || refused_) return false;
    const auto base = validity_.base();
    if (!base) return true;
    const milliseconds t = handle_->timeout();
    return *base + t - spi::drift(t) - boot_clock::now() > t / 3;
}

awaitable<error_code> Session::ready(boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    last_used_ = boot_clock::now();
    if (!handle_->connected()) handle_->hurry();
    while (!over_ && !refused_ && !handle_->connected() && boot_clock::now() < deadline) {
        auto wait = state_gate_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (detail != nullptr) *detail = handle_->trouble();
    if (refused_) co_return refused_;
    if (over_) co_return from_rc(ZSESSIONEXPIRED);
    if (handle_->connected()) co_return error_code();
    if (handle_->trouble_code()) co_return handle_->trouble_code();
    co_return make(Error::no_answer);
}

// --- what the handle says
// -------------------------------------------------------------------------------

void Session::connected(bool first) {
    if (over_) return;
    disconnected_since_.reset();
    if (first) validity_.created(handle_->connect_sent());
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
    for (const PlacePtr& p : all) {
        p->removing = false;
        if (p->in_doubt && synced.insert(p->parent).second) handle_->sync(p->parent);
        if (p->in_doubt)
            look_for(p);
        else if (p->leaving)
            remove_node(p);
        else if (p->state == Place::State::idle)
            create_node(p);
        else if (p->state == Place::State::queued)
            want_list(line(p->parent));
        else if (p->told && p->renewed_before)
            watch_own(p);
    }
    state_gate_.open();
}

void Session::disconnected() {
    disconnected_since_ = boot_clock::now();
    validity_.disconnected();
    beating_ = false;
    prove_soon_ = false;
    for (auto& [parent, ground] : known_parents_)
        ground = {};
    for (auto& [parent, l] : lines_)
        l.unwatch();
    for (const PlacePtr& p : places_)
        p->watched = false;
    shared_->beats.open();
    // Core hears of many leases by their renewals, which are due soon and fail at once.
    std::size_t told = 0;
    for (const PlacePtr& p : places_)
        if (p->told && !p->leaving && ++told <= 64) shared_->sink->doubt(p->owner);
}

void Session::ended(int rc) {
    if (std::exchange(over_, true)) return;
    if (rc == ZAUTHFAILED) {
        refused_ = from_rc(ZAUTHFAILED);
        if (handle_->trouble_code()) refused_ = handle_->trouble_code();
    }
    validity_.disconnected();
    beat_timer_.cancel();
    fail_all(make_error_code(errc::lost));
    state_gate_.open();
    shared_->beats.open();
}

void Session::fail_all(error_code why) {
    const auto all = places_;
    std::size_t told = 0;
    for (const PlacePtr& p : all) {
        const bool lost = p->told && !p->leaving;
        const bool waits = p->state == Place::State::queued && !p->leaving;
        end_place(p, Place::State::gone, why);
        if (lost && ++told <= 64) shared_->sink->lost(p->owner, why);
        if (waits) shared_->sink->wake(p->owner);
    }
    lines_.clear();
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
    for (const PlacePtr& p : all) {
        if (p->told || p->leaving) continue;
        leave(p, Outcome::abandoned);
        p->gate.open();
        shared_->sink->wake(p->owner);
    }
    state_gate_.open();
}

// --- the heartbeat
// --------------------------------------------------------------------------------------

void Session::arm_beat(boot_clock::time_point due) {
    beat_timer_.expires_at(steady(due));
    beat_timer_.async_wait([weak = weak_from_this()](error_code ec) {
        const auto self = weak.lock();
        if (!ec && self && !self->over_) self->beat();
    });
}

void Session::beat() {
    const auto now = boot_clock::now();
    expire_places(now);
    for (auto at = lines_.begin(); at != lines_.end();)
        at = at->second.places == 0 ? lines_.erase(at) : std::next(at);
    if (handle_->connected()) {
        sweep_ghosts(now);
        // Nothing else would tell that this server hangs, or is cut off from the others.
        const auto patience =
            std::max<boot_clock::duration>(handle_->timeout() / 4, 2 * interval());
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
        handle_->create(base.substr(0, at), {}, Handle::Kind::persistent);
        if (at == base.npos) break;
    }
}

void Session::beat_answered(boot_clock::time_point sent, bool chained, bool creating, int rc) {
    if (over_ || unanswered(rc)) return;
    beating_ = false;
    const bool written = rc == ZOK;
    if (written || (creating && rc == ZNODEEXISTS)) has_beacon_ = true;
    if (written) {
        answered_ = sent_;
        if (chained) validity_.acknowledged(sent);
    } else if (rc == ZNONODE) {
        has_beacon_ = false;
    } else if (rc != ZNODEEXISTS) {
        refused_ = from_rc(rc);
        state_gate_.open();
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
