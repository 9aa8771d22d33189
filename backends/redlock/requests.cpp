#include "requests.hpp"

#include <algorithm>

#include "lua_texts.hpp"

namespace holdfast::redlock {

const Scripts& Scripts::all() {
    using redis::join;
    static const Scripts scripts{
        .enter = {join(lua::clock, lua::enter, lua::enter_one), 2,
                  join(lua::clock, lua::enter, lua::enter_many)},
        .release = {Script(lua::release), 1, Script(lua::release_many)},
        .renew = {join(lua::clock, lua::renew, lua::renew_one), 2,
                  join(lua::clock, lua::renew, lua::renew_many)},
        .inspect = {Script(lua::inspect), 2},
        .break_lock = {Script(lua::break_lock), 1},
    };
    return scripts;
}

void Keys::assign(std::string_view prefix, std::string_view name) {
    lock.assign(prefix);
    lock += name;
    redis::sibling(state, lock, 't');
}

void TokenTexts::assign(std::uint64_t number, std::int64_t now_ms, milliseconds ttl) {
    token.clear();
    till.clear();
    if (number == 0) return;
    const std::string digits = std::to_string(number);
    if (digits.size() < 16) token.append(16 - digits.size(), '0');
    token += digits;
    // A day after the token, or from now where that is later; and never before the lease ends.
    const auto from = std::max(static_cast<std::int64_t>(number / 1000), now_ms);
    till = std::to_string(from + 86'400'000 + ttl.count());
}

void add_enter(Command& c, const Keys& k, std::string_view value, milliseconds ttl,
               std::int64_t deadline_ms, const TokenTexts& t, bool plain) {
    if (plain) {
        c.clear();
        c.add("SET").add(k.lock).add(value).add("NX").add("PX").add_number(ttl.count());
        return;
    }
    redis::begin(c, Scripts::all().enter.one, 2);
    c.add(k.lock).add(k.state).add(value).add_number(ttl.count()).add_number(deadline_ms);
    c.add(t.token).add(t.till);
}

void add_release(Command& c, const Keys& k, std::string_view value) {
    redis::begin(c, Scripts::all().release.one, 1);
    c.add(k.lock).add(value);
}

void add_renew(Command& c, const Keys& k, std::string_view value, milliseconds ttl,
               std::int64_t deadline_ms, const TokenTexts& t) {
    redis::begin(c, Scripts::all().renew.one, 2);
    c.add(k.lock).add(k.state).add(value).add_number(ttl.count()).add_number(deadline_ms);
    c.add(t.till);
}

}  // namespace holdfast::redlock
