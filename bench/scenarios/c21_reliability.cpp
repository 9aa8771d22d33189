// C21 and C30: what the other scenarios of this run have measured, added up for each backend.
#include "scenario.hpp"
#include "scores.hpp"

namespace holdfast::bench {

namespace {

/// The runner's rows so far are all that it looks at.
void add_all(Bench& bench, const Rows& rows) {
    for (const Row& row : rows)
        bench.add(row);
}

}  // namespace

Scenario c21_reliability() {
    return {reliability_scenario, "how reliable each backend was under the faults of C12 to C18b",
            "Measures nothing: it adds up the rows of C12 to C18b of the same run. Ranked are the "
            "set-ups with two holders, also those that are there to be caught; stale writes per "
            "run that a store without a token check accepted, and those that passed the check; and "
            "the longest time without a holder. What differs by less than 10 % has the same rank; "
            "the score is the mean of the four.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{
                    {"reliability, from the rows of C12 to C18b",
                     [](Bench& bench) { add_all(bench, reliability(bench.rows)); }}};
            }};
}

Scenario c30_ranks() {
    return {rank_scenario, "complexity, performance and reliability: who is first at what",
            "Measures nothing: it ranks the backends by the lines of code of C7, the p50 of C1 and "
            "the score of C21 of the same run. What differs by less than 10 % has the same rank.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{{"ranks, from the rows of C1, C7 and C21",
                                          [](Bench& bench) { add_all(bench, ranks(bench.rows)); }}};
            }};
}

}  // namespace holdfast::bench
