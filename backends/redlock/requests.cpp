#include "requests.hpp"

#include <algorithm>

#include "../resp/keys.hpp"
#include "redlock_lua.hpp"

namespace holdfast::redlock {

const Scripts& Scripts::all() {
    using resp::join;
    return resp::made_once([] {
        return Scripts{
            .enter = {join(lua::clock, lua::enter, lua::enter_one), 2,
                      join(lua::clock, lua::enter, lua::enter_many)},
            .release = {resp::as_documented(lua::release), 1, join(lua::release_many)},
            .give_back = {join(lua::quick_give_back, lua::clock, lua::units, lua::give_back,
                               lua::give_back_one),
                          2, join(lua::clock, lua::units, lua::give_back, lua::give_back_many)},
            .renew = {join(lua::clock, lua::renew, lua::renew_one), 2,
                      join(lua::clock, lua::renew, lua::renew_many)},
            .enter_units = {join(lua::clock, lua::quick_reader, lua::units, lua::marks,
                                 lua::enter_units, lua::enter_units_one),
                            5,
                            join(lua::clock, lua::units, lua::marks, lua::enter_units,
                                 lua::enter_units_many)},
            .renew_units = {join(lua::clock, lua::units, lua::renew_units, lua::renew_units_one), 5,
                            join(lua::clock, lua::units, lua::renew_units, lua::renew_units_many)},
            .leave = {join(lua::quick_leave, lua::clock, lua::units, lua::marks, lua::leave,
                           lua::leave_one),
                      5, join(lua::clock, lua::units, lua::marks, lua::leave, lua::leave_many)},
            .inspect = {join(lua::inspect), 4},
            .break_lock = {join(lua::clock, lua::units, lua::marks, lua::break_lock), 5},
        };
    });
}

void Keys::assign(std::string_view prefix, std::string_view name) {
    lock.assign(prefix);
    lock += name;
    resp::sibling(state, lock, 't');
    resp::sibling(readers, lock, 'r');
    resp::sibling(marks, lock, 'm');
    resp::sibling(line, lock, 'l');
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

Ask enter_units_ask(const Keys& k, const std::string& value, milliseconds ttl, std::string token,
                    const WaiterTicket& as, boot_clock::time_point deadline) {
    Ask a = Ask::of(&Scripts::all().enter_units, k.lock, k.state, k.readers, k.marks, k.line, value,
                    std::to_string(ttl.count()), "0", std::move(token), as.shared ? "r" : "w",
                    as.mark, std::to_string(as.window.count()));
    a.deadline_word = 7;
    a.deadline = deadline;
    return a;
}

Ask renew_units_ask(const Keys& k, const std::string& value, milliseconds ttl,
                    boot_clock::time_point deadline) {
    Ask a = Ask::of(&Scripts::all().renew_units, k.lock, k.state, k.readers, k.marks, k.line, value,
                    std::to_string(ttl.count()), "0", "");
    a.deadline_word = 7;
    a.deadline = deadline;
    return a;
}

Ask leave_ask(const Keys& k, const std::string& value, std::string mark,
              boot_clock::time_point closed_until) {
    Ask a = Ask::of(&Scripts::all().leave, k.lock, k.state, k.readers, k.marks, k.line, value, "0",
                    std::move(mark));
    if (closed_until == boot_clock::time_point::min()) return a;
    a.deadline_word = 6;
    a.deadline = closed_until;
    a.length = true;
    return a;
}

std::int64_t left_ms(boot_clock::time_point until) noexcept {
    const auto left = std::chrono::ceil<milliseconds>(until - boot_clock::now());
    return std::max<std::int64_t>(left.count(), 0);
}

Ask undo_ask(const Keys& k, const std::string& value, bool fencing, bool shared, std::string mark) {
    if (!fencing) return release_ask(k.lock, value);
    if (!shared && mark.empty()) return Ask::of(&Scripts::all().give_back, k.lock, k.line, value);
    return leave_ask(k, value, std::move(mark), boot_clock::time_point::min());
}

std::string mark_text(std::uint64_t ticket, bool shared, std::string_view owner,
                      std::string_view channel) {
    std::string out = ticket == 0 ? first_ticket : token_text(ticket);
    out += shared ? " r " : " w ";
    out += owner;
    if (!channel.empty()) out.append(1, ' ').append(channel);
    return out;
}

Ask release_ask(std::string key, std::string value) {
    return Ask::of(&Scripts::all().release, std::move(key), std::move(value));
}

}  // namespace holdfast::redlock
