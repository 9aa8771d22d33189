// Release and withdraw.
#include <algorithm>
#include <charconv>

#include "../../resp/errors.hpp"
#include "script_calls.hpp"

namespace holdfast::redis {

using spi::Attempt;
using spi::Held;

namespace {

template <class Item>
const ScriptCall& leaving(const Shared& s, const Item& of) {
    return first_of(s, needs_units(of) ? &ScriptCalls::leave_units : &ScriptCalls::leave,
                    &ScriptCalls::plain_release);
}

}  // namespace

Leave::Leave(Shared& s, const Keys& k, const Held& h, boot_clock::time_point now)
    : Operation(s, k, leaving(s, h), h.ttl, h.deadline, find_state(h.place)),
      owner_(h.owner),
      place_(find_state(h.place)),
      token_(h.token),
      lock_delay_(h.lock_delay),
      now_(now),
      how_(h.outcome == Outcome::abandoned ? 'a' : 'r'),
      find_out_(true) {}

Leave::Leave(Shared& s, const Keys& k, const Attempt& a, boot_clock::time_point now)
    : Operation(s, k, leaving(s, a), a.ttl, a.deadline, find_state(a.place)),
      owner_(a.owner),
      place_(find_state(a.place)),
      now_(now),
      how_('u'),
      find_out_(false) {}

Leave::Leave(Shared& s, const Keys& k, std::string_view owner, boot_clock::time_point until,
             std::int64_t ghost)
    : Operation(s, k, first_of(s, &ScriptCalls::leave_units, &ScriptCalls::plain_release), {},
                until, nullptr),
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
    const ScriptCalls& v = ScriptCalls::all();
    if (call_ == &v.get) {
        c.add("GET").add(keys_.lock);
    } else if (call_ == &v.plain_release) {
        c.add(owner_);
    } else {
        const std::int64_t last = place_ != nullptr ? place_->ghost : ghost_;
        const bool ghost = last > shared_.clock.server_ms(now_);
        c.add(owner_).add(how_ == 'r' ? "r" : how_ == 'a' ? "a" : "u");
        c.add_number(ghost ? last : 0);
        if (call_ == &v.leave_units) {
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
    const ScriptCalls& v = ScriptCalls::all();
    const ScriptCall* const asked = std::exchange(call_, nullptr);
    const ReplyText answer = text_of(r, *asked);
    if (answer.error) {
        // What is kept under that name is no lock: nothing of ours can be held there.
        const error_code ec = from_reply(answer.text);
        if (ec == make(Error::wrong_type)) return end(ReleaseResult::owned_by_other);
        failed_ = {ec, words(answer.text)};
    } else if (asked == &v.get) {
        if (r.is(Reply::Type::nil)) end(ReleaseResult::already_expired);
        if (r.is(Reply::Type::bulk)) end(ReleaseResult::owned_by_other);
    } else if (asked == &v.plain_release) {
        if (!r.is(Reply::Type::integer)) {
            failed_ = make(Error::protocol);
        } else if (r.integer == 1) {
            end(ReleaseResult::released);
        } else if (find_out_) {
            call_ = &v.get;
        }
    } else if (answer.text == "u" && asked == &v.leave) {
        call_ = &v.leave_units;
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
            failed_ = make(Error::protocol);
        // More waiters can be granted than one request does.
        if (rest == "m") call_ = asked;
    }
}

void Leave::missing(const spi::Failure& failed, bool) {
    call_ = nullptr;
    if (ended_) return;
    failed_ = failed;
}

void Leave::tell(Held& h) const {
    h.released = result_;
    const bool unknown = result_ == ReleaseResult::unreachable;
    h.release_error = unknown ? failed_.why : error_code();
    h.detail = unknown ? failed_.detail : std::string();
}

}  // namespace holdfast::redis
