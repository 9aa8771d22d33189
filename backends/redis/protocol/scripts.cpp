#include "scripts.hpp"

#include "lua_texts.hpp"

namespace holdfast::redis {

const Scripts& Scripts::all() {
    static const Scripts scripts{
        .enter_one = join(lua::clock, lua::quick, lua::enter_one, lua::state, lua::line, lua::enter,
                          lua::enter_one_slow),
        .enter_many = join(lua::clock, lua::quick, lua::state, lua::each, lua::line, lua::enter,
                           lua::enter_many),
        // The clock is read after the quick way out.
        .leave_one = join(lua::quick_leave, lua::leave_one, lua::clock, lua::state, lua::each,
                          lua::line, lua::leave, lua::leave_one_slow),
        .leave_many = join(lua::quick_leave, lua::clock, lua::state, lua::each, lua::line,
                           lua::leave, lua::leave_many),
        .renew = join(lua::clock, lua::renew),
        .inspect = join(lua::clock, lua::inspect),
        .break_lock = join(lua::clock, lua::state, lua::line, lua::break_lock),
        .plain_release = Script(lua::plain_release),
        .plain_renew = Script(lua::plain_renew),
    };
    return scripts;
}

std::vector<std::pair<std::string_view, const Script*>> checked_scripts() {
    const Scripts& s = Scripts::all();
    return {{"enter_one", &s.enter_one}, {"enter_many", &s.enter_many},
            {"leave_one", &s.leave_one}, {"leave_many", &s.leave_many},
            {"renew", &s.renew},         {"break_lock", &s.break_lock}};
}

}  // namespace holdfast::redis
