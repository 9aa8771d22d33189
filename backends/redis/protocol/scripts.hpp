// The scripts of this backend.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "../../resp/script.hpp"

namespace holdfast::redis {

using resp::join;
using resp::Script;

/// Made once, on first use.
struct Scripts {
    Script enter_one, enter_many, leave_one, leave_many, renew;  // a mutex
    Script enter_units, leave_units, renew_units;                // any kind
    Script inspect, tell_holders, plain_release, plain_renew;
    static const Scripts& all();
};

/// The scripts that grant, renew and release, which tests/models/redis explores.
std::vector<std::pair<std::string_view, const Script*>> checked_scripts();

}  // namespace holdfast::redis
