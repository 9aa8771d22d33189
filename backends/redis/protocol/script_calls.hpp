// The requests that operations make, and which of them comes first.
#pragma once
#include "operations.hpp"

namespace holdfast::redis {

struct ScriptCalls {
    ScriptCall enter, leave, renew;                    // a mutex
    ScriptCall enter_units, leave_units, renew_units;  // any kind
    ScriptCall set, get, plain_release, plain_renew;
    static const ScriptCalls& all();
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
