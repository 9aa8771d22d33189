// A stall of the machine spoils a measurement now and then: it is begun again, three times at most,
// and the report says so. A wrong answer is a row, not an error; it stands.
#pragma once
#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include "measure/row.hpp"

namespace holdfast::bench {

constexpr std::size_t most_tries = 3;

/// Why each try failed. As many as may be made: the step failed.
using Tries = std::vector<std::string>;

/// Calls `step`, which adds rows, until it throws no more, `stopped()`, or it was tried often
/// enough. The rows of a try that failed are taken back, except violations, which end the tries.
template <class Step, class Stopped>
Tries try_to_measure(Rows& rows, Step step, Stopped stopped) {
    Tries failed;
    while (failed.size() < most_tries && !stopped()) {
        const auto before = rows.size();
        try {
            step();
            break;
        } catch (const std::exception& error) {
            failed.emplace_back(error.what());
            const auto harmless = [](const Row& r) { return r.status != Status::violated; };
            const auto added = rows.begin() + static_cast<std::ptrdiff_t>(before);
            rows.erase(std::remove_if(added, rows.end(), harmless), rows.end());
            if (rows.size() > before) failed.resize(most_tries, failed.back());
        }
    }
    return failed;
}

}  // namespace holdfast::bench
