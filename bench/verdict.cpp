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

/// The rule needs readers that share, and a lock has to offer that first.
Answer judge_c23(const Rows& rows) {
    constexpr double most = 99;  // of 100 callers: the share that would gain the most
    std::string words;
    for (const Row* grants : find_all(rows, {"C23", {}, {}, "grants per second", most})) {
        const auto of = [&](const char* metric) {
            return find(rows, {"C23", grants->backend, grants->variant, metric, most});
        };
        const Row *requests = of("requests per grant"), *longest = of("writer's longest wait");
        if (requests == nullptr || longest == nullptr) continue;
        words += fmt::format(
            "{}{} {:.0f} grants a second, {:.1f} requests each, and the writer waits up to {:.0f} "
            "ms",
            words.empty() ? "" : "; ", label(*grants), grants->value, requests->value,
            longest->value);
    }
    if (words.empty()) return {};
    return {Finding::not_measured,
            "Holdfast has no shared lock; with an exclusive one readers are alone as well. With " +
                fmt::format("{:.0f} % readers: ", most) + words};
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
     "Not measured without a shared lock; what readers and writers of an exclusive one get is "
     "said beside it.",
     judge_c23},
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

/// Confirmed only with enough runs of each set-up that its scenario has.
Answer weighed(const Rows& rows, const Rule& rule) {
    Answer answer = rule.judge(rows);
    if (answer.finding != Finding::confirmed) return answer;
    std::uint64_t least = enough_runs;
    for (const Row* row : find_all(rows, {rule.id}))
        if (counts_runs(*row)) least = std::min(least, row->n);
    if (least >= enough_runs) return answer;
    return {Finding::too_few,
            answer.figure + fmt::format("; {} {} of a set-up: to be confirmed it "
                                        "takes {}",
                                        least, least == 1 ? "run" : "runs", enough_runs)};
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
