#include "report/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::bench {

namespace {

/// Raw clients, the documents' own forms, and other libraries.
bool is_foreign(const Row& row) {
    return row.variant.starts_with("floor: ") || row.variant.starts_with("doc: ") ||
           row.variant.starts_with("peer: ") || row.note.starts_with("bare ");
}

std::string name_of(const Row& row) {
    const auto load = row.x > 0 ? fmt::format(" at {:g}", row.x) : std::string();
    const auto who = row.variant == "default" ? row.backend : row.backend + " " + row.variant;
    return fmt::format("{} {}, {}{}", row.scenario, who, row.metric, load);
}

Change change_of(const Row& before, const Row& after, Better which, double margin) {
    using enum Change::Finding;
    Change c{before, after, 1, same, is_foreign(before)};
    const bool lower = which == Better::lower;
    const auto ratio = [](double over, double under) { return under > 0 ? over / under : 1; };
    c.worse = lower ? ratio(after.value, before.value) : ratio(before.value, after.value);
    // Without rounds nothing says how much the figure varies by itself.
    const bool once = before.min == before.max || after.min == after.max;
    const double limit = 1 + margin / 100 * (once ? 3 : 1);
    const bool apart = after.min > before.max || after.max < before.min;
    if (c.worse > limit)
        c.finding = apart ? slower : unclear;
    else if (c.worse < 1 / limit)
        c.finding = apart ? faster : unclear;
    return c;
}

void compare_verdicts(const Report& before, const Report& after, std::vector<std::string>& out) {
    const auto then = verdicts(before.rows), now = verdicts(after.rows);
    for (const Verdict& v : then) {
        const auto same =
            std::find_if(now.begin(), now.end(), [&](const Verdict& n) { return n.id == v.id; });
        if (same != now.end() && same->finding != v.finding)
            out.push_back(fmt::format("{}: {}, now {}", v.id, to_string(v.finding),
                                      to_string(same->finding)));
    }
}

/// What makes two runs hard to compare.
void compare_conditions(const Report& before, const Report& after, std::vector<std::string>& out) {
    for (const char* what :
         {"processor", "cores", "placement", "effort", "kernel", "compiler", "data folder on"}) {
        const auto of = [what](const Report& r) {
            const auto at = r.environment.find(what);
            return at == r.environment.end() ? std::string("unknown") : at->second;
        };
        if (of(before) != of(after))
            out.push_back(fmt::format("{}: {}, now {}", what, of(before), of(after)));
    }
    if (before.partial || after.partial) out.emplace_back("a run was ended by ^C");
}

std::string value_of(const Row& row) {
    const auto spread =
        row.min == row.max ? std::string() : fmt::format(" ({:.4g} .. {:.4g})", row.min, row.max);
    return fmt::format("{:.4g}{}{}{}", row.value, row.unit.empty() ? "" : " ", row.unit, spread);
}

void print_changes(std::FILE* out, const Comparison& all, Change::Finding which,
                   const char* title) {
    bool any = false;
    for (const Change& c : all.changes) {
        if (c.finding != which) continue;
        if (!std::exchange(any, true)) fmt::print(out, "\n{}\n", title);
        fmt::print(out, "{:5.2f} x  {}{}\n         {}, now {}\n", c.worse, name_of(c.before),
                   c.foreign ? "  [without Holdfast: the machine]" : "", value_of(c.before),
                   value_of(c.after));
    }
}

void print_list(std::FILE* out, const std::vector<std::string>& lines, const char* title) {
    if (lines.empty()) return;
    fmt::print(out, "\n{}\n", title);
    for (const std::string& line : lines)
        fmt::print(out, "{}\n", line);
}

}  // namespace

Better better(const Row& row) {
    // Tails and longest waits of one run say more of the machine's other work than of the lock.
    static constexpr std::string_view costs[] = {"p50",
                                                 "time per hand-off",
                                                 "time per hand-off over its floor",
                                                 "client overhead",
                                                 "client overhead in flight",
                                                 "whole price",
                                                 "whole price, durable alike",
                                                 "price of the guarantees",
                                                 "price of the guarantees in flight",
                                                 "acquire + release, p50",
                                                 "cycle, all nodes up"};
    if (row.status != Status::ok) return Better::neither;
    if (row.metric.starts_with("requests per ")) return Better::lower;
    if (row.metric == "cycles per second" || row.metric.starts_with("throughput over "))
        return Better::higher;
    const bool cost = std::find(std::begin(costs), std::end(costs), row.metric) != std::end(costs);
    return cost ? Better::lower : Better::neither;
}

int Comparison::slower() const {
    return static_cast<int>(std::count_if(changes.begin(), changes.end(), [](const Change& c) {
        return c.finding == Change::Finding::slower && !c.foreign;
    }));
}

Comparison compare(const Report& before, const Report& after, double margin) {
    Comparison all;
    for (const Row& row : before.rows) {
        const Better which = better(row);
        if (which == Better::neither) continue;
        const auto same = std::find_if(after.rows.begin(), after.rows.end(), [&](const Row& r) {
            return r.scenario == row.scenario && r.backend == row.backend &&
                   r.variant == row.variant && r.metric == row.metric && r.x == row.x &&
                   r.status == Status::ok;
        });
        if (same == after.rows.end())
            all.missing.push_back(name_of(row));
        else
            all.changes.push_back(change_of(row, *same, which, margin));
    }
    compare_verdicts(before, after, all.verdicts);
    compare_conditions(before, after, all.conditions);
    return all;
}

void print_comparison(std::FILE* out, const Comparison& all, double margin) {
    using enum Change::Finding;
    print_list(out, all.conditions, "NOT THE SAME CONDITIONS: ratios may hold, times may not");
    print_changes(out, all, slower, "SLOWER");
    print_changes(out, all, faster, "FASTER");
    print_changes(out, all, unclear, "UNCLEAR: the rounds of both runs overlap");
    print_list(out, all.verdicts, "VERDICTS");
    print_list(out, all.missing, "ONLY IN THE FIRST RUN");
    const auto count = [&](Change::Finding f) {
        return std::count_if(all.changes.begin(), all.changes.end(),
                             [f](const Change& c) { return c.finding == f; });
    };
    fmt::print(
        out, "\n{} figures: {} within {:g} %, {} slower, {} faster, {} unclear, {} not compared\n",
        all.changes.size() + all.missing.size(), count(same), margin, count(slower), count(faster),
        count(unclear), all.missing.size());
}

int exit_code(const Comparison& all) {
    return all.slower() > 0 ? 3 : 0;
}

}  // namespace holdfast::bench
