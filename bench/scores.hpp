// Backends held against each other by what a run has measured of them: rows made from rows, so that
// no score can appear whose figures were not measured.
#pragma once
#include "measure/row.hpp"

namespace holdfast::bench {

inline constexpr const char* reliability_scenario = "C21";
inline constexpr const char* rank_scenario = "C30";
/// Metrics of these rows; of each score the least is the best.
inline constexpr const char* score_overlaps = "set-ups with two holders";
inline constexpr const char* score_accepted = "stale writes accepted, without a token check";
inline constexpr const char* score_refused = "stale writes refused, with a token check";
inline constexpr const char* score_without = "longest time without a holder, over the ttl";
inline constexpr const char* score_reliability = "reliability: mean rank";
inline constexpr const char* rank_complexity = "rank: complexity";
inline constexpr const char* rank_performance = "rank: performance";
inline constexpr const char* rank_reliability = "rank: reliability";
inline constexpr const char* rank_firsts = "axes on which it is first";

/// How reliable each backend was under the faults of C12 to C18b: of its set-ups, how many ever had
/// two holders; stale writes per run of C12; the longest time without a holder after a holder's end
/// (C12, C16). The score is its mean rank in these. Only backends that have all of them.
Rows reliability(const Rows&);

/// The rank of each backend by lines of code (C7), p50 of acquire + release (C1) and the score of
/// reliability(). Only backends that have all three.
Rows ranks(const Rows&);

}  // namespace holdfast::bench
