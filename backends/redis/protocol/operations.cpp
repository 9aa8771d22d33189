#include "operations.hpp"

#include <algorithm>

#include "../../resp/errors.hpp"
#include "script_calls.hpp"

namespace holdfast::redis {

using spi::Attempt;
using spi::Held;

const ScriptCalls& ScriptCalls::all() {
    return resp::made_once([] {
        const Scripts& s = Scripts::all();
        return ScriptCalls{
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
    });
}

Operation::Operation(Shared& s, const Keys& k, const ScriptCall& first, milliseconds t,
                     boot_clock::time_point until, OwnerState* place)
    : ttl(t),
      deadline(until),
      shared_(s),
      keys_(k),
      call_(&first),
      asked_for_(place),
      slot_(s.options.cluster ? slot_of(k.lock) : Slot{0}),
      asking_(place != nullptr && std::exchange(place->ask_at, std::nullopt)) {}

void Operation::ask_at(spi::Endpoint where) noexcept {
    if (asked_for_ != nullptr) asked_for_->ask_at = std::move(where);
}

void Operation::add_keys(Command& c) {
    if (call_->keys == 6) return keys_.add_all_to(c, parts_);
    if (call_->keys == 5) return keys_.add_to(c);
    c.add(keys_.lock);
    if (call_->keys == 3) c.add(keys_.state).add(keys_.tombs);
}

void Operation::late(std::string_view server_ms, const ScriptCall* again, Now now) {
    shared_.clock.sample(number(server_ms) * 1000, now());
    if (!std::exchange(repeated_, true)) call_ = again;
}

std::string Operation::words(std::string_view error) const {
    return script_ == nullptr ? std::string(shown(error)) : shown(error, *script_);
}

void write(Command& c, std::span<Operation* const> all, std::string_view channel) {
    const ScriptCall& v = *all.front()->wants();
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

ReplyText text_of(const Reply& r, const ScriptCall& asked) noexcept {
    if (r.is(Reply::Type::error)) return {r.text, true};
    if (r.is(Reply::Type::array) && r.count == 1) return text_of(r.elements.front(), asked);
    // A text of an earlier answer may still be there in one that has none.
    if (!r.is_text()) return {};
    const std::string_view text = r.text;
    // Only scripts for many locks answer so; to any other verb it is somebody's value.
    return asked.many != nullptr && text.starts_with("E ") ? ReplyText{text.substr(2), true}
                                                           : ReplyText{text};
}

Renew::Renew(Shared& s, const Keys& k, Held& h)
    : Operation(s, k,
                first_of(s, h.units.exclusive() ? &ScriptCalls::renew : &ScriptCalls::renew_units,
                         &ScriptCalls::plain_renew),
                h.ttl, h.deadline, find_state(h.place)),
      held_(h) {
    h.renewal = Held::Renewal::unknown;
    h.renewal_error = {};
    h.detail.clear();
}

void Renew::add_arguments(Command& c) {
    const ScriptCalls& v = ScriptCalls::all();
    const OwnerState* p = find_state(held_.place);
    const std::int64_t length = (held_.ttl + held_.lock_delay).count();
    c.add(held_.owner).add_number(std::max(length, closed_for(p, held_.sent)));
    if (call_ == &v.plain_renew) return;
    if (call_ == &v.renew) c.add_number(p != nullptr && p->unclaimed ? 1 : 0);
    c.add_number(shared_.clock.server_ms(held_.deadline));
    if (call_ == &v.renew_units) c.add_number(held_.units.take).add_number(held_.units.of);
}

void Renew::answered(const Reply& r, Now now) {
    const ScriptCall* const asked = std::exchange(call_, nullptr);
    const bool plain = asked == &ScriptCalls::all().plain_renew;
    const ReplyText answer = text_of(r, *asked);
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
        if (OwnerState* p = find_state(held_.place)) p->unclaimed = false;
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

void Renew::missing(const spi::Failure& failed, bool) {
    call_ = nullptr;
    held_.renewal_error = failed.why;
    held_.detail = failed.detail;
}

bool Renew::granted() const noexcept {
    return held_.renewal == Held::Renewal::renewed;
}

void Renew::unconfirmed(const spi::Failure& failed) {
    held_.renewal = Held::Renewal::unknown;
    held_.renewal_error = failed.why;
    held_.detail = failed.detail;
}

void Renew::counts_from(boot_clock::time_point since) noexcept {
    held_.renewed_base = std::min(held_.sent, since);
}

}  // namespace holdfast::redis
