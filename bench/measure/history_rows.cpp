#include "measure/history_rows.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace holdfast::bench {

namespace {

using history::Trouble;
using History = history::Verdict;

Row row_for(const Recorded& what, const char* metric, double value, std::uint64_t n,
            std::string note) {
    Row row;
    row.scenario = history_scenario;
    row.backend = what.backend;
    row.variant = what.variant;
    row.metric = metric;
    row.value = row.min = row.max = value;
    row.n = n;
    row.note = std::move(note);
    return row;
}

/// The first line that the checker has for one of the kinds.
std::string first_line(const History& v, std::initializer_list<Trouble> kinds) {
    for (const history::Finding& f : v.first())
        for (const Trouble kind : kinds)
            if (f.trouble == kind) return fmt::format("{}: {}", history::to_string(kind), f.line);
    return {};
}

/// How often something of these kinds was found in so many that were looked at.
Row found(const Recorded& what, const History& v, const char* metric, std::uint64_t looked_at,
          std::initializer_list<Trouble> kinds) {
    std::uint64_t count = 0;
    bool violation = false;
    for (const Trouble kind : kinds) {
        count += v.count(kind);
        violation =
            violation || (v.count(kind) != 0 && gravity(kind) == history::Gravity::violation);
    }
    Row row = row_for(what, metric, static_cast<double>(count), looked_at, first_line(v, kinds));
    if (violation && what.promise == Promise::holdfast) row.status = Status::violated;
    if (violation && what.promise == Promise::nothing)
        row.note = fmt::format("{}; {}", history_expected, row.note);
    return row;
}

}  // namespace

Rows rows_of(const Recorded& what, const History& v) {
    const history::Figures& f = v.figures;
    Row recorded = row_for(
        what, history_recorded, static_cast<double>(f.acquisitions), f.records,
        fmt::format("{} granted, {} failed, {} unfinished, {} holders never heard of again; {} "
                    "writes at stores; {} files",
                    f.granted, f.failed, f.unfinished, f.silent, f.writes, f.files));
    if (f.granted == 0) {
        recorded.status = Status::failed;
        recorded.note = "no grant was recorded: nothing is judged";
    }
    Row damage = found(what, v, history_damage, f.files,
                       {Trouble::torn, Trouble::contradictory, Trouble::other_clock});
    if (damage.value != 0) damage.status = Status::failed;
    Row alone = row_for(what, history_alone, static_cast<double>(f.longest_alone_ns) / 1e6, 1,
                        f.longest_alone);
    alone.unit = "ms";
    Rows rows{std::move(recorded)};
    // Where there was nothing to look at, nothing was tested, and there is no row.
    const auto add = [&](const char* metric, std::uint64_t looked_at,
                         std::initializer_list<Trouble> kinds) {
        Row row = found(what, v, metric, looked_at, kinds);
        if (looked_at != 0 || row.value != 0) rows.push_back(std::move(row));
    };
    add(history_overlaps, f.granted, {Trouble::overlap, Trouble::within_validity});
    add(history_tokens, f.tokens_judged,
        {Trouble::token_order, Trouble::token_repeated, Trouble::token_missing});
    add(history_fenced, f.fenced_judged, {Trouble::stale_fenced, Trouble::rightful_refused});
    add(history_unfenced, f.unfenced_judged, {Trouble::stale_unfenced});
    add(history_order, f.inversions_judged, {Trouble::inversion});
    add(history_words, f.previous_judged, {Trouble::previous_holder});
    add(history_errors, f.failed, {Trouble::held_after_error});
    rows.push_back(std::move(damage));
    rows.push_back(std::move(alone));
    return rows;
}

Rows blind_spots(const Rows& rows) {
    Rows blind;
    for (const Row* lost : find_all(rows, {{}, {}, {}, "updates lost"})) {
        if (lost->value == 0) continue;
        const Row* seen =
            find(rows, {history_scenario, lost->backend, lost->variant, history_overlaps});
        if (seen != nullptr && seen->value != 0) continue;
        Row row = row_for({lost->backend, lost->variant}, "blind", lost->value, lost->n,
                          lost->scenario + ": updates were lost, so two held at once, and the " +
                              (seen == nullptr ? "acquisitions were not recorded"
                                               : "checker of histories saw no overlap"));
        row.status = Status::failed;
        blind.push_back(std::move(row));
    }
    return blind;
}

Row cost_row(const Spread& spread) {
    Row row;
    row.scenario = history_scenario;
    row.metric = history_cost;
    row.unit = "ns";
    row.n = 2000;
    row.value = spread.median;
    row.min = spread.min;
    row.max = spread.max;
    row.note = "CPU time of four records by one thread, in the folder of this run";
    return row;
}

}  // namespace holdfast::bench
