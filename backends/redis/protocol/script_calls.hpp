// The requests that operations make, and which of them comes first.
#pragma once
#include "operations.hpp"

namespace holdfast::redis {

struct ScriptCalls {
    ScriptCall enter, leave, renew;                    // a mutex
    ScriptCall enter_units, leave_units, renew_units;  // any kind
    ScriptCall set, get, plain_release, plain_renew;
    static const ScriptCalls& all() {
        static const ScriptCalls verbs = of(Scripts::all());
        return verbs;
    }

private:
    static ScriptCalls of(const Scripts& s) {
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

inline const ScriptCall& first_of(const Shared& s, ScriptCall ScriptCalls::*fenced,
                                  ScriptCall ScriptCalls::*plain) {
    return ScriptCalls::all().*(s.options.plain ? plain : fenced);
}

/// How much of min_hold is left. A length, which the server counts from when it hears of it: what
/// its clock said at the grant may be wrong by now.
inline std::int64_t closed_for(const OwnerState* p, boot_clock::time_point now) noexcept {
    if (p == nullptr || p->closed_until <= now) return 0;
    return std::chrono::ceil<milliseconds>(p->closed_until - now).count();
}

}  // namespace holdfast::redis
