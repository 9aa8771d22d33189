#include "scripts.hpp"

#include "redis_lua.hpp"

namespace holdfast::redis {

const Scripts& Scripts::all() {
    return resp::made_once([] {
        return Scripts{
            .enter_one = join(lua::clock, lua::quick, lua::enter_one, lua::state, lua::line,
                              lua::hand_over, lua::enter, lua::enter_one_slow),
            .enter_many = join(lua::clock, lua::quick, lua::state, lua::for_each, lua::line,
                               lua::hand_over, lua::enter, lua::enter_many),
            // The clock is read after the quick way out.
            .leave_one =
                join(lua::quick_leave, lua::leave_one, lua::clock, lua::state, lua::for_each,
                     lua::line, lua::hand_over, lua::leave, lua::leave_one_slow),
            .leave_many = join(lua::quick_leave, lua::clock, lua::state, lua::for_each, lua::line,
                               lua::hand_over, lua::leave, lua::leave_many),
            .renew = join(lua::clock, lua::renew),
            .enter_units = join(lua::clock, lua::quick, lua::quick_units, lua::state, lua::for_each,
                                lua::line, lua::units, lua::enter_units),
            .leave_units = join(lua::clock, lua::quick_leave_units, lua::state, lua::for_each,
                                lua::line, lua::units, lua::leave_units),
            .renew_units = join(lua::clock, lua::state, lua::for_each, lua::line, lua::units,
                                lua::renew_units),
            .inspect = join(lua::clock, lua::holders, lua::inspect),
            .tell_holders = join(lua::clock, lua::state, lua::line, lua::units, lua::holders,
                                 lua::tell_holders),
            .plain_release = resp::as_documented(lua::plain_release),
            .plain_renew = join(lua::plain_renew),
        };
    });
}

std::vector<std::pair<std::string_view, const Script*>> checked_scripts() {
    const Scripts& s = Scripts::all();
    return {{"enter_one", &s.enter_one},
            {"enter_many", &s.enter_many},
            {"leave_one", &s.leave_one},
            {"leave_many", &s.leave_many},
            {"renew", &s.renew},
            {"enter_units", &s.enter_units},
            {"leave_units", &s.leave_units},
            {"renew_units", &s.renew_units},
            {"tell_holders", &s.tell_holders}};
}

}  // namespace holdfast::redis
