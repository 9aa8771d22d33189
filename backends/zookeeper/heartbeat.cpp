#include "heartbeat.hpp"

#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "holdfast/spi/owner.hpp"
#include "nodes.hpp"
#include "session.hpp"

namespace holdfast::zookeeper {

Heartbeat::Heartbeat(Session& s, Shared& shared, Handle& h, milliseconds lock_delay)
    : SessionPart(s, shared, h),
      lock_delay_(lock_delay),
      validity_(shared.options.tick),
      timer_(shared.engine),
      beacon_(shared.options.base + "/_hf_session-" + make_guid()) {}

// --- what is proved
// ------------------------------------------------------------------------------------

boot_clock::time_point Heartbeat::surely_until() const {
    return spi::valid_until(*validity_.base(), handle_.timeout()) - lock_delay_;
}

boot_clock::time_point Heartbeat::base_for(milliseconds ttl, boot_clock::time_point sent) const {
    if (!proved()) return boot_clock::time_point(boot_clock::duration(1));
    // From there the rule ends a lease with what is proved.
    const boot_clock::time_point zero;
    return std::min(sent, surely_until() - (spi::valid_until(zero, ttl) - zero));
}

bool Heartbeat::well_proved(boot_clock::time_point now) const {
    if (!proved()) return false;
    const milliseconds t = lease_time();
    // Just before the next heartbeat is answered three of them have passed; half of what is left
    // then is trouble.
    const milliseconds least = std::min(t / 3, (t - 3 * interval()) / 2);
    return surely_until() - now > least;
}

bool Heartbeat::late(boot_clock::time_point now) const {
    return proved() && now - *validity_.base() > lease_time() / 2;
}

boot_clock::duration Heartbeat::unanswered_for(boot_clock::time_point now) const {
    return beating_ ? now - beat_sent_ : boot_clock::duration::zero();
}

// --- when
// ------------------------------------------------------------------------------------

milliseconds Heartbeat::interval() const {
    return std::max(Validity::spacing(shared_.options.tick), lease_time() / 8);
}

milliseconds Heartbeat::pace(boot_clock::time_point now) const {
    return late(now) || unproved_ ? Validity::spacing(shared_.options.tick) : interval();
}

void Heartbeat::arm(boot_clock::time_point due) {
    timer_.expires_at(spi::net::steady(due));
    timer_.async_wait([weak = session_.weak_from_this()](error_code ec) {
        const auto self = weak.lock();
        if (!ec && self && !self->over()) self->beat();
    });
}

void Heartbeat::arm_next(boot_clock::time_point now) {
    auto next = now + interval();
    if (!beating_ && chain_due_ > now) next = std::min(next, chain_due_);
    arm(next);
}

void Heartbeat::keep_up(boot_clock::time_point now) {
    // Nothing else would tell that this server hangs, or is cut off from the others.
    const auto patience = std::max<boot_clock::duration>(lease_time() / 4, 2 * interval());
    if (beating_ && now - beat_sent_ > patience)
        handle_.cut();
    else if (!beating_ && now >= chain_due_)
        send(true);
}

void Heartbeat::connected() {
    beating_ = false;
    chain_due_ = boot_clock::now();
    send(true);
    arm(boot_clock::now() + interval());
}

void Heartbeat::disconnected() {
    validity_.disconnected();
    behind_ = unproved_ = true;
    beating_ = false;
    prove_soon_ = false;
}

void Heartbeat::stop() {
    validity_.disconnected();
    timer_.cancel();
}

// --- a write
// ------------------------------------------------------------------------------------

std::uint64_t Heartbeat::prove() {
    if (beating_) {
        prove_soon_ = true;
        return sent_ + 1;
    }
    send_now();
    return sent_;
}

void Heartbeat::send_now() {
    send(boot_clock::now() >= chain_due_);
}

void Heartbeat::send(bool chained) {
    if (session_.over() || !handle_.connected()) return;
    const auto now = boot_clock::now();
    beating_ = true;
    beat_sent_ = now;
    ++sent_;
    if (chained) chain_due_ = now + pace(now);
    const bool creating = !has_beacon_;
    auto then = when_answered(
        [this, now, chained, creating](Call& c) { on_answer(now, chained, creating, c.rc); });
    if (!creating) {
        handle_.set(beacon_, {}, -1, std::move(then));
        return;
    }
    session_.own().create_base();
    handle_.create(beacon_, spi::make_owner({}), Handle::Kind::ephemeral, std::move(then));
}

void Heartbeat::on_answer(boot_clock::time_point sent, bool chained, bool creating, int rc) {
    if (session_.over() || unanswered(rc)) return;
    beating_ = false;
    if (rc == ZOK || (creating && rc == ZNODEEXISTS)) has_beacon_ = true;
    if (rc == ZOK) {
        answered_ = sent_;
        if (chained) written(sent);
    } else if (rc == ZNONODE) {
        has_beacon_ = false;
        if (const error_code why = session_.own().no_parent(); creating && why)
            session_.refuse({why, "the node " + shared_.options.base +
                                      " does not exist, and the server denied permission to make "
                                      "it"});
    } else if (const error_code why = from_rc(rc); rc != ZNODEEXISTS && why != errc::unavailable) {
        session_.refuse(why);
    }
    if (std::exchange(prove_soon_, false)) send_now();
    shared_.beats.open();
    // What is due next, now that its time is known.
    if (!beating_) arm(std::max(chain_due_, boot_clock::now() + milliseconds(1)));
}

void Heartbeat::written(boot_clock::time_point sent) {
    const auto now = boot_clock::now();
    const auto before = validity_.base();
    const bool was_late = late(now);
    validity_.acknowledged(sent, now);
    const bool proves = validity_.base() != before;
    if (proves) unproved_ = false;
    // The servers are there again. A lease whose renewal failed meanwhile would ask again when its
    // pause is over, which may be too late.
    if (std::exchange(behind_, false) || (was_late && proves)) shared_.events->at_risk({});
    chain_due_ = std::max(chain_due_, validity_.next());
}

}  // namespace holdfast::zookeeper
