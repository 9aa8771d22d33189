#include "operations.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include "../../resp/errors.hpp"

namespace holdfast::redis {
namespace {

using spi::Attempt;
using spi::Held;

struct Verbs {
    Verb enter, leave, renew;                    // a mutex
    Verb enter_units, leave_units, renew_units;  // any kind
    Verb set, get, plain_release, plain_renew;
    static const Verbs& all() {
        static const Verbs verbs = of(Scripts::all());
        return verbs;
    }

private:
    static Verbs of(const Scripts& s) {
        return {
            .enter = {&s.enter_one, &s.enter_many, 5, true},
            .leave = {&s.leave_one, &s.leave_many, 5},
            .renew = {&s.renew, &s.renew, 3},
            .enter_units = {&s.enter_units, &s.enter_units, 6, true},
            .leave_units = {&s.leave_units, &s.leave_units, 6},
            .renew_units = {&s.renew_units, &s.renew_units, 6},
            .set = {nullptr, nullptr, 0},
            .get = {nullptr, nullptr, 0},
            .plain_release = {&s.plain_release, nullptr, 1},
            .plain_renew = {&s.plain_renew, nullptr, 1},
        };
    }
};

const Verb& first_of(const Shared& s, Verb Verbs::*fenced, Verb Verbs::*plain) {
    return Verbs::all().*(s.options.plain ? plain : fenced);
}

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

/// How much of min_hold is left. A length, which the server counts from when it hears of it: what
/// its clock said at the grant may be wrong by now.
std::int64_t closed_for(const Place* p, boot_clock::time_point now) noexcept {
    if (p == nullptr || p->closed_until <= now) return 0;
    return std::chrono::ceil<milliseconds>(p->closed_until - now).count();
}

/// When a queued waiter looks again by itself. `ours`: the holder's release notifies it.
milliseconds next_look(milliseconds window, std::int64_t left, std::int64_t rank, bool ours) {
    std::int64_t look = jitter(window.count() / 3, 10);
    if (left == -2) {  // free: the first waiter is being notified, or looks by itself
        look = std::min<std::int64_t>(look, rank == 0 ? 5 : jitter(100, 50));
    } else if (rank == 0) {
        if (!ours) look = std::min(look, jitter(100, 50));
        if (left >= 0) look = std::min(look, left + 2);
    }
    return milliseconds(std::max<std::int64_t>(look, 1));
}

milliseconds next_poll(milliseconds ttl, std::int64_t left) {
    if (left == -2) return milliseconds(5);
    std::int64_t look = std::min<std::int64_t>(ttl.count() / 3, 1000);
    if (left >= 0) look = std::min(look, left + 2);
    return milliseconds(std::max<std::int64_t>(look, 1));
}

}  // namespace

Operation::Operation(Shared& s, const Keys& k, const Verb& first, milliseconds t,
                     boot_clock::time_point until)
    : ttl(t), deadline(until), shared_(s), keys_(k), verb_(&first) {}

void Operation::add_keys(Command& c) {
    if (verb_->keys == 6) return keys_.add_all_to(c, parts_);
    if (verb_->keys == 5) return keys_.add_to(c);
    c.add(keys_.lock);
    if (verb_->keys == 3) c.add(keys_.state).add(keys_.tombs);
}

void Operation::late(std::string_view server_ms, const Verb* again, Now now) {
    shared_.clock.sample(number(server_ms) * 1000, now());
    if (!std::exchange(repeated_, true)) verb_ = again;
}

std::string Operation::words(std::string_view error) const {
    return script_ == nullptr ? std::string(shown(error)) : shown(error, *script_);
}

void write(Command& c, std::span<Operation* const> all, std::string_view channel) {
    const Verb& v = *all.front()->wants();
    c.clear();
    const Script* const script = all.size() == 1 ? v.one : v.many;
    if (script != nullptr) begin(c, *script, static_cast<long long>(v.keys * all.size()));
    for (Operation* o : all) {
        o->script_ = script;
        if (script != nullptr) o->add_keys(c);
    }
    const auto queues = [](const Operation* o) { return o->queues(); };
    if (v.channel)
        c.add(std::any_of(all.begin(), all.end(), queues) ? channel : std::string_view());
    for (Operation* o : all)
        o->add_arguments(c);
}

Words words_of(const Reply& r, const Verb& asked) noexcept {
    if (r.is(Reply::Type::error)) return {r.text, true};
    if (r.is(Reply::Type::array) && r.count == 1) return words_of(r.elements.front(), asked);
    // A text of an earlier answer may still be there in one that has none.
    if (!r.is_text()) return {};
    const std::string_view text = r.text;
    // Only scripts for many locks answer so; to any other verb it is somebody's value.
    return asked.many != nullptr && text.starts_with("E ") ? Words{text.substr(2), true}
                                                           : Words{text};
}

// --- acquire
// ------------------------------------------------------------------------------------

Acquire::Acquire(Shared& s, const Keys& k, Attempt& a)
    : Operation(s, k,
                first_of(s, needs_units(a) ? &Verbs::enter_units : &Verbs::enter, &Verbs::set),
                a.ttl, a.deadline),
      attempt_(a) {}

bool Acquire::queues() const noexcept {
    return attempt_.queue && shared_.options.queue;
}

void Acquire::add_arguments(Command& c) {
    const Verbs& v = Verbs::all();
    const Attempt& a = attempt_;
    if (verb_ == &v.set) {
        c.add("SET").add(keys_.lock).add(a.owner).add("NX").add("PX").add_number(a.ttl.count());
    } else if (verb_ == &v.get) {
        c.add("GET").add(keys_.lock);
    } else if (verb_ == &v.plain_renew) {
        c.add(a.owner).add_number(a.ttl.count());
    } else if (verb_ == &v.enter_units) {
        add_units(c);
    } else {
        const Place* p = find_place(a.place);
        c.add(a.owner).add_number(a.ttl.count());
        c.add_number(queues() ? window_of(a.ttl).count() : 0);
        c.add_number(shared_.clock.server_ms(a.deadline));
        c.add(p == nullptr ? std::string_view() : std::string_view(p->ticket));
    }
}

bool Acquire::marks() const noexcept {
    const Place* p = find_place(attempt_.place);
    return attempt_.queue && !shared_.options.queue && p != nullptr && p->arrived &&
           attempt_.sent - *p->arrived >= PollMark::after;
}

void Acquire::add_units(Command& c) {
    const Attempt& a = attempt_;
    Place& p = place_of(attempt_.place);
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
    const Verbs& v = Verbs::all();
    const Verb* const asked = std::exchange(verb_, nullptr);
    if (asked == &v.enter || asked == &v.enter_units)
        return entered(words_of(r, *asked), asked, now);
    if (asked == &v.set) return set(r);
    if (asked == &v.plain_renew) {
        if (r.is(Reply::Type::integer) && r.integer == 1) return grant(0, PreviousHolder::unknown);
        // The lost request cannot take it any more by its own deadline.
        Place& p = place_of(attempt_.place);
        if (p.ghost <= shared_.clock.latest_server_ms(now())) p.unanswered = false;
        return ask_kind();
    }
    if (r.is(Reply::Type::error) && from_reply(r.text) == make(Error::wrong_type))
        refused(r.text);
    else
        shared_.texts.add(keys_.lock);
}

void Acquire::entered(const Words& answer, const Verb* asked, Now now) {
    Attempt& a = attempt_;
    if (answer.error) return refused(answer.text);
    if (!shared_.options.queue && asked == &Verbs::all().enter_units)
        place_of(a.place).mark.answered(now() - a.sent);
    std::string_view rest = answer.text;
    const std::string_view what = word(rest);
    if (what == "g") {
        const std::int64_t token = number(word(rest));
        if (token <= 0 && !a.units.permits()) {
            a.outcome = Attempt::NoAnswer{make(Error::protocol)};
            return;
        }
        grant(static_cast<std::uint64_t>(token), previous_from(rest.empty() ? 'u' : rest.front()));
        if (Place* p = find_place(a.place)) p->queued = p->unclaimed = false, p->handed.reset();
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
    } else if (what == "u" && asked == &Verbs::all().enter) {
        a.outcome = Attempt::Failed{make_error_code(errc::unavailable)};  // unless that is answered
        place_of(a.place).units = true;
        verb_ = &Verbs::all().enter_units;
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
    Place& p = place_of(a.place);
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
    a.outcome = Attempt::Busy{std::min(a.ttl / 3, milliseconds(1000)), true};
    // An earlier request whose answer was lost may have taken it: then it is ours.
    const Place* p = find_place(a.place);
    if (p != nullptr && p->unanswered)
        verb_ = &Verbs::all().plain_renew;
    else
        ask_kind();
}

// A busy key may be no lock at all, which SET NX does not distinguish.
void Acquire::ask_kind() {
    if (!shared_.texts.has(keys_.lock)) verb_ = &Verbs::all().get;
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

void Acquire::missing(const error_code& why, bool sent, const std::string& detail) {
    const Verbs& v = Verbs::all();
    Attempt& a = attempt_;
    const Verb* const asked = std::exchange(verb_, nullptr);
    if (asked == &v.get) return;  // busy all the same
    if (!sent && asked != &v.plain_renew) {
        a.outcome = Attempt::Failed{why};
        a.detail = detail;
        return;
    }
    a.outcome = Attempt::NoAnswer{why};
    Place& p = place_of(a.place);
    p.unanswered = true;
    // At least the deadline that was sent, whatever we have learnt of the clock since.
    p.ghost = std::max(p.ghost, shared_.clock.latest_server_ms(a.deadline) + 1);
    a.detail = detail.empty() ? shared_.target.display + ": " + why.message() : detail;
}

bool Acquire::granted() const noexcept {
    return std::holds_alternative<Attempt::Granted>(attempt_.outcome);
}

void Acquire::unconfirmed(const error_code& why, const std::string& detail) {
    place_of(attempt_.place).unanswered = true;  // the next attempt finds our own owner there
    attempt_.outcome = Attempt::NoAnswer{why};
    attempt_.detail = detail;
}

// --- renew
// --------------------------------------------------------------------------------------

Renew::Renew(Shared& s, const Keys& k, Held& h)
    : Operation(s, k,
                first_of(s, h.units.exclusive() ? &Verbs::renew : &Verbs::renew_units,
                         &Verbs::plain_renew),
                h.ttl, h.deadline),
      held_(h) {
    h.renewal = Held::Renewal::unknown;
    h.renewal_error = {};
    h.detail.clear();
}

void Renew::add_arguments(Command& c) {
    const Verbs& v = Verbs::all();
    const Place* p = find_place(held_.place);
    const std::int64_t length = (held_.ttl + held_.lock_delay).count();
    c.add(held_.owner).add_number(std::max(length, closed_for(p, held_.sent)));
    if (verb_ == &v.plain_renew) return;
    if (verb_ == &v.renew) c.add_number(p != nullptr && p->unclaimed ? 1 : 0);
    c.add_number(shared_.clock.server_ms(held_.deadline));
    if (verb_ == &v.renew_units) c.add_number(held_.units.take).add_number(held_.units.of);
}

void Renew::answered(const Reply& r, Now now) {
    const Verb* const asked = std::exchange(verb_, nullptr);
    const bool plain = asked == &Verbs::all().plain_renew;
    const Words answer = words_of(r, *asked);
    if (answer.error) {
        held_.renewal_error = from_reply(answer.text);
        held_.detail = words(answer.text);
        // The key has become something else: whatever it is, it is not our lock.
        if (plain && held_.renewal_error == errc::kind_mismatch)
            held_.renewal = Held::Renewal::lost;
        return;
    }
    std::string_view rest = answer.text;
    std::string_view what;
    if (!plain)
        what = word(rest);
    else if (r.is(Reply::Type::integer))
        what = r.integer == 1 ? "y" : r.integer == 2 ? "x" : "n";
    if (what == "y" || what == "a") {
        held_.renewal = Held::Renewal::renewed;
        held_.asked = what == "a";
        if (Place* p = find_place(held_.place)) p->unclaimed = false;
    } else if (what == "n" || what == "x") {
        held_.renewal = Held::Renewal::lost;
        held_.renewal_error = make_error_code(what == "x" ? errc::revoked : errc::lost);
    } else if (what == "l") {
        held_.renewal_error = make(Error::no_answer);
        late(rest, asked, now);
    } else {
        held_.renewal_error = make(Error::protocol);
    }
}

void Renew::missing(const error_code& why, bool, const std::string& detail) {
    verb_ = nullptr;
    held_.renewal_error = why;
    held_.detail = detail;
}

bool Renew::granted() const noexcept {
    return held_.renewal == Held::Renewal::renewed;
}

void Renew::unconfirmed(const error_code& why, const std::string& detail) {
    held_.renewal = Held::Renewal::unknown;
    held_.renewal_error = why;
    held_.detail = detail;
}

// --- leave
// --------------------------------------------------------------------------------------

Leave::Leave(Shared& s, const Keys& k, const Held& h, boot_clock::time_point now)
    : Operation(
          s, k,
          first_of(s, needs_units(h) ? &Verbs::leave_units : &Verbs::leave, &Verbs::plain_release),
          h.ttl, h.deadline),
      owner_(h.owner),
      place_(find_place(h.place)),
      token_(h.token),
      lock_delay_(h.lock_delay),
      now_(now),
      how_(h.outcome == Outcome::abandoned ? 'a' : 'r'),
      find_out_(true) {}

Leave::Leave(Shared& s, const Keys& k, const Attempt& a, boot_clock::time_point now)
    : Operation(
          s, k,
          first_of(s, needs_units(a) ? &Verbs::leave_units : &Verbs::leave, &Verbs::plain_release),
          a.ttl, a.deadline),
      owner_(a.owner),
      place_(find_place(a.place)),
      now_(now),
      how_('u'),
      find_out_(false) {}

Leave::Leave(Shared& s, const Keys& k, std::string_view owner, boot_clock::time_point until,
             std::int64_t ghost)
    : Operation(s, k, first_of(s, &Verbs::leave_units, &Verbs::plain_release), {}, until),
      owner_(owner),
      place_(nullptr),
      ghost_(ghost),
      how_('u'),
      find_out_(false) {}

// What a clean release writes without reading first.
void Leave::write_texts() {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), token_.value).ptr;
    const auto size = static_cast<std::size_t>(end - digits.data());
    char* out = state_.data();
    for (const char c : std::string_view("1:"))
        *out++ = c;
    out = std::fill_n(out, size < 16 ? 16 - size : 0, '0');
    out = std::copy_n(digits.data(), size, out);
    for (const char c : std::string_view(":0r:"))
        *out++ = c;
    state_size_ = static_cast<std::size_t>(out - state_.data());
    // 24 h from the token, or from now where the lease is older than that.
    const std::int64_t from =
        std::max(static_cast<std::int64_t>(token_.value / 1000), shared_.clock.server_ms(now_));
    const auto last =
        std::to_chars(till_.data(), till_.data() + till_.size(), from + 86'400'000).ptr;
    till_size_ = static_cast<std::size_t>(last - till_.data());
}

void Leave::add_arguments(Command& c) {
    const Verbs& v = Verbs::all();
    if (verb_ == &v.get) {
        c.add("GET").add(keys_.lock);
    } else if (verb_ == &v.plain_release) {
        c.add(owner_);
    } else {
        const std::int64_t last = place_ != nullptr ? place_->ghost : ghost_;
        const bool ghost = last > shared_.clock.server_ms(now_);
        c.add(owner_).add(how_ == 'r' ? "r" : how_ == 'a' ? "a" : "u");
        c.add_number(ghost ? last : 0);
        if (verb_ == &v.leave_units) {
            c.add_number(closed_for(place_, now_));
            c.add_number(lock_delay_.count());
            return;
        }
        if (token_) write_texts();
        // The quick way out writes a clean release; any other one reads the state.
        c.add(std::string_view(state_.data(), how_ == 'r' ? state_size_ : 0));
        c.add(std::string_view(till_.data(), till_size_));
    }
}

void Leave::end(ReleaseResult r) {
    // What was answered first is what became of it.
    if (!ended_) result_ = r;
    ended_ = true;
    if (how_ == 'u' && place_ != nullptr) place_->queued = false;
}

void Leave::answered(const Reply& r, Now) {
    const Verbs& v = Verbs::all();
    const Verb* const asked = std::exchange(verb_, nullptr);
    const Words answer = words_of(r, *asked);
    if (answer.error) {
        // What is kept under that name is no lock: nothing of ours can be held there.
        const error_code ec = from_reply(answer.text);
        if (ec == make(Error::wrong_type)) return end(ReleaseResult::owned_by_other);
        error_ = ec;
        detail_ = words(answer.text);
    } else if (asked == &v.get) {
        if (r.is(Reply::Type::nil)) end(ReleaseResult::already_expired);
        if (r.is(Reply::Type::bulk)) end(ReleaseResult::owned_by_other);
    } else if (asked == &v.plain_release) {
        if (!r.is(Reply::Type::integer)) {
            error_ = make(Error::protocol);
        } else if (r.integer == 1) {
            end(ReleaseResult::released);
        } else if (find_out_) {
            verb_ = &v.get;
        }
    } else if (answer.text == "u" && asked == &v.leave) {
        verb_ = &v.leave_units;
    } else {
        std::string_view rest = answer.text;
        const std::string_view what = word(rest);
        if (what == "r")
            end(ReleaseResult::released);
        else if (what == "e")
            end(ReleaseResult::already_expired);
        else if (what == "o" || what == "k")
            end(ReleaseResult::owned_by_other);
        else
            error_ = make(Error::protocol);
        // More waiters can be granted than one request does.
        if (rest == "m") verb_ = asked;
    }
}

void Leave::missing(const error_code& why, bool, const std::string& detail) {
    verb_ = nullptr;
    if (ended_) return;
    error_ = why;
    detail_ = detail;
}

void Leave::tell(Held& h) const {
    h.released = result_;
    const bool unknown = result_ == ReleaseResult::unreachable;
    h.release_error = unknown ? error_ : error_code();
    h.detail = unknown ? detail_ : std::string();
}

}  // namespace holdfast::redis
