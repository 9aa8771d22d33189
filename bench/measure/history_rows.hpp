// From what the checker of histories found to rows.
#pragma once
#include <string>

#include "checker/verdict.hpp"
#include "measure/latency.hpp"
#include "measure/row.hpp"

namespace holdfast::bench {

/// What is promised by that whose history it is.
enum class Promise : std::uint8_t {
    holdfast,  ///< a backend of Holdfast: what the checker calls a violation is one, exit 2
    nothing  ///< a control without a lock, or a variant known to be unsafe: shows what can be seen
};

struct Recorded {
    std::string backend, variant;
    Promise promise = Promise::holdfast;
};

/// The scenario of all rows here, and their metrics.
inline constexpr const char* history_scenario = "history";
inline constexpr const char* history_recorded = "acquisitions recorded";
inline constexpr const char* history_overlaps = "overlaps of belief";
inline constexpr const char* history_tokens = "tokens against the order of grants";
inline constexpr const char* history_fenced = "wrong answers of a fenced store";
inline constexpr const char* history_unfenced = "stale writes accepted by an unfenced store";
inline constexpr const char* history_order = "grants out of the order of requests";
inline constexpr const char* history_words = "wrong words about the previous holder";
inline constexpr const char* history_errors = "acquisitions that returned an error and held";
inline constexpr const char* history_damage = "files or records that cannot be read or be true";
inline constexpr const char* history_alone = "longest time without a holder";
inline constexpr const char* history_cost = "cost of recording one acquisition";
/// How the note begins where a promise that nobody gave was broken.
inline constexpr const char* history_expected = "expected, nothing is promised here";

/// One row for each thing that was looked for, `n` is how many were looked at; none where that is
/// nothing. A history that is damaged, or in which nothing was
/// recorded, is a failed row; a broken promise a violated one.
Rows rows_of(const Recorded&, const history::Verdict&);

/// Where updates were lost two holders must have believed at once: failed rows where the checker
/// saw none, or had nothing to look at.
Rows blind_spots(const Rows&);

/// What recording one acquisition costs, in nanoseconds of CPU.
Row cost_row(const Spread&);

}  // namespace holdfast::bench
