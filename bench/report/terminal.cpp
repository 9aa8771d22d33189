#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "measure/history_rows.hpp"
#include "measure/peer_rows.hpp"
#include "report/report.hpp"

namespace holdfast::bench {

namespace {

struct Paint {
    bool on = false;
    std::string in(const char* code, const std::string& text) const {
        return on ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
    }
    std::string bold(const std::string& t) const { return in("1", t); }
    std::string red(const std::string& t) const { return in("31", t); }
    std::string green(const std::string& t) const { return in("32", t); }
    std::string yellow(const std::string& t) const { return in("33", t); }
    std::string dim(const std::string& t) const { return in("2", t); }
};

std::string row_name(const Row& row) {
    return row.variant == "default" || row.variant.empty() ? row.backend
                                                           : row.backend + " " + row.variant;
}

/// A figure as short as it can be read.
std::string figure(double v) {
    if (v == 0) return "0";
    if (v >= 100) return fmt::format("{:.0f}", v);
    if (v >= 10) return fmt::format("{:.1f}", v);
    return fmt::format("{:.2f}", v);
}

std::string cell(const Row* row) {
    return row == nullptr ? "-" : figure(row->value);
}

void print_uncontended(std::FILE* out, const Rows& rows, const Paint& paint) {
    const auto all = find_all(rows, {"C1", {}, {}, "p50"});
    if (all.empty()) return;
    fmt::print(out, "\n{}\n", paint.bold("COST"));
    fmt::print(out, "{:<36} {:>9} {:>9} {:>21} {:>9} {:>9} {:>9}\n",
               "acquire + release, one caller", "p50 us", "p99 us", "p50 over the rounds",
               "1/s at 1", "at 64", "at 1000");
    for (const Row* row : all) {
        const auto rate = [&](double x) {
            return cell(find(rows, {"C1", row->backend, row->variant, "cycles per second", x}));
        };
        fmt::print(out, "{:<36} {:>9} {:>9} {:>21} {:>9} {:>9} {:>9}\n", row_name(*row),
                   figure(row->value), cell(find(rows, {"C1", row->backend, row->variant, "p99"})),
                   figure(row->min) + " .. " + figure(row->max), rate(1), rate(64), rate(1000));
    }
    for (const char* metric :
         {"client overhead", "price of the guarantees", "whole price", "whole price, durable alike",
          "client overhead in flight", "price of the guarantees in flight",
          "throughput over its floor in flight", "throughput over one by one in flight",
          "time over Holdfast's"})
        for (const Row* row : find_all(rows, {"C1", {}, {}, metric}))
            fmt::print(out, "  {:<58} {:>6} x  ({} .. {})\n",
                       row_name(*row) + ": " + metric +
                           (row->x > 0 ? fmt::format(" n={:.0f}", row->x) : std::string()),
                       figure(row->value), figure(row->min), figure(row->max));
}

void print_open_loop(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C1", {}, {}, "open loop: p50"});
    if (all.empty()) return;
    fmt::print(out, "\n{:<36} {:>9} {:>9} {:>9} {:>9} {:>17} {:>11} {:>11}\n",
               "callers who do not wait, us", "load", "1/s", "p50", "p99", "p99 from the call",
               "closed: p50", "p99");
    for (const Row* row : all) {
        const auto of = [&](const char* metric, double x) {
            return cell(find(rows, {"C1", row->backend, row->variant, metric, x}));
        };
        fmt::print(out, "{:<36} {:>7.0f} % {:>9} {:>9} {:>9} {:>17} {:>11} {:>11}\n",
                   row_name(*row), row->x, of("open loop: cycles per second", row->x),
                   figure(row->value), of("open loop: p99", row->x),
                   of("open loop: p99 from the call", row->x), of("p50", 1), of("p99", 1));
    }
}

void print_peers(std::FILE* out, const Rows& rows, const Paint& paint) {
    const auto all = find_all(rows, {peers_scenario, {}, {}, "p50"});
    const auto missing = find_all(rows, {peers_scenario, {}, {}, peer_not_installed});
    if (all.empty() && missing.empty()) return;
    fmt::print(out, "\n{}\n", paint.bold("OTHER LIBRARIES"));
    fmt::print(out, "{:<46} {:>9} {:>9} {:>9}  {}\n", "acquire + release, one caller", "p50 us",
               "p99 us", "x", "over the bare client, over the rounds");
    for (const Row* row : all) {
        const auto of = [&](const char* metric) {
            return find(rows, {peers_scenario, row->backend, row->variant, metric});
        };
        const Row* ratio = of(peer_over_floor);
        fmt::print(out, "{:<46} {:>9} {:>9} {:>9}  {}\n", row_name(*row), figure(row->value),
                   cell(of("p99")), cell(ratio),
                   ratio == nullptr ? "" : figure(ratio->min) + " .. " + figure(ratio->max));
    }
    for (const Row* row : all)
        if (row->variant.starts_with("peer: "))
            fmt::print(out, "  {}\n", paint.dim(row->variant.substr(6) + ": " + row->note));
    for (const Row* row : missing)
        fmt::print(out, "  {}: {}\n", row_name(*row), row->note);
}

void print_hand_off(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C3", {}, {}, "hand-offs per second"});
    if (all.empty()) return;
    fmt::print(out, "\n{:<36} {:>9} {:>9} {:>13} {:>13} {:>9}\n", "hand-off", "waiters", "us",
               "requests", "told", "p99 us");
    for (const Row* row : all) {
        const auto of = [&](const char* metric) {
            return cell(find(rows, {"C3", row->backend, row->variant, metric, row->x}));
        };
        fmt::print(out, "{:<36} {:>9} {:>9} {:>13} {:>13} {:>9}\n", row_name(*row), figure(row->x),
                   of("time per hand-off"), of("requests per hand-off"),
                   of("notifications per hand-off"), of("hand-off p99"));
    }
    for (const char* metric :
         {"time per hand-off over its floor", "time per hand-off over that of 100 waiters"})
        for (const Row* row : find_all(rows, {"C3", {}, {}, metric}))
            fmt::print(out, "  {:<58} {:>6} x  ({} .. {})\n", row_name(*row) + ": " + metric,
                       figure(row->value), figure(row->min), figure(row->max));
    for (const Row* row : find_all(rows, {"C5a", {}, {}, "requests per waiter and second"}))
        fmt::print(out, "  idle: {:<50} {:>9} requests per waiter and second\n",
                   row_name(*row) + fmt::format(" ({:.0f})", row->x), figure(row->value));
}

void print_bursts(std::FILE* out, const Rows& rows) {
    for (const Row* row :
         find_all(rows, {"C3", {}, {}, "burst: time until all survivors were served"})) {
        const auto of = [&](const char* metric) {
            return cell(find(rows, {"C3", row->backend, row->variant, metric, row->x}));
        };
        fmt::print(out,
                   "  half of {:.0f} killed: {:<44} half of the others served after {:>7} ms, all "
                   "after {:>7} ms, {} requests each\n",
                   row->x, row_name(*row),
                   of("burst: time until half of the survivors were served"), figure(row->value),
                   of("burst: requests per survivor"));
    }
}

void print_ensembles(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C2"});
    if (all.empty()) return;
    fmt::print(out, "\n");
    for (const Row* row : all)
        fmt::print(out, "{:<44} {:<34} {:>9} {:<4} ({} .. {})\n", row_name(*row), row->metric,
                   figure(row->value), row->unit, figure(row->min), figure(row->max));
}

void print_network(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C32", {}, {}, "p50"});
    if (all.empty()) return;
    fmt::print(out, "\n{:<44} {:<34} {:>9}\n", "behind a network that delays", "ms each way",
               "p50 us");
    for (const Row* row : all)
        fmt::print(out, "{:<44} {:<34} {:>9}\n", row_name(*row), row->x, figure(row->value));
}

void print_conflicts(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C5", {}, {}, "requests per grant"});
    if (all.empty()) return;
    fmt::print(out, "\n{:<36} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
               "the lock is taken", "callers", "requests", "p50 ms", "p99 ms", "longest",
               "jobs 1/s", "other 1/s", "in vain");
    for (const Row* row : all) {
        const auto of = [&](const char* metric) {
            return cell(find(rows, {"C5", row->backend, row->variant, metric, row->x}));
        };
        fmt::print(out, "{:<36} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", row_name(*row),
                   row->x, figure(row->value), of("time to grant p50"), of("time to grant p99"),
                   of("time to grant, longest"), of("guarded jobs per second"),
                   of("other jobs per second"), of("asked in vain"));
    }
}

void print_readers(std::FILE* out, const Rows& rows) {
    const auto all = find_all(rows, {"C23", {}, {}, "grants per second"});
    if (all.empty()) return;
    fmt::print(out, "\n{:<36} {:>9} {:>9} {:>9} {:>9} {:>15}\n", "readers and writers", "readers",
               "grants/s", "reads/s", "requests", "writer waits ms");
    for (const Row* row : all) {
        const auto of = [&](const char* metric) {
            return cell(find(rows, {"C23", row->backend, row->variant, metric, row->x}));
        };
        fmt::print(out, "{:<36} {:>7.0f} % {:>9} {:>9} {:>9} {:>15}\n", row_name(*row), row->x,
                   figure(row->value), of("reads per second"), of("requests per grant"),
                   of("writer's longest wait"));
    }
}

void print_safety(std::FILE* out, const Rows& rows, const Paint& paint) {
    const auto is_here = [&](const Row& row) {
        return row.scenario[0] == 'C' && row.scenario != "C1" && row.scenario != "C2" &&
               row.scenario != "C3" && row.scenario != "C5" && row.scenario != "C5a" &&
               row.scenario != "C23" && row.scenario != "C32";
    };
    if (std::none_of(rows.begin(), rows.end(), is_here)) return;
    fmt::print(out, "\n{}\n", paint.bold("SAFETY AND ORDER"));
    std::set<std::string> shown;
    for (const Row& first : rows) {
        if (!is_here(first) || !shown.insert(first.scenario).second) continue;
        for (const Row* row : find_all(rows, {first.scenario})) {
            if (row->metric.rfind("timeline: ", 0) == 0 || row->metric == "declares fifo" ||
                row->metric == "duration" || row->metric == "failed" ||
                row->metric == "begun again")
                continue;
            const auto line = fmt::format(
                "{:<4} {:<38} {:<58} {:>9} {}", row->scenario, row_name(*row), row->metric,
                row->unit.starts_with("of ") ? fmt::format("{:.0f}", row->value)
                                             : figure(row->value),
                row->unit);
            fmt::print(out, "{}\n", row->status == Status::ok ? line : paint.red(line));
        }
    }
}

void print_histories(std::FILE* out, const Rows& rows, const Paint& paint) {
    const auto all = find_all(rows, {history_scenario, {}, {}, history_recorded});
    if (all.empty()) return;
    fmt::print(out, "\n{}\n", paint.bold("WHAT EVERY ACQUISITION SAYS"));
    fmt::print(out, "{:<38} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}\n",
               "recorded and judged", "recorded", "overlaps", "tokens", "fenced", "order", "words",
               "unfenced", "alone ms");
    for (const Row* row : all) {
        bool broken = false;
        const auto of = [&](const char* metric) {
            const Row* found = find(rows, {history_scenario, row->backend, row->variant, metric});
            broken = broken || (found != nullptr && found->status != Status::ok);
            if (found == nullptr) return std::string("-");
            return found->unit.empty() ? fmt::format("{:.0f}", found->value) : cell(found);
        };
        const auto line = fmt::format("{:<38} {:>9.0f} {:>9} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}",
                                      row_name(*row), row->value, of(history_overlaps),
                                      of(history_tokens), of(history_fenced), of(history_order),
                                      of(history_words), of(history_unfenced), of(history_alone));
        fmt::print(out, "{}\n", broken ? paint.red(line) : line);
    }
    for (const Row* row : all)
        for (const Row* found : find_all(rows, {history_scenario, row->backend, row->variant}))
            if (found->note.rfind(history_expected, 0) == 0)
                fmt::print(out, "  {}: {}: {}\n", row_name(*found), found->metric,
                           paint.dim(history_expected));
    if (const Row* cost = find(rows, {history_scenario, {}, {}, history_cost}))
        fmt::print(out, "  {} ns to record one acquisition\n", figure(cost->value));
}

void print_verdicts(std::FILE* out, const Rows& rows, const Paint& paint) {
    const auto judged = verdicts(rows);
    const auto is_measured = [](const Verdict& v) { return v.finding != Finding::not_measured; };
    if (std::none_of(judged.begin(), judged.end(), is_measured)) return;
    fmt::print(out, "\n{}\n", paint.bold("VERDICTS"));
    for (const Verdict& v : judged) {
        const auto word = fmt::format("{:<13}", to_string(v.finding));
        const auto shown = v.finding == Finding::confirmed ? paint.green(word)
                           : v.finding == Finding::refuted ? paint.red(word)
                           : v.finding == Finding::only_if || v.finding == Finding::too_few
                               ? paint.yellow(word)
                               : paint.dim(word);
        fmt::print(out, "{:<4} {} {}\n", v.id, shown, v.claim);
        if (!v.figure.empty()) fmt::print(out, "     {}\n", paint.dim(v.figure));
    }
    fmt::print(out, "\n{}\n", paint.bold("HOLDFAST'S OWN TARGETS"));
    for (const Target& t : targets(rows)) {
        const auto word = std::string(!t.measured ? "-" : t.met() ? "met" : "missed");
        fmt::print(out, "{:<8} {:<62} {:>7} {} ({} {})\n",
                   t.measured && !t.met() ? paint.yellow(fmt::format("{:<8}", word))
                                          : fmt::format("{:<8}", word),
                   t.what, t.measured ? figure(t.value) : "-", t.unit, to_string(t.side),
                   figure(t.limit));
    }
}

/// What makes a run worthless, and how long it took.
void print_end(std::FILE* out, const Report& report, const Paint& paint) {
    for (const Row& row : report.rows)
        if (row.status != Status::ok)
            fmt::print(out, "{}\n",
                       paint.red(fmt::format(
                           "{}: {} {}: {} {}",
                           row.status == Status::violated ? "GUARANTEE VIOLATED" : "INVALID",
                           row.scenario, row_name(row), row.metric, row.note)));
    fmt::print(out, "\n{:.0f} s, seed {}{}\n", report.seconds, report.seed,
               report.partial ? ", PARTIAL: ended by ^C" : "");
}

/// "runs with two holders", of all faults together.
std::string two_holders(const Rows& rows, const std::string& backend) {
    double two = 0;
    std::uint64_t runs = 0;
    for (const Row* row : find_all(rows, {{}, backend})) {
        if (!row->metric.starts_with("runs with two holders")) continue;
        two += row->value;
        runs += row->n;
    }
    return runs == 0 ? "-" : fmt::format("{:.0f} of {}", two, runs);
}

void print_backends(std::FILE* out, const Rows& rows, const Paint& paint) {
    std::vector<const Row*> all = find_all(rows, {"C1", {}, "default", "p50"});
    if (all.empty()) return;
    std::sort(all.begin(), all.end(),
              [](const Row* a, const Row* b) { return a->value < b->value; });
    fmt::print(out, "\n{}\n", paint.bold("COST AND SAFETY (loopback, one machine)"));
    fmt::print(out, "{:<14} {:>10} {:>12} {:>12} {:>10} {:>20}\n", "", "alone, us", "64 at once",
               "hand-off, us", "requests", "two holders, runs");
    for (const Row* row : all) {
        const auto of = [&](const char* scenario, const char* metric, double x) {
            return cell(find(rows, {scenario, row->backend, "default", metric, x}));
        };
        fmt::print(out, "{:<14} {:>10} {:>10}/s {:>12} {:>10} {:>20}\n", row->backend,
                   figure(row->value), of("C1", "cycles per second", 64),
                   of("C3", "time per hand-off", 100), of("C3", "requests per hand-off", 100),
                   two_holders(rows, row->backend));
    }
    fmt::print(out, "{}\n",
               paint.dim("Two holders: all faults together, also those that no such lock survives. "
                         "Hand-off: among 100 waiters."));
}

void print_claims(std::FILE* out, const Rows& rows, const Paint& paint) {
    std::map<Finding, std::vector<Verdict>> by;
    std::size_t measured = 0;
    for (Verdict& v : verdicts(rows)) {
        if (v.finding == Finding::not_measured) continue;
        ++measured;
        by[v.finding].push_back(std::move(v));
    }
    if (measured == 0) return;
    fmt::print(out, "\n{}\n", paint.bold("CLAIMS"));
    constexpr std::size_t few = 6;
    for (const Finding finding :
         {Finding::confirmed, Finding::refuted, Finding::only_if, Finding::too_few}) {
        const auto& these = by[finding];
        if (these.empty()) continue;
        fmt::print(out, "{:<14} {:>3}", to_string(finding), these.size());
        if (measured > few && finding != Finding::refuted) {
            fmt::print(out, "  ");
            for (const Verdict& v : these)
                fmt::print(out, " {}", v.id);
            fmt::print(out, "\n");
            continue;
        }
        fmt::print(out, "\n");
        for (const Verdict& v : these) {
            fmt::print(out, "  {:<4} {}\n", v.id, v.claim);
            if (measured <= few) fmt::print(out, "       {}\n", paint.dim(v.figure));
        }
    }
}

void print_missed(std::FILE* out, const Rows& rows, const Paint& paint) {
    std::size_t met = 0, missed = 0;
    for (const Target& t : targets(rows)) {
        met += t.met() ? 1 : 0;
        missed += t.measured && !t.met() ? 1 : 0;
    }
    if (met + missed == 0) return;
    fmt::print(out, "\n{} {} met, {}\n", paint.bold("HOLDFAST'S OWN TARGETS"), met,
               missed == 0 ? "0 missed" : paint.yellow(fmt::format("{} missed", missed)));
}

}  // namespace

void print_screen(std::FILE* out, const Report& report) {
    const Paint paint{isatty(fileno(out)) == 1};
    print_backends(out, report.rows, paint);
    print_claims(out, report.rows, paint);
    print_missed(out, report.rows, paint);
    print_end(out, report, paint);
    fmt::print(out, "{}\n", paint.dim("All figures: --verbose, or the page"));
}

void print_tables(std::FILE* out, const Report& report) {
    const Paint paint{isatty(fileno(out)) == 1};
    print_uncontended(out, report.rows, paint);
    print_open_loop(out, report.rows);
    print_ensembles(out, report.rows);
    print_network(out, report.rows);
    print_hand_off(out, report.rows);
    print_bursts(out, report.rows);
    print_conflicts(out, report.rows);
    print_readers(out, report.rows);
    print_peers(out, report.rows, paint);
    print_safety(out, report.rows, paint);
    print_histories(out, report.rows, paint);
    print_verdicts(out, report.rows, paint);
    for (const Row* row : find_all(report.rows, {"clean-up", {}, {}, {}}))
        if (row->status == Status::ok) fmt::print(out, "\nclean-up: {}\n", row->note);
    print_end(out, report, paint);
}

}  // namespace holdfast::bench
