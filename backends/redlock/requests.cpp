#include "requests.hpp"

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

std::string token_text(std::uint64_t token) {
    if (token == 0) return {};
    std::string digits = std::to_string(token);
    if (digits.size() < 16) digits.insert(0, 16 - digits.size(), '0');
    return digits;
}

Ask enter_ask(const Keys& k, const std::string& value, milliseconds ttl, std::string token,
              boot_clock::time_point deadline) {
    Ask a = Ask::of(&Scripts::all().enter, k.lock, k.state, value, std::to_string(ttl.count()), "0",
                    std::move(token));
    a.deadline_word = 4;
    a.deadline = deadline;
    return a;
}

Ask plain_ask(const Keys& k, const std::string& value, milliseconds ttl) {
    return Ask::of(nullptr, "SET", k.lock, value, "NX", "PX", std::to_string(ttl.count()));
}

Ask renew_ask(const Keys& k, const std::string& value, milliseconds ttl, std::string token,
              boot_clock::time_point deadline) {
    Ask a = enter_ask(k, value, ttl, std::move(token), deadline);
    a.verb = &Scripts::all().renew;
    return a;
}

Ask release_ask(std::string key, std::string value) {
    return Ask::of(&Scripts::all().release, std::move(key), std::move(value));
}

}  // namespace holdfast::redlock
