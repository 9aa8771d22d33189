// Runs the planned steps one by one with progress; one step's failure never hides the others, and a
// step that a stall spoiled is begun again.
#pragma once
#include "scenario.hpp"

namespace holdfast::bench {

struct Run {
    bool partial = false;  ///< ended by ^C
    double seconds = 0;
    std::vector<std::string> ran;  ///< scenario ids
};

/// Runs the scenarios that the options choose. Errors of a step become failed rows.
Run run_all(Bench&);

}  // namespace holdfast::bench
