// From figures to words: each verdict is a pure function of the rows, with its rule beside it, so
// that anybody can check it, and a test can show that it would have said something else.
#pragma once
#include <string>
#include <vector>

#include "measure/row.hpp"

namespace holdfast::bench {

enum class Finding : std::uint8_t {
    confirmed,
    refuted,
    only_if,      ///< holds only if ...
    too_few,      ///< a verdict takes ten runs of each set-up
    not_measured  ///< the rows that the rule needs are not there
};
std::string_view to_string(Finding);

struct Verdict {
    std::string id;     ///< "C3"
    std::string claim;  ///< in the words of those who make it
    std::string rule;   ///< what was decided beforehand
    Finding finding = Finding::not_measured;
    std::string figure;  ///< the measured numbers, in a sentence
};

/// One verdict per claim, in the order of the claims.
std::vector<Verdict> verdicts(const Rows&);

/// A speed that Holdfast set itself. Missing one is no error.
struct Target {
    enum class Side : std::uint8_t { at_most, at_least };
    std::string what;
    Side side = Side::at_most;
    double limit = 0;
    std::string unit;
    bool measured = false;
    double value = 0;
    bool met() const {
        return measured && (side == Side::at_most ? value <= limit : value >= limit);
    }
};
std::string_view to_string(Target::Side);
std::vector<Target> targets(const Rows&);

/// 0; 1 when something is missing or a self-check failed; 2 when a guarantee of Holdfast was
/// violated.
int exit_code(const Rows&);

}  // namespace holdfast::bench
