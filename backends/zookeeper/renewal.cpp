#include "renewal.hpp"

#include <algorithm>

namespace holdfast::zookeeper {
namespace {

bool is_lost(const QueueNode* p, const Session* session) {
    return session == nullptr || session->over() || p->ended() || p->leaving() || p->revoked();
}

void lose(spi::Held& h, const QueueNode* p) {
    h.renewal = spi::Held::Renewal::lost;
    h.renewal_error = p != nullptr && p->revoked() ? make_error_code(errc::revoked)
                      : p != nullptr && p->why     ? p->why
                                                   : make_error_code(errc::lost);
}

}  // namespace

std::optional<Renewal> Renewal::begin(spi::Held& h) {
    const QueueNodePtr p = place_of(h.place);
    const SessionPtr session = p ? p->session.lock() : nullptr;
    if (is_lost(p.get(), session.get())) {
        lose(h, p.get());
        return {};
    }
    h.renewal = spi::Held::Renewal::unknown;
    h.renewal_error = session->why_silent();
    h.detail = session->words_of(h.renewal_error);
    if (!session->handle().connected()) return {};
    if (!p->watched()) session->own().watch(p);
    if (h.units.mode == Mode::shared) session->own().downgrade(p);
    Renewal made(h, p, session);
    made.ask_for_proof();
    return made;
}

void Renewal::ask_for_proof() {
    // Core renews when a third of the ttl has passed: the next heartbeat is near. A renewal that
    // somebody asks for before is proved by a write of its own, and so is one that comes after
    // heartbeats it missed: its time may be over before the next.
    const auto ttl = std::min(held_->ttl, session_->heartbeat().lease_time());
    const bool due = held_->sent >= place_->base + ttl / 3;
    const bool missed = session_->heartbeat().base_for(ttl, held_->sent) > place_->base + ttl / 8;
    at_once_ = !place_->renewed_before || !due || missed;
    need_ = at_once_ ? session_->heartbeat().prove() : session_->heartbeat().answered() + 1;
}

bool Renewal::answered(boot_clock::time_point now) {
    if (is_lost(place_.get(), session_.get())) {
        lose(*held_, place_.get());
        return true;
    }
    if (!session_->handle().connected()) {
        not_renewed();
        return true;
    }
    // A downgrade is repeated until it is answered.
    if (!as_asked() && place_->watched()) session_->own().downgrade(place_);
    const bool confirmed = place_->watched() && as_asked();
    if (confirmed && session_->heartbeat().answered() >= need_) {
        renewed();
        return true;
    }
    if (now < held_->deadline) return false;
    if (!at_once_ && as_asked() && on_time(now))
        renewed();
    else
        not_renewed();
    return true;
}

bool Renewal::on_time(boot_clock::time_point now) const {
    // Where heartbeats are further apart than a request may take, the next one is only not due yet,
    // and a node that has just changed is being read: nothing is wrong, and nothing new is claimed.
    const auto silence = session_->heartbeat().unanswered_for(now);
    const auto unread = place_->watched() ? silence : now - place_->watch_asked;
    return session_->heartbeat().well_proved(now) &&
           std::max(silence, unread) < (held_->deadline - held_->sent) / 2;
}

void Renewal::renewed() {
    spi::Held& h = *held_;
    QueueNode& p = *place_;
    const auto ttl = std::min(h.ttl, session_->heartbeat().lease_time());
    p.renewed_before = true;
    p.base = std::max(p.base, session_->heartbeat().base_for(ttl, h.sent));
    p.expires = p.base + ttl;
    h.renewed_ttl = ttl;  // never more than the session's
    h.renewal = spi::Held::Renewal::renewed;
    h.renewed_base = p.base;
    h.asked = p.wanted_back;
}

void Renewal::not_renewed() {
    const error_code why = place_->refusal;
    held_->renewal_error = why ? why : session_->why_silent();
    held_->detail = session_->words_of(held_->renewal_error);
}

}  // namespace holdfast::zookeeper
