#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scores.hpp"
#include "verdict_rule.hpp"

namespace holdfast::bench {

namespace {

constexpr std::string_view two_holders = "runs with two holders";
constexpr std::string_view token_back = "runs with a token going back";

void append(std::string& words, const std::string& more) {
    words += (words.empty() ? "" : ", ") + more;
}

/// "3 of 10 runs"
std::string of_runs(const Row& row) {
    return fmt::format("{:.0f} of {} runs", row.value, row.n);
}

// --- C16

Answer judge_c16(const Rows& rows) {
    constexpr double grace_ms = 500;
    double broken = 0;
    bool zookeeper = false;
    std::map<std::string, double> longest;
    std::string slow;
    for (const Row* row : find_all(rows, {"C16"})) {
        const bool exclusion = row->metric.starts_with(two_holders) ||
                               row->metric.starts_with("granted before the promised time was over");
        if (exclusion) broken += row->value;
        if (row->metric.starts_with("runs in which nobody was granted the lock"))
            append(slow, fmt::format("{} not at all in {}, its holder was stopped inside a "
                                     "transaction",
                                     label(*row), of_runs(*row)));
        if (!row->metric.starts_with("time until the next holder")) continue;
        zookeeper = zookeeper || row->backend == "zookeeper";
        double& most = longest[label(*row)];
        most = std::max(most, row->max);
        if (row->max > row->x + grace_ms)
            append(slow, fmt::format("{} {} {:.0f} ms", label(*row),
                                     row->metric.substr(row->metric.find(':') + 2), row->max));
    }
    if (!zookeeper) return {};
    std::string words;
    for (const auto& [who, most] : longest)
        append(words, fmt::format("{} {:.0f} ms", who, most));
    const double ttl = find(rows, {"C16", "zookeeper"})->x;
    auto figure =
        fmt::format("with a ttl of {:.0f} ms the next holder came after at most: {}", ttl, words);
    if (broken > 0) return {Finding::refuted, figure + "; it came while the first one held"};
    if (!slow.empty())
        return {Finding::only_if,
                figure + "; holds only if longer than ttl + 500 ms counts: " + slow};
    return {Finding::confirmed, figure + "; never while the first one held"};
}

// --- C4

Answer judge_c4(const Rows& rows) {
    constexpr double clearly = 1.5;
    std::string words;
    int dearer = 0, compared = 0;
    for (const char* metric :
         {"acquire + release, p50", "CPU of the servers", "requests per acquire + release"}) {
        const Row* one = find(rows, {"C4", "redis", "plain", metric});
        const Row* five = find(rows, {"C4", "redlock", "no token", metric});
        if (one == nullptr || five == nullptr || one->value <= 0) continue;
        ++compared;
        const double ratio = five->value / one->value;
        dearer += ratio >= clearly ? 1 : 0;
        append(words, fmt::format("{} {:.1f} x ({:.1f} against {:.1f} {})", metric, ratio,
                                  five->value, one->value, one->unit));
    }
    if (compared < 3) return {};
    const std::string figure = "the documents' two commands on five nodes over one: " + words;
    if (dearer == compared) return {Finding::confirmed, figure};
    if (dearer == 0) return {Finding::refuted, figure};
    return {Finding::only_if, figure + ": holds only if all of it counts"};
}

// --- C7

Answer judge_c7(const Rows& rows) {
    std::map<std::string, double> lines;
    std::string words;
    for (const Row* row : find_all(rows, {"C7", {}, {}, "lines of code"})) {
        lines[row->backend] = row->value;
        append(words, fmt::format("{} {:.0f}", row->backend, row->value));
    }
    for (const char* needed : {"zookeeper", "redis", "sqlite", "postgresql"})
        if (!lines.contains(needed)) return {};
    std::string requests;
    for (const Row* row : find_all(rows, {"C7", {}, "default", "requests per acquire + release"}))
        append(requests, fmt::format("{} {:.1f}", row->backend, row->value));
    const auto figure =
        fmt::format("lines of code: {}; requests per acquire + release: {}", words, requests);
    double larger = std::max(lines["sqlite"], lines["postgresql"]);
    double smaller = std::min(lines["sqlite"], lines["postgresql"]);
    if (lines.contains("mysql")) {
        larger = std::max(larger, lines["mysql"]);
        smaller = std::min(smaller, lines["mysql"]);
    }
    const double least = std::min(lines["zookeeper"], lines["redis"]);
    if (least > 1.2 * larger) return {Finding::confirmed, figure};
    if (least > 1.2 * smaller)
        return {Finding::only_if,
                figure + ": holds only if the database is the file of one machine"};
    return {Finding::refuted, figure};
}

// --- Two holders, in set-ups that are said to be unsafe and in those that are not

struct SetUps {
    std::size_t unsafe = 0, caught = 0, safe = 0, broken = 0;
    std::string words;
};

SetUps look(const Rows& rows, std::string_view scenario, const char* backend,
            std::initializer_list<const char*> unsafe, std::initializer_list<const char*> safe) {
    SetUps seen;
    for (const char* variant : unsafe)
        if (const Row* row = find(rows, {scenario, backend, variant, two_holders})) {
            ++seen.unsafe;
            seen.caught += caught(*row) ? 1 : 0;
            append(seen.words, fmt::format("{}: {}", variant, of_runs(*row)));
        }
    for (const char* variant : safe)
        if (const Row* row = find(rows, {scenario, backend, variant, two_holders})) {
            ++seen.safe;
            seen.broken += row->value > 0 ? 1 : 0;
            append(seen.words, fmt::format("{}: {}", variant, of_runs(*row)));
        }
    return seen;
}

/// "; tokens went back: cut 1 of 1 runs"
std::string tokens_back(const Rows& rows, std::string_view scenario) {
    std::string words;
    for (const Row* row : find_all(rows, {scenario, {}, {}, token_back}))
        if (row->value > 0) append(words, fmt::format("{}: {}", row->variant, of_runs(*row)));
    return words.empty() ? "; no token went back" : "; a token went back with " + words;
}

Answer judge_c13(const Rows& rows) {
    const SetUps seen =
        look(rows, "C13", "redis",
             {"cut, then promoted", "cut, then promoted, min-replicas-to-write 1, asked at once"},
             {"replicated, then promoted", "cut, then promoted, min-replicas-to-write 1",
              "replicated, then promoted, min_replicas_ack 1",
              "cut, then promoted, min_replicas_ack 1"});
    if (seen.unsafe == 0 || seen.safe == 0) return {};
    const auto figure = "two holders with " + seen.words + tokens_back(rows, "C13");
    if (seen.caught == seen.unsafe && seen.broken == 0) return {Finding::confirmed, figure};
    return {Finding::refuted, figure};
}

Answer judge_c15(const Rows& rows) {
    const SetUps seen =
        look(rows, "C15", "redlock", {"clock jumps ahead", "emptied, durable=yes told wrongly"},
             {"no fault", "clock jumps back", "emptied, delayed restart"});
    if (seen.unsafe < 2 || seen.safe < 3) return {};
    const auto figure = "two holders with " + seen.words + tokens_back(rows, "C15");
    if (seen.broken > 0 || seen.caught == 0) return {Finding::refuted, figure};
    if (seen.caught == 1)
        return {Finding::only_if, figure + ": holds only with one of the two faults"};
    return {Finding::confirmed, figure};
}

Answer judge_c18b(const Rows& rows) {
    const SetUps seen = look(rows, "C18b", "postgresql", {"asynchronous, cut"},
                             {"synchronous, cut", "synchronous, whole"});
    if (seen.unsafe < 1 || seen.safe < 2) return {};
    const auto figure = "two holders with " + seen.words + tokens_back(rows, "C18b");
    if (seen.broken > 0) return {Finding::refuted, figure};
    if (seen.caught > 0)
        return {Finding::only_if, figure + ": holds only if the standby is synchronous"};
    return {Finding::confirmed, figure};
}

// --- C14

Answer judge_c14(const Rows& rows) {
    bool minority = true, majority = true;
    std::string words;
    for (const double killed : {1.0, 2.0, 3.0}) {
        const Row* kept =
            find(rows, {"C14", "redlock", {}, "holders that kept their lease", killed});
        const Row* share = find(rows, {"C14", "redlock", {}, "share of attempts granted", killed});
        if (kept == nullptr || share == nullptr) return {};
        const bool alive = share->value == 1 && kept->value == static_cast<double>(kept->n);
        const bool dead = share->value == 0 && kept->value == 0;
        if (killed < 3)
            minority = minority && alive;
        else
            majority = dead;
        append(words,
               fmt::format("{:.0f} killed: {:.0f} % of attempts granted, the lease kept in {}",
                           killed, 100 * share->value, of_runs(*kept)));
    }
    return {minority && majority ? Finding::confirmed : Finding::refuted, words};
}

// --- C17

Answer judge_c17(const Rows& rows) {
    const auto all = find_all(rows, {"C17", {}, {}, "leases lost"});
    if (find(rows, {"C17", "zookeeper", {}, "leases lost"}) == nullptr) return {};
    double lost_by_delay = 0, lost_without = 0;
    std::map<std::string, std::string> first;
    for (const Row* row : all) {
        if (row->x == 0) lost_without += row->value;
        if (row->backend == "zookeeper" && row->x > 0) lost_by_delay += row->value;
        std::string& words = first[label(*row)];
        if (words.empty() && row->value > 0)
            words =
                fmt::format("{} lost {} with up to {:.0f} ms", label(*row), of_runs(*row), row->x);
    }
    std::string figure;
    for (const auto& [who, words] : first)
        append(figure, words.empty() ? who + " lost none" : words);
    double both = 0;
    for (const Row* row : find_all(rows, {"C17", {}, {}, two_holders}))
        both += row->value;
    figure += fmt::format("; runs with two holders: {:.0f}", both);
    if (lost_without > 0 || lost_by_delay == 0) return {Finding::refuted, figure};
    if (both > 0) return {Finding::only_if, figure + ": and only if nobody else is let in"};
    return {Finding::confirmed, figure};
}

// --- C31

Answer judge_c31(const Rows& rows) {
    constexpr std::string_view without = "time without a holder after SIGKILL",
                               pauses = "leases lost to pauses of the process";
    std::map<std::string, std::pair<const Row*, const Row*>> ends;
    for (const Row* row : find_all(rows, {"C31", {}, {}, without})) {
        auto& [shortest, longest] = ends[label(*row)];
        if (shortest == nullptr || row->x < shortest->x) shortest = row;
        if (longest == nullptr || row->x > longest->x) longest = row;
    }
    std::string figure;
    bool dearer = !ends.empty(), safer = !ends.empty();
    for (const auto& [who, end] : ends) {
        const auto lost = [&](const Row& of) {
            return find(rows, {"C31", of.backend, of.variant, pauses, of.x});
        };
        const auto [shortest, longest] = end;
        const Row *few = lost(*longest), *many = lost(*shortest);
        if (few == nullptr || many == nullptr || shortest == longest) return {};
        dearer = dearer && longest->value >= longest->x / shortest->x / 2 * shortest->value;
        safer = safer && few->value < many->value;
        append(figure, fmt::format("{} {:.0f} ms and {:.0f} % of pauses with a ttl of {:.0f} ms, "
                                   "{:.0f} ms and {:.0f} % with {:.0f} ms",
                                   who, shortest->value, many->value, shortest->x, longest->value,
                                   few->value, longest->x));
    }
    if (ends.empty()) return {};
    figure = "without a holder after a crash, and leases lost: " + figure;
    if (dearer && safer) return {Finding::confirmed, figure};
    if (dearer || safer) return {Finding::only_if, figure + ": holds only if one side counts"};
    return {Finding::refuted, figure};
}

// --- C18

Answer judge_c18(const Rows& rows) {
    bool outlived = false, twice = false, database = false;
    std::string told, kept, forgotten;
    for (const Row* row : find_all(rows, {"C18"})) {
        const bool restarted = row->variant.ends_with("back at once");
        const bool forgets = row->variant.starts_with("memory only");
        if (row->metric == two_holders) {
            database = database || row->backend == "postgresql";
            if (restarted && forgets)
                forgotten = fmt::format("; {} {}: two holders in {}", row->backend, row->variant,
                                        of_runs(*row));
            else
                twice = twice || row->value > 0;
        }
        if (row->metric == "runs in which the holder kept its lease") {
            if (restarted)
                append(kept, label(*row) + " " + of_runs(*row));
            else
                outlived = outlived || row->value > 0;
        }
        if (row->metric == "time until the holder was told" && row->variant.ends_with("hung"))
            append(told, fmt::format("{} {:.0f} of {:.0f} ms", label(*row), row->max, row->x));
    }
    if (!database || told.empty()) return {};
    const auto figure = "a hung server ends the lease; the holder learns of it after: " + told +
                        "; the lease outlives a crash and an immediate restart: " + kept +
                        forgotten;
    return {outlived || twice ? Finding::refuted : Finding::confirmed, figure};
}

// --- C18a

Answer judge_c18a(const Rows& rows) {
    std::uint64_t runs = 0;
    double twice = 0, kept = 0;
    std::string words, lost;
    for (const Row* row : find_all(rows, {"C18a"})) {
        if (row->metric == two_holders) twice += row->value;
        if (row->metric != "runs in which the holder kept its lease") continue;
        const auto set_up = row->backend + " " + row->variant;
        if (row->value < static_cast<double>(row->n)) append(lost, set_up);
        runs += row->n;
        kept += row->value;
        append(words, fmt::format("{}: {}", set_up, of_runs(*row)));
    }
    if (runs == 0) return {};
    const auto figure = fmt::format(
        "the holder kept its lease with {}; two holders in {:.0f} of {} runs", words, twice, runs);
    if (twice > 0 || kept == 0) return {Finding::refuted, figure};
    if (!lost.empty())
        return {Finding::only_if,
                figure + ": holds only if a lease may be lost, in time, with " + lost};
    return {Finding::confirmed, figure};
}

// --- C21

Answer judge_c21(const Rows& rows) {
    const auto scores = find_all(rows, {reliability_scenario, {}, {}, score_reliability});
    const auto of = [&](const char* backend) {
        return find(rows, {reliability_scenario, backend, {}, score_reliability});
    };
    const Row *zookeeper = of("zookeeper"), *cache = of("redis");
    if (zookeeper == nullptr || cache == nullptr) return {};
    std::size_t databases = 0, behind = 0;
    for (const char* backend : {"sqlite", "postgresql", "mysql"})
        if (const Row* database = of(backend)) {
            ++databases;
            behind += cache->value < database->value ? 1 : 0;
        }
    if (databases == 0) return {};
    std::string figure;
    for (const Row* score : scores) {
        const Row* two = find(rows, {reliability_scenario, score->backend, {}, score_overlaps});
        const Row* gap = find(rows, {reliability_scenario, score->backend, {}, score_without});
        if (two == nullptr || gap == nullptr) return {};
        append(figure,
               fmt::format("{} {:.2f} (two holders in {:.0f} {}, up to {:.2f} x ttl "
                           "without one)",
                           score->backend, score->value, two->value, two->unit, gap->value));
    }
    figure = "mean rank, 1 is the best: " + figure;
    if (zookeeper->value >= cache->value || behind == 0) return {Finding::refuted, figure};
    if (behind < databases)
        return {Finding::only_if, figure + ": holds only with one of the databases"};
    return {Finding::confirmed, figure};
}

// --- C25

Answer judge_c25(const Rows& rows) {
    double two = 0;
    std::string words, late;
    for (const Row* row : find_all(rows, {"C25", {}, {}, "changes of leader with two leaders"}))
        two += row->value;
    for (const Row* row : find_all(rows, {"C25", {}, {}, "time without a leader"})) {
        append(words, fmt::format("{} {:.0f} ms", label(*row), row->max));
        if (row->max > 2 * row->x) append(late, label(*row));
    }
    if (words.empty()) return {};
    const double ttl = find(rows, {"C25", {}, {}, "time without a leader"})->x;
    const auto figure = fmt::format(
        "with a ttl of {:.0f} ms nobody led after a kill for at most: {}; two leaders in {:.0f} "
        "changes",
        ttl, words, two);
    if (two > 0) return {Finding::refuted, figure};
    if (!late.empty())
        return {Finding::only_if, figure + "; holds only if more than 2 x ttl counts: " + late};
    return {Finding::confirmed, figure};
}

// --- C30

Answer judge_c30(const Rows& rows) {
    const auto firsts = find_all(rows, {rank_scenario, {}, {}, rank_firsts});
    if (firsts.size() < 2) return {};
    double most = 0;
    std::string figure;
    for (const Row* row : firsts) {
        const auto rank = [&](const char* metric) {
            const Row* found = find(rows, {rank_scenario, row->backend, {}, metric});
            return found == nullptr ? 0 : found->value;
        };
        most = std::max(most, row->value);
        append(figure, fmt::format("{} {:.0f}, {:.0f}, {:.0f}", row->backend, rank(rank_complexity),
                                   rank(rank_performance), rank(rank_reliability)));
    }
    figure = "ranks by complexity, performance and reliability: " + figure;
    if (most >= 3) return {Finding::refuted, figure};
    if (most >= 2)
        return {Finding::only_if, figure +
                                      ": one is first at two of them, so it holds only if all "
                                      "three are asked for"};
    return {Finding::confirmed, figure};
}

// --- C24

Answer judge_c24(const Rows& rows) {
    constexpr std::string_view metric = "left per name";
    const Row* persistent = find(rows, {"C24", "zookeeper", "persistent parents", metric});
    const Row* container = find(rows, {"C24", "zookeeper", "container parents", metric});
    if (persistent == nullptr || container == nullptr) return {};
    std::string words;
    for (const Row* row : find_all(rows, {"C24", {}, {}, metric}))
        append(words, fmt::format("{} {:.2f}", label(*row), row->value));
    const auto figure =
        fmt::format("left at the server for each of {} names used once: {}", container->n, words);
    const bool pile_up = persistent->value >= 0.9, go = container->value <= 0.01;
    if (pile_up && go) return {Finding::confirmed, figure};
    if (pile_up && container->value < 0.5 * persistent->value)
        return {Finding::only_if, figure + ": holds only if the server has had time to look"};
    return {Finding::refuted, figure};
}

constexpr Rule rules[] = {
    {"C4", "If it is only for efficiency, five Redis nodes are not needed.",
     "Confirmed if the documents' two commands on five nodes cost at least 1.5 times as much as on "
     "one, in time, in CPU of the servers and in requests; only-if when in some of these.",
     judge_c4},
    {"C7", "ZooKeeper and cache locks are harder to build than a database lock.",
     "By lines of code: confirmed if both backends have at least a fifth more than each of the "
     "databases'; only-if when than the smaller of those.",
     judge_c7},
    {"C13", "A Redis primary that fails over before replicating gives the lock twice.",
     "Confirmed if with replication cut both believed in at least 9 of 10 runs, also with "
     "min-replicas-to-write where the primary was asked at once, and in none where the grant was "
     "replicated, or refused by min-replicas-to-write.",
     judge_c13},
    {"C14", "Redlock survives the loss of a minority of nodes; a majority is needed.",
     "Confirmed if with 1 and 2 of 5 nodes killed every attempt is granted and every holder keeps "
     "its lease, and with 3 none.",
     judge_c14},
    {"C15", "Redlock is not safe when a clock jumps, or a node restarts empty.",
     "Confirmed if both faults give two holders in at least 9 of 10 runs, and neither the control "
     "nor the delayed restart does in any; only-if when one of them does.",
     judge_c15},
    {"C16", "A lock is freed when its holder dies, and not before its session (its ttl) ends.",
     "Confirmed if with every backend, after SIGKILL, SIGSTOP and a cut network, the next holder "
     "comes within ttl + 500 ms and never before the time promised to the first one was over; "
     "only-if when later; refuted if earlier, or if both believed at one time.",
     judge_c16},
    {"C17", "A jittering network can cost a ZooKeeper holder its session while it works.",
     "Confirmed if its lease is never lost on a whole network, and is with some delay of up to "
     "the ttl, while never two believe; only-if when two do; refuted if none is lost.",
     judge_c17},
    {"C18", "A database lock lives and dies with the database.",
     "Confirmed if no holder keeps its lease over a server that hangs, or stays away, for longer "
     "than the ttl, and none that keeps its data ever gives the lock twice.",
     judge_c18},
    {"C18a", "A lock at several servers outlives any one of them.",
     "Confirmed if with ZooKeeper's and etcd's three servers and Redlock's five every holder keeps "
     "its lease over the loss of one, and never two believe; only-if when some lose it in time; "
     "refuted if all do, or if two believe.",
     judge_c18a},
    {"C18b", "Two databases with a standby to switch to solve that.",
     "Confirmed if no set-up gives two holders; only-if when just the asynchronous one does; "
     "refuted if a synchronous one does.",
     judge_c18b},
    {"C21", "Reliability: ZooKeeper > cache (Redis) > database.",
     "By the mean rank in set-ups with two holders, stale writes accepted and let through, and the "
     "time without a holder, all of C12 to C18b: confirmed if ZooKeeper's is better than Redis', "
     "and Redis' than each database's; only-if when than one database's; refuted otherwise.",
     judge_c21},
    {"C24", "Lock parents pile up unless they are container nodes.",
     "Confirmed if persistent parents leave at least 0.9 nodes for each name used once, and "
     "containers none after the server has looked.",
     judge_c24},
    {"C25", "The same recipe elects a leader.",
     "Confirmed if with every backend another process leads within 2 x ttl of each kill of the "
     "leader, and never two at once; only-if when later; refuted if two do.",
     judge_c25},
    {"C30", "Complexity, reliability and performance cannot all be had.",
     "By the ranks in lines of code (C7), p50 alone (C1) and reliability (C21): confirmed if no "
     "backend is first, or first with others, at two of them; only-if when one is at two; refuted "
     "if one is at all three.",
     judge_c30},
    {"C31",
     "A longer ttl keeps everybody waiting for longer after a crash, and survives longer "
     "pauses.",
     "Confirmed if with every backend, from the shortest to the longest ttl, the time without a "
     "holder after SIGKILL grows at least half as much as the ttl, and fewer leases are lost to "
     "pauses of the process; only-if when just one of these.",
     judge_c31},
};

}  // namespace

std::span<const Rule> rules_of_faults() {
    return rules;
}

}  // namespace holdfast::bench
