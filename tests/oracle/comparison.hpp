// One schedule on a backend and on the rules of a name, answer by answer.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "expected.hpp"
#include "ground.hpp"

namespace oracle {

/// The machine stood still in a step: it says nothing.
struct Void : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Difference {
    std::size_t step = 0;
    std::string rules, backend;  ///< what each of them answered
};

/// What a whole run has seen.
struct Tally {
    long steps = 0, grants = 0, refused = 0, lost = 0, late = 0;
};

/// Plays a schedule on a name that nobody has used. Nothing: all answers were the same. Errors:
/// Void.
std::optional<Difference> compare(const std::vector<Operation>&, const std::string& name, Ground&,
                                  const suite::Facts&,
                                  const std::function<void(hf::milliseconds)>& pass, Tally&);

}  // namespace oracle
