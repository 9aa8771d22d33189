// Asks for a name: the quick script first, another where its answer says so.
#include <algorithm>
#include <random>

#include "../../resp/errors.hpp"
#include "script_calls.hpp"

namespace holdfast::redis {

using spi::Attempt;
using spi::Held;

namespace {

/// For how long the server keeps a grant, or a hand-over, of which `told` is believed.
template <class Item>
milliseconds kept(const Item& of, milliseconds told) noexcept {
    return std::max(told + of.lock_delay, of.min_hold);
}

std::int64_t jitter(std::int64_t middle, std::int64_t percent) {
    thread_local std::minstd_rand random{std::random_device{}()};
    const auto spread = std::max<std::int64_t>(middle * percent / 100, 1);
    return middle + std::uniform_int_distribution<std::int64_t>(-spread, spread)(random);
}

/// When a queued waiter looks again by itself. `ours`: the holder's release notifies it.
milliseconds next_look(milliseconds window, std::int64_t left, std::int64_t rank, bool ours) {
    std::int64_t look = jitter(window.count() / 3, 10);
    if (left == -2) {  // free: the first waiter is being notified, or looks by itself
        look = std::min<std::int64_t>(look, rank == 0 ? 5 : jitter(100, 50));
    } else if (rank == 0) {
        if (!ours) look = std::min(look, jitter(100, 50));
        if (left >= 0) look = std::min(look - 2, left) + 2;
    }
    return milliseconds(std::max<std::int64_t>(look, 1));
}

/// In mode=plain. An earlier request whose answer was lost may have taken the lock: that is asked
/// first, since there may be no time for a second request.
ScriptCall ScriptCalls::*plain_first(const Attempt& a) {
    const OwnerState* p = find_state(a.place);
    return p != nullptr && p->unanswered ? &ScriptCalls::plain_renew : &ScriptCalls::set;
}

milliseconds next_poll(milliseconds ttl, std::int64_t left) {
    if (left == -2) return milliseconds(5);
    std::int64_t look = std::min<std::int64_t>(ttl.count() / 3, 1000);
    if (left >= 0) look = std::min(look - 2, left) + 2;
    return milliseconds(std::max<std::int64_t>(look, 1));
}

}  // namespace

Acquire::Acquire(Shared& s, const Keys& k, Attempt& a)
    : Operation(s, k,
                first_of(s, needs_units(a) ? &ScriptCalls::enter_units : &ScriptCalls::enter,
                         plain_first(a)),
                a.ttl, a.deadline, find_state(a.place)),
      attempt_(a) {}

bool Acquire::queues() const noexcept {
    return attempt_.queue && shared_.options.queue;
}

void Acquire::add_arguments(Command& c) {
    const ScriptCalls& v = ScriptCalls::all();
    const Attempt& a = attempt_;
    if (call_ == &v.set) {
        c.add("SET").add(keys_.lock).add(a.owner).add("NX").add("PX").add_number(a.ttl.count());
    } else if (call_ == &v.get) {
        c.add("GET").add(keys_.lock);
    } else if (call_ == &v.plain_renew) {
        c.add(a.owner).add_number(a.ttl.count());
    } else if (call_ == &v.enter_units) {
        add_units(c);
    } else {
        const OwnerState* p = find_state(a.place);
        c.add(a.owner).add_number(a.ttl.count());
        c.add_number(queues() ? window_of(a.ttl).count() : 0);
        c.add_number(shared_.clock.server_ms(a.deadline));
        c.add(p == nullptr ? std::string_view() : std::string_view(p->ticket));
    }
}

bool Acquire::marks() const noexcept {
    const OwnerState* p = find_state(attempt_.place);
    return attempt_.queue && !shared_.options.queue && p != nullptr && p->arrived &&
           attempt_.sent - *p->arrived >= PollMark::after;
}

void Acquire::add_units(Command& c) {
    const Attempt& a = attempt_;
    OwnerState& p = state_of(attempt_.place);
    // The place of one that polls is where it came first, as soon as it takes one.
    if (!p.arrived && !shared_.options.queue) p.arrived = a.sent;
    milliseconds alive{0};
    if (queues()) alive = window_of(a.ttl);
    if (marks()) {
        alive = p.mark.lasts();
        // How long ago that was: the server's clock may have been set since.
        const auto waited =
            std::chrono::duration_cast<std::chrono::microseconds>(a.sent - *p.arrived);
        p.ticket = "-" + std::to_string(waited.count());
    }
    c.add(a.owner).add_number(kept(a, a.ttl).count());
    c.add_number(alive.count()).add_number(kept(a, window_of(a.ttl)).count());
    c.add_number(shared_.clock.server_ms(a.deadline)).add(p.ticket);
    c.add_number(a.units.take).add_number(a.units.of);
}

void Acquire::answered(const Reply& r, Now now) {
    const ScriptCalls& v = ScriptCalls::all();
    const ScriptCall* const asked = std::exchange(call_, nullptr);
    if (asked == &v.enter || asked == &v.enter_units)
        return entered(text_of(r, *asked), asked, now);
    if (asked == &v.set) return set(r);
    if (asked == &v.plain_renew) {
        if (r.is(Reply::Type::integer) && r.integer == 1) return grant(0, PreviousHolder::unknown);
        // The lost request cannot take it any more by its own deadline.
        OwnerState& p = state_of(attempt_.place);
        if (p.ghost <= shared_.clock.latest_server_ms(now())) p.unanswered = false;
        call_ = &v.set;
        return;
    }
    if (r.is(Reply::Type::error) && from_reply(r.text) == make(Error::wrong_type))
        refused(r.text);
    else
        shared_.texts.add(keys_.lock);
}

void Acquire::entered(const ReplyText& answer, const ScriptCall* asked, Now now) {
    Attempt& a = attempt_;
    if (answer.error) return refused(answer.text);
    if (!shared_.options.queue && asked == &ScriptCalls::all().enter_units)
        state_of(a.place).mark.answered(now() - a.sent);
    std::string_view rest = answer.text;
    const std::string_view what = word(rest);
    if (what == "g") {
        const std::int64_t token = number(word(rest));
        if (token <= 0 && !a.units.permits()) {
            a.outcome = Attempt::NoAnswer{make(Error::protocol)};
            return;
        }
        grant(static_cast<std::uint64_t>(token), previous_from(rest.empty() ? 'u' : rest.front()));
        if (OwnerState* p = find_state(a.place))
            p->queued = p->unclaimed = false, p->handed.reset();
        begin_hold(a, now());
    } else if (what == "q") {
        queued(rest, now);
    } else if (what == "b") {
        word(rest);
        a.outcome = Attempt::Busy{next_poll(a.ttl, number(rest)), true};
    } else if (what == "l") {
        a.outcome = Attempt::Failed{make(Error::no_answer)};
        a.detail = "the request came too late to the server";
        late(rest, asked, now);
    } else if (what == "u" && asked == &ScriptCalls::all().enter) {
        a.outcome = Attempt::Failed{make_error_code(errc::unavailable)};  // unless that is answered
        state_of(a.place).units = true;
        call_ = &ScriptCalls::all().enter_units;
    } else if (what == "m") {
        a.outcome = Attempt::Failed{make_error_code(errc::kind_mismatch)};
        a.detail = "another kind of lock, or another limit, is held or waited for under this name";
    } else if (what == "t") {
        a.outcome = Attempt::Failed{make_error_code(errc::cancelled)};
    } else if (what == "x") {
        a.outcome = Attempt::Failed{make_error_code(errc::revoked)};
    } else if (what == "k") {
        a.outcome = Attempt::Failed{make(Error::wrong_type)};
        a.detail = "a key of this name holds something other than a lock of this format";
    } else {
        a.outcome = Attempt::NoAnswer{make(Error::protocol)};
    }
}

void Acquire::queued(std::string_view rest, Now now) {
    Attempt& a = attempt_;
    OwnerState& p = state_of(a.place);
    p.queued = shared_.options.queue;
    p.seen = static_cast<std::uint64_t>(number(word(rest)));
    const std::int64_t left = number(word(rest));
    const std::string_view ticket = word(rest);
    const std::int64_t rank = number(word(rest));
    p.base = a.sent;
    p.window = window_of(a.ttl);
    if (!shared_.options.queue) {
        a.outcome = Attempt::Busy{milliseconds(jitter(PollMark::pause.count() * 3 / 4, 30)), true};
        return;
    }
    p.ticket = ticket;
    a.outcome = Attempt::Busy{next_look(p.window, left, rank, rest == "1"), false};
    // Told of its turn while the look was under way.
    if (p.handed) take_handed(a, shared_, now());
}

void Acquire::set(const Reply& r) {
    Attempt& a = attempt_;
    if (r.is(Reply::Type::status)) return grant(0, PreviousHolder::unknown);
    if (r.is(Reply::Type::error)) return refused(r.text);
    if (!r.is(Reply::Type::nil)) {
        a.outcome = Attempt::NoAnswer{make(Error::protocol)};
        return;
    }
    a.outcome = Attempt::Busy{Attempt::Busy::unnotified(a.ttl), true};
    // A busy key may be no lock at all, which SET NX does not distinguish.
    if (!shared_.texts.has(keys_.lock)) call_ = &ScriptCalls::all().get;
}

void Acquire::grant(std::uint64_t token, PreviousHolder previous) {
    Attempt::Granted g;
    if (!attempt_.units.permits()) {
        g.token.value = token;
        g.previous = previous;
    }
    g.ttl = attempt_.ttl;
    attempt_.outcome = g;
}

void Acquire::refused(std::string_view text) {
    const error_code ec = from_reply(text);
    attempt_.detail = words(text);
    if (nothing_done(ec))
        attempt_.outcome = Attempt::Failed{ec, for_now(ec)};
    else
        attempt_.outcome = Attempt::NoAnswer{ec};
}

void Acquire::missing(const spi::Failure& failed, bool sent) {
    const ScriptCalls& v = ScriptCalls::all();
    Attempt& a = attempt_;
    const ScriptCall* const asked = std::exchange(call_, nullptr);
    if (asked == &v.get) return;  // busy all the same
    if (!sent) {
        a.outcome = Attempt::Failed{failed.why, waits_out(failed.why)};
        a.detail = failed.detail;
        return;
    }
    a.outcome = Attempt::NoAnswer{failed.why, waits_out(failed.why)};
    OwnerState& p = state_of(a.place);
    p.unanswered = true;
    // At least the deadline that was sent, whatever we have learnt of the clock since.
    p.ghost = std::max(p.ghost, shared_.clock.latest_server_ms(a.deadline) + 1);
    a.detail = failed.detail.empty() ? shared_.target.display + ": " + failed.why.message()
                                     : failed.detail;
}

bool Acquire::granted() const noexcept {
    return std::holds_alternative<Attempt::Granted>(attempt_.outcome);
}

void Acquire::unconfirmed(const spi::Failure& failed) {
    state_of(attempt_.place).unanswered = true;  // the next attempt finds our own owner there
    attempt_.outcome = Attempt::NoAnswer{failed.why, waits_out(failed.why)};
    attempt_.detail = failed.detail;
}

void Acquire::counts_from(boot_clock::time_point since) noexcept {
    auto& granted = std::get<Attempt::Granted>(attempt_.outcome);
    granted.base = std::min(attempt_.sent, since);
}

}  // namespace holdfast::redis
