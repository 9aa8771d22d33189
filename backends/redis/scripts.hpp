// The scripts of this backend.
#pragma once
#include "script.hpp"

namespace holdfast::redis {

/// Made once, on first use.
struct Scripts {
    Script enter_one, enter_many, leave_one, leave_many, renew, inspect, break_lock, plain_release,
        plain_renew;
    static const Scripts& all();
};

}  // namespace holdfast::redis
