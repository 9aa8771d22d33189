#include "settling.hpp"

#include <algorithm>

#include "errors.hpp"

namespace holdfast::zookeeper {

Settling::Step Settling::next() {
    // The first in the line for permits asks for them.
    at = place->turn && !place->entered() ? place->turn : place;
    if (const Exit step = refused()) return *step;
    if (const Exit step = over()) return *step;
    if (const Exit step = session_refused()) return *step;
    if (const Exit step = beside_others()) return *step;
    if (const Exit step = let_in()) return *step;
    if (const Exit step = blocked()) return *step;
    set_time();
    if (const Exit step = late()) return *step;
    return session->handle().connected() ? Step::wait : Step::reconnect;
}

Settling::Step Settling::fail(const spi::Failure& failed) {
    session->own().leave(place, Outcome::abandoned);
    a->place.reset();
    a->outcome = spi::Attempt::Failed{failed.why};
    a->detail = failed.text();
    return Step::done;
}

Settling::Exit Settling::refused() {
    if (at->state != QueueNode::State::failed && !at->refused) return {};
    if (session) session->own().leave(place, Outcome::abandoned);
    // Numbers begin again when the servers have removed the line's own node.
    a->outcome = spi::Attempt::Failed{at->why, at->why == make(Error::used_up)};
    a->detail = at->why.message();
    a->place.reset();
    return Step::done;
}

Settling::Exit Settling::over() {
    if (session && !session->over() && !at->ended() && !at->leaving()) return {};
    if (session) session->own().leave(place, Outcome::abandoned);
    a->outcome = spi::Attempt::Failed{make_error_code(errc::unavailable)};
    a->detail = "the session has ended, or was not confirmed for too long";
    a->place.reset();
    return Step::done;
}

Settling::Exit Settling::session_refused() {
    if (!session->refusal()) return {};
    return fail(session->refusal());
}

Settling::Exit Settling::beside_others() {
    if (!at->listed) return {};
    if (at->strangers) return Step::ask_strangers;
    if (at != place || !place->to_agree) return {};
    return Step::agree;
}

Settling::Step Settling::agreed(const spi::Failure& failed) {
    if (failed.why == errc::kind_mismatch) {
        session->own().leave(place, Outcome::abandoned);
        a->outcome = spi::Attempt::Failed{failed.why};
        a->detail = failed.detail;
        return place->limit > 0 ? Step::leave_folders : Step::leave;
    }
    if (failed) {
        a->outcome = spi::Attempt::NoAnswer{failed.why};
        a->detail = failed.why.message();
        return Step::done;
    }
    place = place_of(a->place);  // perhaps another, which was entered anew
    return Step::again;
}

Settling::Exit Settling::let_in() {
    if (!session->queues().lets_in(*at)) return {};
    if (at == place) return Step::grant;
    session->own().enter(place);
    return Step::again;
}

Settling::Exit Settling::blocked() {
    if (!session->queues().blocked(at) || !session->handle().connected()) return {};
    at->waited = true;
    a->outcome = spi::Attempt::Busy{spi::Attempt::Busy::unnotified(a->ttl)};
    if (a->queue) {
        session->queues().keep_waiting(at);
        return Step::done;
    }
    session->own().leave(place, Outcome::abandoned);
    return Step::leave;
}

void Settling::set_time() {
    // A request's time begins when it is sent, and those that follow from it, or repeat it, have no
    // other. Until then it waits for as long as others are sent.
    const auto allowed = a->deadline - a->sent;
    until = a->deadline;
    if (begun_) return;
    if (at->unsent()) {
        until = std::max(until, session->own().asked_last() + allowed);
        return;
    }
    begun_ = true;
    if (at->asked <= a->sent) return;
    a->sent = at->asked;
    a->deadline = until = at->asked + allowed;
}

Settling::Exit Settling::late() {
    if (boot_clock::now() < until) return {};
    Handle& handle = session->handle();
    const bool hangs = handle.connected() && handle.connected_since() < a->sent;
    if (hangs) handle.cut();
    if (at->unsent() && (at == place->turn || !place->turn)) {
        // Not even sent.
        return fail(handle.trouble() ? handle.trouble() : make(Error::no_answer));
    }
    a->outcome = spi::Attempt::NoAnswer{make(Error::no_answer)};
    a->detail = handle.trouble().detail;
    return Step::done;
}

Settling::Step Settling::reconnected(const spi::Failure& failed) {
    if (!failed) {
        session->own().enter(at);
    } else if (boot_clock::now() < until) {
        // It will not get better by waiting: the session has ended, or was refused.
        return fail(failed);
    }
    return Step::again;
}

}  // namespace holdfast::zookeeper
