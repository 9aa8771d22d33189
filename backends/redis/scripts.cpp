#include "scripts.hpp"

#include "lua_texts.hpp"

namespace holdfast::redis {

const Scripts& Scripts::all() {
    static const Scripts scripts{
        .enter_one = join(lua::clock, lua::quick, lua::enter_one, lua::line, lua::enter,
                          lua::enter_one_slow),
        .enter_many = join(lua::clock, lua::quick, lua::line, lua::enter, lua::enter_many),
        // The clock is read after the quick way out.
        .leave_one = join(lua::quick_leave, lua::leave_one, lua::clock, lua::line, lua::leave,
                          lua::leave_one_slow),
        .leave_many = join(lua::quick_leave, lua::clock, lua::line, lua::leave, lua::leave_many),
        .renew = join(lua::clock, lua::renew),
        .inspect = join(lua::clock, lua::inspect),
        .break_lock = join(lua::clock, lua::line, lua::break_lock),
        .plain_release = Script(lua::plain_release),
        .plain_renew = Script(lua::plain_renew),
    };
    return scripts;
}

}  // namespace holdfast::redis
