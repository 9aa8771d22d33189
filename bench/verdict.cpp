#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "verdict_rule.hpp"

namespace holdfast::bench {

std::string label(const Row& row) {
    return row.variant == "default" || row.variant.empty() ? row.backend
                                                           : row.backend + " " + row.variant;
}

bool caught(const Row& row) {
    return row.n > 0 && row.value >= 0.9 * static_cast<double>(row.n);
}

namespace {

// --- C8, C8a, C8b: what is lost without a lock, and with one

Answer judge_c8(const Rows& rows) {
    const Row* none = find(rows, {"C8", "none", "guard: none", "updates lost"});
    if (none == nullptr) return {};
    std::string with;
    bool exact = true;
    for (const Row* row : find_all(rows, {"C8", {}, {}, "updates lost"})) {
        if (row == none) continue;
        exact = exact && row->value == 0;
        with += fmt::format("{}{} {:.0f}", with.empty() ? "" : ", ", label(*row), row->value);
    }
    if (with.empty()) return {};
    const auto figure = fmt::format("of {} additions were lost: without a lock {:.0f}; with {}",
                                    none->n, none->value, with);
    return {none->value > 0 && exact ? Finding::confirmed : Finding::refuted, figure};
}

Answer judge_c8a(const Rows& rows) {
    const Row* each = find(rows, {"C8a", "none", "std::mutex in each process", "updates lost"});
    const Row* threads =
        find(rows, {"C8a", "none", "std::mutex, threads of one process", "updates lost"});
    if (each == nullptr || threads == nullptr) return {};
    const auto figure = fmt::format(
        "of {} additions were lost: {:.0f} by processes with a std::mutex each, {:.0f} by threads "
        "that share one",
        each->n, each->value, threads->value);
    if (each->value > 0 && threads->value == 0) return {Finding::confirmed, figure};
    return {Finding::refuted, figure};
}

Answer judge_c8b(const Rows& rows) {
    const Row* none = find(rows, {"C8b", "none", "guard: none", "sold"});
    if (none == nullptr) return {};
    std::string with;
    bool exact = true;
    for (const Row* row : find_all(rows, {"C8b", {}, {}, "sold"})) {
        if (row == none) continue;
        exact = exact && row->value == row->x;
        with += fmt::format("{}{} {:.0f}", with.empty() ? "" : ", ", label(*row), row->value);
    }
    if (with.empty()) return {};
    const auto figure =
        fmt::format("of a stock of {:.0f} were sold: without a lock {:.0f}; with {}", none->x,
                    none->value, with);
    return {none->value > none->x && exact ? Finding::confirmed : Finding::refuted, figure};
}

// --- C12

Answer judge_c12(const Rows& rows) {
    constexpr std::string_view open = "stale writes accepted by a store without a fence";
    constexpr std::string_view refused = "stale writes refused by a fenced store";
    constexpr std::string_view passed = "stale writes accepted by a fenced store";
    double stale = 0, stopped = 0, through = 0;
    std::string quiet;
    const auto broken = find_all(rows, {"C12", {}, {}, open});
    const auto fences = find_all(rows, {"C12", {}, {}, refused});
    for (const Row* row : broken) {
        stale += row->value;
        if (row->value == 0) quiet += (quiet.empty() ? "" : ", ") + label(*row);
    }
    for (const Row* row : fences)
        stopped += row->value;
    for (const Row* row : find_all(rows, {"C12", {}, {}, passed}))
        through += row->value;
    if (broken.empty() || fences.empty()) return {};
    auto figure = fmt::format(
        "{:.0f} stale writes reached the stores; those that check the token refused {:.0f} and let "
        "{:.0f} through",
        stale, stopped, through);
    if (stale == 0 || through > 0 || stopped == 0) return {Finding::refuted, figure};
    if (!quiet.empty())
        return {Finding::only_if, figure + "; no stale write was seen with " + quiet +
                                      ": holds only if the pause falls between look and write"};
    return {Finding::confirmed, figure};
}

// --- C22

Answer judge_c22(const Rows& rows) {
    bool queues = false, all_in_order = true;
    std::string words;
    for (const Row* row : find_all(rows, {"C22", {}, {}, "pairs served out of order"})) {
        const Row* fifo = find(rows, {"C22", row->backend, row->variant, "declares fifo"});
        if (fifo == nullptr) continue;
        if (fifo->value != 0) {
            queues = true;
            all_in_order = all_in_order && row->max == 0;
        }
        words += fmt::format("{}{} {:.0f} % ({})", words.empty() ? "" : ", ", label(*row),
                             100 * row->value, fifo->value != 0 ? "queue" : "no order declared");
    }
    if (!queues) return {};
    return {all_in_order ? Finding::confirmed : Finding::refuted,
            "pairs of waiters served out of order: " + words};
}

// --- C23

constexpr std::string_view granted = "grants per second";

/// With the readers that could gain the most from sharing.
struct Shared {
    std::size_t backends = 0, gain = 0;
    double beside = 0;  ///< grants beside a writer
    std::string words;
};

Shared shared(const Rows& rows) {
    constexpr double most = 99;
    Shared seen;
    for (const Row* grants : find_all(rows, {"C23", {}, "default", granted, most})) {
        const auto of = [&](const char* metric) {
            return find(rows, {"C23", grants->backend, grants->variant, metric, most});
        };
        const Row *requests = of("requests per grant"), *longest = of("writer's longest wait");
        const Row* alone = find(rows, {"C23", grants->backend, "all exclusive", granted});
        if (requests == nullptr || longest == nullptr || alone == nullptr) continue;
        ++seen.backends;
        seen.gain += grants->value >= 2 * alone->value ? 1 : 0;
        seen.words += fmt::format(
            "{}{} {:.1f} x as many grants as when all are exclusive ({:.0f} a second, {:.1f} "
            "requests each, the writer waits up to {:.0f} ms)",
            seen.words.empty() ? "" : ", ", label(*grants), grants->value / alone->value,
            grants->value, requests->value, longest->value);
    }
    for (const Row* row : find_all(rows, {"C23", {}, {}, "granted beside a writer"}))
        seen.beside += row->value;
    return seen;
}

/// Requests per grant of readers who watch the parent, over those who watch the last writer: where
/// the first are most.
double herd(const Rows& rows, std::string& words) {
    double most = 0, over = 0;
    for (const Row* parent : find_all(
             rows, {"C23", "zookeeper", "doc: readers watch the parent", "requests per grant"})) {
        const Row* writer =
            find(rows, {"C23", "zookeeper", "doc: readers watch the last earlier writer",
                        "requests per grant", parent->x});
        if (writer == nullptr || writer->value <= 0) continue;
        if (parent->value > most) over = parent->value / writer->value;
        most = std::max(most, parent->value);
        words += fmt::format("{}{:.1f} against {:.1f} with {:.0f} % readers",
                             words.empty() ? "" : ", ", parent->value, writer->value, parent->x);
    }
    return over;
}

Answer judge_c23(const Rows& rows) {
    const Shared seen = shared(rows);
    std::string watches;
    const double ratio = herd(rows, watches);
    if (seen.backends == 0 || ratio == 0) return {};
    const auto figure = fmt::format(
        "with 99 % readers: {}; requests per grant of bare ZooKeeper sessions whose "
        "readers watch the parent, against the last writer: {}",
        seen.words, watches);
    const bool all_gain = seen.gain == seen.backends, no_herd = ratio >= 2;
    if (seen.beside > 0 || (seen.gain == 0 && !no_herd)) return {Finding::refuted, figure};
    if (!no_herd) return {Finding::only_if, figure + ": holds only for sharing, not for the herd"};
    if (!all_gain)
        return {Finding::only_if, figure + ": holds only where the server is quick enough to gain"};
    return {Finding::confirmed, figure};
}

// --- C29

Answer judge_c29(const Rows& rows) {
    constexpr std::string_view metric = "tasks done more than once";
    const Row* none = find(rows, {"C29", "none", "guard: none", metric});
    if (none == nullptr) return {};
    bool all_done = true, few = true;
    double most = 0;
    std::string words;
    for (const Row* twice : find_all(rows, {"C29", {}, {}, metric})) {
        const auto of = [&](const char* what) {
            return find(rows, {"C29", twice->backend, twice->variant, what});
        };
        const Row *never = of("tasks never done"), *killed = of("workers killed");
        if (never == nullptr || killed == nullptr) return {};
        all_done = all_done && never->value == 0;
        if (twice == none) continue;
        few = few && twice->value <= killed->value;
        most = std::max(most, twice->value);
        words += fmt::format("{}{} {:.0f} ({:.0f} killed)", words.empty() ? "" : ", ",
                             label(*twice), twice->value, killed->value);
    }
    if (words.empty()) return {};
    const auto figure =
        fmt::format("of {} tasks done more than once: without locks {:.0f}; with {}{}", none->n,
                    none->value, words, all_done ? "; every task was done" : "");
    return {all_done && few && none->value > most ? Finding::confirmed : Finding::refuted, figure};
}

constexpr Rule rules[] = {
    {"C8",
     "Without a lock, read-then-write from several processes loses updates; with it the counter "
     "is exact.",
     "Confirmed if updates are lost without a lock and none with any backend.", judge_c8},
    {"C8a", "An in-process lock does not suffice.",
     "Confirmed if processes with a mutex each lose updates, and threads that share one do not.",
     judge_c8a},
    {"C8b", "A stock of 10 is oversold to 100 buyers without a lock.",
     "Confirmed if more than the stock is sold without a lock, and exactly the stock with every "
     "backend.",
     judge_c8b},
    {"C12",
     "A paused process breaks exclusion in spite of renewal; a token checked by the store stops "
     "the damage.",
     "Confirmed if stale writes arrive with every backend and a store that checks the token "
     "accepts "
     "none; only-if when some backend showed none; refuted if one passes the check.",
     judge_c12},
    {"C22", "The sequential queue is fair: first come, first served.",
     "Confirmed if no pair was served out of order with any backend that declares a queue.",
     judge_c22},
    {"C23",
     "Readers share, a writer is alone; watching only the last earlier writer avoids the herd.",
     "Confirmed if with 99 % readers every backend grants at least twice as often as when all are "
     "exclusive, nobody is granted beside a writer, and a grant costs readers who watch the parent "
     "at least twice as many requests where they are most; only-if when just some backends gain or "
     "just sharing does; refuted otherwise.",
     judge_c23},
    {"C29",
     "A soft lock (each task by one worker at a time, mostly) is what such locks are good for.",
     "Confirmed if every task is done, with every backend at most as many more than once as "
     "workers are killed, and without locks more than with any backend.",
     judge_c29},
};

/// "C18b" -> 18
int number_of(const std::string& id) {
    int number = 0;
    std::from_chars(id.data() + 1, id.data() + id.size(), number);
    return number;
}

/// "3 of 5 runs", "17 stale writes in 5 runs", "33 % in 5 runs": n is how many runs there were.
bool counts_runs(const Row& row) {
    return row.unit.ends_with(" runs") || row.metric.starts_with("runs ");
}

/// Confirmed or refuted only with enough runs of each set-up that its scenario has.
Answer weighed(const Rows& rows, const Rule& rule) {
    Answer answer = rule.judge(rows);
    const bool confirmed = answer.finding == Finding::confirmed;
    if (!confirmed && answer.finding != Finding::refuted) return answer;
    std::uint64_t least = enough_runs;
    for (const Row* row : find_all(rows, {rule.id}))
        if (counts_runs(*row)) least = std::min(least, row->n);
    if (least >= enough_runs) return answer;
    return {Finding::too_few,
            answer.figure + fmt::format("; {}in {} {} of a set-up: a verdict takes {}",
                                        confirmed ? "" : "not so ", least,
                                        least == 1 ? "run" : "runs", enough_runs)};
}

}  // namespace

std::string_view to_string(Finding finding) {
    switch (finding) {
        case Finding::confirmed:
            return "confirmed";
        case Finding::refuted:
            return "refuted";
        case Finding::only_if:
            return "holds only if";
        case Finding::too_few:
            return "too few runs";
        case Finding::not_measured:
            return "not measured";
    }
    return "?";
}

std::vector<Verdict> verdicts(const Rows& rows) {
    std::vector<Verdict> all;
    const auto judge = [&](std::span<const Rule> some) {
        for (const Rule& rule : some) {
            Answer answer = weighed(rows, rule);
            all.push_back(
                {rule.id, rule.claim, rule.rule, answer.finding, std::move(answer.figure)});
        }
    };
    judge(rules_of_cost());
    judge(rules);
    judge(rules_of_clients());
    judge(rules_of_faults());
    const auto in_order = [](const Verdict& a, const Verdict& b) {
        return std::pair(number_of(a.id), a.id) < std::pair(number_of(b.id), b.id);
    };
    std::sort(all.begin(), all.end(), in_order);
    return all;
}

int exit_code(const Rows& rows) {
    int code = 0;
    for (const Row& row : rows) {
        if (row.status == Status::violated) return 2;
        if (row.status == Status::failed) code = 1;
    }
    return code;
}

}  // namespace holdfast::bench
