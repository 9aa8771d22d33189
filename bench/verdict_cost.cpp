// Verdicts on what locks cost where nothing fails: time, requests, and who is woken.
#include <fmt/format.h>

#include <algorithm>

#include "verdict_rule.hpp"

namespace holdfast::bench {

namespace {

// --- C1

/// "; 1000 in flight: redis 40000, ... a second": nothing is decided by it.
std::string words_of_throughput(const Rows& rows) {
    std::string words;
    for (const char* backend : {"redis", "zookeeper", "postgresql", "mysql", "sqlite"})
        if (const Row* rate = find(rows, {"C1", backend, "default", "cycles per second", 1000}))
            words += fmt::format("{}{} {:.0f}",
                                 words.empty() ? "; a second with 1000 in flight: " : ", ", backend,
                                 rate->value);
    return words;
}

Answer judge_c1(const Rows& rows) {
    const auto p50 = [&](const char* backend, const char* variant = "default") {
        return find(rows, {"C1", backend, variant, "p50"});
    };
    const Row *redis = p50("redis"), *durable = p50("redis", "durable");
    const Row *zookeeper = p50("zookeeper"), *sqlite = p50("sqlite"), *sql = p50("postgresql");
    if (redis == nullptr || durable == nullptr || zookeeper == nullptr || sqlite == nullptr ||
        sql == nullptr)
        return {};
    std::vector<const Row*> databases{sqlite, sql};
    if (const Row* mysql = p50("mysql")) databases.push_back(mysql);
    std::string of_databases;
    for (const Row* row : databases)
        of_databases += fmt::format("{}{} {:.0f} us", of_databases.empty() ? "" : ", ",
                                    row->backend, row->value);
    const auto figure = fmt::format(
                            "p50 of acquire + release: redis {:.0f} us, with every write on disk "
                            "{:.0f} us; zookeeper {:.0f} us; {}",
                            redis->value, durable->value, zookeeper->value, of_databases) +
                        words_of_throughput(rows);
    constexpr double clearly = 0.9;  // less is noise: both then wait for the same disk
    const auto ahead_of = [](const Row& one, const Row& other) {
        return one.value <= clearly * other.value;
    };
    const auto beats_all = [&](const Row& cache) {
        return ahead_of(cache, *zookeeper) &&
               std::all_of(databases.begin(), databases.end(),
                           [&](const Row* row) { return ahead_of(cache, *row); });
    };
    const auto ahead = static_cast<std::size_t>(
        std::count_if(databases.begin(), databases.end(),
                      [&](const Row* row) { return ahead_of(*row, *zookeeper); }));
    if (ahead == databases.size())
        return {Finding::refuted, figure + ": ZooKeeper is behind every database"};
    if (!beats_all(*redis)) return {Finding::refuted, figure};
    if (ahead > 0) return {Finding::only_if, figure + ": holds only with some of the databases"};
    if (!beats_all(*durable))
        return {Finding::only_if,
                figure + ": holds only if a crash of the Redis server may lose the lock"};
    return {Finding::confirmed, figure};
}

// --- C2

Answer judge_c2(const Rows& rows) {
    const auto of = [&](const char* metric) {
        auto found = find_all(rows, {"C2", "zookeeper", {}, metric});
        std::sort(found.begin(), found.end(),
                  [](const Row* a, const Row* b) { return a->x < b->x; });
        return found;
    };
    const auto writes = of("create + delete, p50"), reads = of("read, p50");
    const auto locks = of("acquire + release, p50");
    if (writes.size() < 2 || reads.size() != writes.size() || locks.size() != writes.size())
        return {};
    std::string figure;
    bool dearer = true, everywhere = true;
    const Row* before = nullptr;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        const Row* cpu = find(rows, {"C2", "zookeeper", writes[i]->variant,
                                     "CPU of all servers, each", writes[i]->x});
        if (cpu == nullptr) return {};
        figure += fmt::format(
            "{}{:.0f} server{}: acquire + release {:.0f} us, create + delete {:.0f} us and {:.0f} "
            "us of CPU, a read {:.0f} us",
            i == 0 ? "" : "; ", writes[i]->x, i == 0 ? "" : "s", locks[i]->value, writes[i]->value,
            cpu->value, reads[i]->value);
        if (i > 0) {
            dearer = dearer && writes[i]->value >= 1.2 * writes[0]->value &&
                     locks[i]->value >= 1.2 * locks[0]->value;
            everywhere = everywhere && cpu->value >= 1.2 * before->value;
        }
        before = cpu;
    }
    if (const auto rates = of("cycles per second, 64 in flight"); !rates.empty()) {
        figure += "; 64 in flight: ";
        for (const Row* row : rates)
            figure += fmt::format("{}{:.0f}", row == rates.front() ? "" : ", ", row->value);
        figure += " a second";
    }
    const double by_writes = writes.back()->value / writes.front()->value;
    const double by_reads = reads.back()->value / reads.front()->value;
    if (!dearer && !everywhere) return {Finding::refuted, figure};
    if (!dearer) return {Finding::only_if, figure + ": holds only if CPU counts, not time"};
    if (!everywhere) return {Finding::only_if, figure + ": holds only if time counts, not CPU"};
    if (by_reads >= by_writes)
        return {Finding::only_if, figure + ": holds only if reads, which cost as much more, count"};
    return {Finding::confirmed, figure};
}

// --- C3

/// A herd at its largest crowd against the queue of the same server; empty when not measured.
Answer judge_herd(const Rows& rows, const char* backend, const char* variant, double limit) {
    const Row* herd = nullptr;
    for (const Row* row : find_all(rows, {"C3", backend, variant, "requests per hand-off"}))
        if (herd == nullptr || row->x > herd->x) herd = row;
    const Row* one = herd == nullptr
                         ? nullptr
                         : find(rows, {"C3", backend, "default", "requests per hand-off", herd->x});
    if (one == nullptr) return {};
    const auto figure = fmt::format(
        "{} with {:.0f} waiters: a hand-off costs {:.1f} requests when all are notified, {:.1f} "
        "when one is",
        backend, herd->x, herd->value, one->value);
    const bool everybody = herd->value >= herd->x / 2;
    if (everybody && one->value <= limit) return {Finding::confirmed, figure};
    if (everybody && one->value < herd->value / 2)
        return {Finding::only_if,
                fmt::format("{}: one is woken, but holds only if more than {:.0f} requests count "
                            "as one",
                            figure, limit)};
    return {Finding::refuted, figure};
}

/// Nothing is claimed about it, so nothing depends on it.
std::string words_of_bursts(const Rows& rows) {
    std::string words;
    for (const Row* all :
         find_all(rows, {"C3", {}, {}, "burst: time until all survivors were served"})) {
        const Row* requests =
            find(rows, {"C3", all->backend, all->variant, "burst: requests per survivor", all->x});
        if (requests == nullptr) continue;
        words += words.empty() ? fmt::format(
                                     "; when half of {:.0f} waiters are killed at once, the others "
                                     "are all served after: ",
                                     all->x)
                               : ", ";
        words += fmt::format("{} {:.0f} ms ({:.1f} requests each)", label(*all), all->value,
                             requests->value);
    }
    return words;
}

Answer judge_hand_off(const Rows& rows) {
    Answer redis = judge_herd(rows, "redis", "broadcast", 3);
    // Making a node, listing, watching and deleting are requests of their own.
    const Answer zookeeper = judge_herd(rows, "zookeeper", "doc: one node, all watch", 6);
    if (redis.finding == Finding::not_measured) return zookeeper;
    if (zookeeper.finding == Finding::not_measured) return redis;
    if (redis.finding == Finding::confirmed || zookeeper.finding == Finding::refuted)
        redis.finding = zookeeper.finding;
    redis.figure += "; " + zookeeper.figure;
    const Row* told = find(rows, {"C3", "zookeeper", "doc: parent of all locks watched",
                                  "events at a waiter per release of another lock"});
    if (told != nullptr)
        redis.figure += fmt::format(
            "; a client that watches the parent of all locks is notified {:.1f} times per release "
            "of another lock",
            told->value);
    return redis;
}

Answer judge_c3(const Rows& rows) {
    Answer answer = judge_hand_off(rows);
    if (answer.finding != Finding::not_measured) answer.figure += words_of_bursts(rows);
    return answer;
}

// --- C5

struct Compared {
    const char* metric;
    const char* words;
    const char* unit;
    bool less_is_better;
};
constexpr Compared compared[] = {
    {"requests per grant", "requests per grant", "", true},
    {"time to grant p99", "until 99 % are granted", " ms", true},
    {"guarded jobs per second", "guarded jobs per second", "", false},
};

Answer judge_c5(const Rows& rows) {
    const auto at = [&](const Row& like, std::string_view metric) {
        return find(rows, {"C5", like.backend, like.variant, metric, like.x});
    };
    const Row* waits = nullptr;
    for (const Row* row : find_all(rows, {"C5", "redis", "waits", compared[0].metric}))
        if (waits == nullptr || row->x > waits->x) waits = row;
    if (waits == nullptr) return {};
    std::string figure, gains;
    bool every_one_pays = true, measured = false;
    for (const Row* sleeps : find_all(rows, {"C5", "redis", {}, compared[0].metric, waits->x})) {
        if (!sleeps->variant.starts_with("doc: sleeps")) continue;
        bool pays = false;
        for (const Compared& c : compared) {
            const Row *one = at(*waits, c.metric), *other = at(*sleeps, c.metric);
            if (one == nullptr || other == nullptr) return {};
            const double better = c.less_is_better ? one->value : other->value;
            const double worse = c.less_is_better ? other->value : one->value;
            pays = pays || worse >= 2 * better;
            if (better >= 2 * worse)
                gains += fmt::format("{}{} with '{}'", gains.empty() ? "" : ", ", c.words,
                                     sleeps->variant);
            figure += fmt::format("{}{:.1f}{} {}", &c == compared ? "" : ", ", other->value, c.unit,
                                  c.words);
        }
        figure += " with '" + sleeps->variant + "'; ";
        every_one_pays = every_one_pays && pays;
        measured = true;
    }
    if (!measured) return {};
    std::string queue;
    for (const Compared& c : compared)
        queue += fmt::format("{}{:.1f}{}", queue.empty() ? "" : ", ", at(*waits, c.metric)->value,
                             c.unit);
    figure = fmt::format("redis, {:.0f} callers: {}in line {}", waits->x, figure, queue);
    for (const Row* row : find_all(rows, {"C5", {}, "waits", compared[0].metric, waits->x}))
        if (const Row* p99 = at(*row, compared[1].metric); row != waits && p99 != nullptr)
            figure += fmt::format("; {} in line {:.1f}, {:.1f}{}", row->backend, row->value,
                                  p99->value, compared[1].unit);
    for (const char* variant : {"fails at once", "defers"}) {
        const Row* vain = find(rows, {"C5", "redis", variant, "asked in vain", waits->x});
        const Row* other = find(rows, {"C5", "redis", variant, "other jobs per second", waits->x});
        const Row* same = find(rows, {"C5", "redis", "waits", "other jobs per second", waits->x});
        if (other != nullptr && same != nullptr)
            figure += fmt::format(
                "; with redis a caller that {} does {:.1f} times as much other work as one that "
                "waits",
                variant, other->value / std::max(same->value, 1.0));
        if (vain != nullptr)
            figure += fmt::format(", and asks in vain in {:.0f} %", 100 * vain->value);
    }
    if (!every_one_pays) return {Finding::refuted, figure};
    if (!gains.empty())
        return {Finding::only_if, figure + ": holds only if these count less: " + gains};
    return {Finding::confirmed, figure};
}

// --- C5a

Answer judge_c5a(const Rows& rows) {
    constexpr std::string_view metric = "requests per waiter and second";
    const Row* told = find(rows, {"C5a", "redis", "default", metric});
    const Row* poll = find(rows, {"C5a", "redis", "50 ms poll", metric});
    if (told == nullptr || poll == nullptr) return {};
    const auto figure = fmt::format(
        "per waiter and second: {:.2f} requests when notified of the release, {:.1f} when polling "
        "every 50 ms",
        told->value, poll->value);
    if (told->value <= poll->value / 10) return {Finding::confirmed, figure};
    if (told->value < poll->value)
        return {Finding::only_if, figure + ": holds only if less than ten times less counts"};
    return {Finding::refuted, figure};
}

// --- C6

Answer judge_c6(const Rows& rows) {
    const Row* thread =
        find(rows, {"C6", "memory", "doc: a blocked thread each", "resident memory per waiter"});
    if (thread == nullptr) return {};
    std::string figure;
    bool few = true, small = true;
    for (const Row* waiters : find_all(rows, {"C6", {}, "default", "memory per waiter"})) {
        const auto of = [&](const char* metric) {
            return find(rows, {"C6", waiters->backend, "default", metric, waiters->x});
        };
        const Row *leases = of("memory per lease"), *waiting = of("threads: waiters"),
                  *holding = of("threads: leases");
        if (leases == nullptr || waiting == nullptr || holding == nullptr) return {};
        few = few && std::max(waiting->value, holding->value) <= 4;
        small = small && waiters->value <= thread->value / 2;
        figure += fmt::format("{}{}: {:.0f} bytes a lease, {:.0f} a waiter, {:.0f} threads",
                              figure.empty() ? "" : "; ", label(*waiters), leases->value,
                              waiters->value, std::max(waiting->value, holding->value));
    }
    if (figure.empty()) return {};
    figure += fmt::format("; a blocked thread keeps {:.0f} bytes resident", thread->value);
    if (few && small) return {Finding::confirmed, figure};
    if (few) return {Finding::only_if, figure + ": holds only if threads count, not memory"};
    return {Finding::refuted, figure};
}

constexpr Rule rules[] = {
    {"C1", "Performance: a cache (Redis) > ZooKeeper >= a database.",
     "By p50 alone: confirmed if Redis', even with every write on disk, is at least 10 % below "
     "ZooKeeper's and each database's, and no database's is 10 % below ZooKeeper's; only-if when "
     "one database's is, or Redis is ahead just without the disk; refuted otherwise.",
     judge_c1},
    {"C2", "ZooKeeper pays for every create and delete at the leader and its followers.",
     "Confirmed if with each larger ensemble a create + delete and a lock take at least 1.2 times "
     "as long as with one server, and the CPU of all servers grows 1.2 times from each size to the "
     "next, while the cost of a read grows less than that; only-if when just time or just CPU "
     "grows, or reads grow as much; refuted when neither does.",
     judge_c2},
    {"C3", "One key that everybody watches wakes everybody; a queue wakes one.",
     "At the largest crowd of each server: confirmed if the herd costs at least N/2 requests per "
     "hand-off and the queue at most 3 (ZooKeeper, where making, listing and deleting a node are "
     "one each: 6); only-if when the queue costs more but less than half the herd.",
     judge_c3},
    {"C5",
     "Sleeping and trying again does not suit high concurrency; fail at once, wait, or defer.",
     "With Redis and the most callers: confirmed if each sleep, short or long, is at least twice "
     "as "
     "bad as waiting in line in requests per grant, in the time until 99 % are granted or in "
     "guarded "
     "jobs per second, and in none of them twice as good; only-if when twice as good in another; "
     "refuted if some sleep is in none of them twice as bad.",
     judge_c5},
    {"C5a", "Notification costs less than polling.",
     "Confirmed if an idle notified waiter sends at most a tenth of the requests of a 50 ms poll; "
     "only-if when fewer at all.",
     judge_c5a},
    {"C6", "A waiter is a blocked thread or an event; events scale.",
     "Confirmed if with every backend 10,000 leases and 10,000 waiters of one client need at most "
     "4 threads, and a waiter at most half of what a blocked thread keeps resident; only-if when "
     "just the threads are few.",
     judge_c6},
};

}  // namespace

std::span<const Rule> rules_of_cost() {
    return rules;
}

}  // namespace holdfast::bench
