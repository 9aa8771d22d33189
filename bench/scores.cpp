#include "scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::bench {

namespace {

using Figures = std::map<std::string, double>;  ///< by backend; less is better

/// 1 for the best. What differs by less than a tenth is equal: a backend's rank is one more than
/// the number of those that are better by more than that.
Figures ranks_of(const Figures& figures) {
    Figures ranks;
    for (const auto& [backend, figure] : figures)
        ranks[backend] =
            1 + static_cast<double>(std::count_if(
                    figures.begin(), figures.end(),
                    // A copy: clang 14 captures no structured binding.
                    [f = figure](const auto& other) { return other.second < 0.9 * f; }));
    return ranks;
}

Row row_of(const char* scenario, const std::string& backend, const char* metric, double value,
           std::string note = {}) {
    Row row;
    row.scenario = scenario;
    row.backend = backend;
    row.variant = "default";
    row.metric = metric;
    row.value = row.min = row.max = value;
    row.n = 1;
    row.note = std::move(note);
    return row;
}

/// The set-ups of each backend in which two ever held, and all of them.
struct SetUps {
    std::set<std::string> all, two;
    std::uint64_t least_runs = UINT64_MAX;  ///< of any of them
};

std::map<std::string, SetUps> set_ups(const Rows& rows) {
    constexpr std::string_view metric = "runs with two holders";
    std::map<std::string, SetUps> found;
    for (const char* scenario : {"C13", "C15", "C16", "C17", "C18", "C18a", "C18b"})
        for (const Row* row : find_all(rows, {scenario})) {
            if (!row->metric.starts_with(metric)) continue;
            const auto what = row->scenario + " " + row->variant +
                              row->metric.substr(metric.size());  // "...: SIGKILL"
            SetUps& mine = found[row->backend];
            mine.all.insert(what);
            if (row->value > 0) mine.two.insert(what);
            mine.least_runs = std::min(mine.least_runs, row->n);
        }
    return found;
}

/// The longest of all, as a multiple of its ttl.
Figures longest_without(const Rows& rows) {
    constexpr double never = 4;  // C16 waits for so many ttls
    Figures longest;
    for (const char* scenario : {"C12", "C16"})
        for (const Row* row : find_all(rows, {scenario, {}, "default"})) {
            double& most = longest[row->backend];
            const bool is_it = row->metric == "time until the next holder" ||
                               row->metric.starts_with("time without a holder");
            if (is_it && row->x > 0) most = std::max(most, row->max / row->x);
            if (row->metric.starts_with("runs in which nobody was granted") && row->value > 0)
                most = std::max(most, never);
        }
    return longest;
}

}  // namespace

Rows reliability(const Rows& rows) {
    const auto seen = set_ups(rows);
    const auto without = longest_without(rows);
    Rows result;
    Figures overlaps, accepted, let_through, gaps;
    for (const auto& [backend, set_ups] : seen) {
        const auto of = [&, &backend = backend](const char* metric) {
            return find(rows, {"C12", backend, "default", metric});
        };
        const Row* open = of("stale writes accepted by a store without a fence");
        const Row* refused = of("stale writes refused by a fenced store");
        const Row* passed = of("stale writes accepted by a fenced store");
        const auto gap = without.find(backend);
        if (open == nullptr || open->n == 0 || refused == nullptr || passed == nullptr ||
            gap == without.end() || gap->second <= 0)
            continue;
        std::string where;
        for (const auto& what : set_ups.two)
            where += (where.empty() ? "" : "; ") + what;
        const auto per_run = [&](const Row& row) {
            return row.value / static_cast<double>(std::max<std::uint64_t>(row.n, 1));
        };
        overlaps[backend] = static_cast<double>(set_ups.two.size());
        // One is enough; how many follow depends on how often the holder writes.
        accepted[backend] = std::min(1.0, per_run(*open));
        let_through[backend] = per_run(*passed);
        gaps[backend] = gap->second;
        Row two = row_of(reliability_scenario, backend, score_overlaps, overlaps[backend], where);
        two.n = set_ups.least_runs;
        two.unit =
            fmt::format("of {} set-ups, each in at least {} runs", set_ups.all.size(), two.n);
        result.push_back(std::move(two));
        result.push_back(
            row_of(reliability_scenario, backend, score_accepted, per_run(*open), "per run"));
        result.push_back(row_of(reliability_scenario, backend, score_refused, per_run(*refused),
                                fmt::format("per run; {:.0f} passed the check", passed->value)));
        result.push_back(row_of(reliability_scenario, backend, score_without, gaps[backend],
                                "after the end, or the pause, of its holder"));
    }
    Figures sum;
    for (const Figures* measure : {&overlaps, &accepted, &let_through, &gaps})
        for (const auto& [backend, rank] : ranks_of(*measure))
            sum[backend] += rank / 4;
    for (const auto& [backend, score] : sum)
        result.push_back(row_of(reliability_scenario, backend, score_reliability, score,
                                "of two holders, stale writes accepted, those let through by the "
                                "check, and time without a holder"));
    return result;
}

Rows ranks(const Rows& rows) {
    Figures lines, p50, score;
    for (const Row* row : find_all(rows, {reliability_scenario, {}, {}, score_reliability})) {
        const Row* size = find(rows, {"C7", row->backend, {}, "lines of code"});
        const Row* speed = find(rows, {"C1", row->backend, "default", "p50"});
        if (size == nullptr || speed == nullptr) continue;
        lines[row->backend] = size->value;
        p50[row->backend] = speed->value;
        score[row->backend] = row->value;
    }
    Rows result;
    Figures firsts;
    const auto add = [&](const Figures& figures, const char* metric, const char* unit) {
        for (const auto& [backend, rank] : ranks_of(figures)) {
            firsts[backend] += rank == 1 ? 1 : 0;
            result.push_back(row_of(rank_scenario, backend, metric, rank,
                                    fmt::format("{:.4g} {}", figures.at(backend), unit)));
        }
    };
    add(lines, rank_complexity, "lines of code");
    add(p50, rank_performance, "us, acquire + release");
    add(score, rank_reliability, "is its mean rank under faults");
    for (const auto& [backend, count] : firsts)
        result.push_back(row_of(rank_scenario, backend, rank_firsts, count));
    return result;
}

}  // namespace holdfast::bench
