// C3: what one release costs when N others want the same lock: a herd, or one who is next.
#include <fmt/format.h>

#include <thread>

#include "floors/advisory_lock.hpp"
#include "floors/etcd_queue.hpp"
#include "floors/server_calls.hpp"
#include "floors/user_lock.hpp"
#include "floors/zookeeper_queue.hpp"
#include "measure/crowd.hpp"
#include "scenario.hpp"
#include "variants/broadcast.hpp"
#include "variants/zookeeper_herd.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C3";
constexpr milliseconds cap{10000};
constexpr std::size_t crowded = 100, huge = 1000;

Row base(const std::string& backend, const std::string& variant, std::size_t n) {
    Row row;
    row.scenario = id;
    row.backend = backend;
    row.variant = variant;
    row.x = static_cast<double>(n);
    return row;
}

void add(Bench& bench, Row row, const char* metric, const char* unit, double value,
         std::string note = {}) {
    row.metric = metric;
    row.unit = unit;
    row.note = std::move(note);
    bench.add_value(std::move(row), value);
}

double per(double amount, std::size_t count) {
    return amount / static_cast<double>(count);
}

/// Nobody but the one who had it got it: that is a result where the backend promises no order.
void report_times(Bench& bench, Row row, const HandOffs& seen) {
    row.n = seen.hand_offs;
    add(bench, row, "hand-offs per second", "1/s",
        static_cast<double>(seen.hand_offs) / seen.seconds);
    add(bench, row, "grants to the one who had it", "",
        1 - per(static_cast<double>(seen.hand_offs), seen.grants),
        "share of the grants: taken again at once, no hand-off");
    if (seen.hand_offs == 0) return;
    add(bench, row, "time per hand-off", "us", per(1e6 * seen.seconds, seen.hand_offs));
    add(bench, row, "hand-off p50", "us", seen.hand_off.quantile_us(0.5),
        "release called -> granted");
    add(bench, row, "hand-off p99", "us", seen.hand_off.quantile_us(0.99),
        "release called -> granted");
}

/// What ten times as many in line change; nothing when this run had no smaller crowd.
void report_growth(Bench& bench, Row row) {
    constexpr const char* time = "time per hand-off";
    const Row* few = find(bench.rows, {id, row.backend, row.variant, time, crowded});
    const Row* many = find(bench.rows, {id, row.backend, row.variant, time, huge});
    if (few == nullptr || many == nullptr) return;
    row.n = many->n;
    add(bench, row, "time per hand-off over that of 100 waiters", "x", many->value / few->value);
}

void run_holdfast(Bench& bench, const Deployment& d, std::size_t n) {
    auto* server = d.backend == "redis" && d.variant != "own" ? bench.site.redis() : nullptr;
    Crowd crowd(d, n, "bench/crowd");
    crowd.run_for(bench.options.pick(0.3, 0.5, 1.0));  // until everybody is in line
    const ServerCalls before = server ? server_calls(*server) : ServerCalls{};
    const CrowdResult result = crowd.run_for(bench.options.pick(0.8, 1.0, 6.0));
    const ServerCalls calls = server ? server_calls(*server).since(before) : ServerCalls{};
    crowd.end();
    if (result.grants == 0) throw SelfCheck("nobody was granted the lock");
    if (result.hand_offs == 0 && Bench::open(d).capabilities().has(Capability::fifo))
        throw SelfCheck("nothing was handed over");

    Row row = base(d.backend, d.variant, n);
    report_times(bench, row, result);
    if (result.hand_offs == 0) return;
    if (n == huge) report_growth(bench, row);
    row.n = result.hand_offs;
    add(bench, row, "requests per hand-off", "", per(double(result.requests), result.hand_offs),
        "requests sent by " + std::to_string(d.in_process ? 1 : clients_for(n)) +
            " clients, their own count");
    add(bench, row, "to the longest waiter", "", per(double(result.to_the_oldest), result.grants),
        "share of the grants");
    if (server == nullptr) return;
    const bool sets_by_clients = d.variant == "plain";
    add(bench, row, "requests at the server per hand-off", "",
        per(double(calls.scripts + (sets_by_clients ? calls.sets : 0)), result.hand_offs),
        "INFO commandstats, calls made inside scripts left out");
    add(bench, row, "notifications per hand-off", "",
        per(double(calls.publishes), result.hand_offs), "each to one client");
    add(bench, row, "server CPU per hand-off", "us", per(1e3 * calls.cpu_ms, result.hand_offs));
}

/// A crowd of Holdfast's and one of bare clients, block after block, in turn.
template <class Floor>
void run_beside(Bench& bench, const Deployment& d, const char* variant, const std::string& note,
                Floor& floor) {
    const double block = bench.options.pick(0.2, 0.35, 1.0);
    Crowd crowd(d, crowded, "bench/crowd-beside");
    crowd.run_for(block);  // until everybody is in line
    floor.run_for(block);
    HandOffs all;
    std::vector<double> over;
    std::size_t hand_offs = 0;
    const int rounds = bench.options.pick(3, 5, 7);
    // A busy machine gets more, until there is a ratio.
    for (int round = 0;
         (round < rounds || (over.empty() && round < 10 * rounds)) && !bench.stopped(); ++round) {
        const CrowdResult ours = crowd.run_for(block);
        const HandOffs bare = floor.run_for(block);
        if (ours.hand_offs == 0 || bare.hand_offs == 0) continue;  // no ratio
        over.push_back((ours.seconds / double(ours.hand_offs)) /
                       (bare.seconds / double(bare.hand_offs)));
        hand_offs += ours.hand_offs;
        all.merge(bare);
    }
    crowd.end();
    if (over.empty()) {
        if (bench.stopped()) return;
        throw SelfCheck("nothing was handed over");
    }
    Row row = base(d.backend, variant, crowded);
    report_times(bench, row, all);
    row.n = all.hand_offs;
    add(bench, row, "requests per hand-off", "", per(double(all.requests), all.hand_offs), note);
    row = base(d.backend, d.variant, crowded);
    row.n = hand_offs;
    row.metric = "time per hand-off over its floor";
    row.unit = "x";
    row.note = std::string("over '") + variant + "', in turn";
    bench.add(std::move(row), spread_of(over));
}

void run_queue_of_nodes(Bench& bench, const Deployment& d) {
    const std::size_t sessions = clients_for(crowded);
    ZooKeeperQueue floor(bench.site.zookeeper()->connect_string(), crowded, sessions);
    run_beside(bench, d, "floor: queue of nodes",
               fmt::format("{} callers in {} bare sessions", crowded + 1, sessions), floor);
}

void run_queue_of_keys(Bench& bench, const Deployment& d) {
    EtcdQueue floor(bench.site.etcd()->port(), crowded);
    run_beside(
        bench, d, "floor: queue of keys",
        fmt::format("{} callers on one bare connection; messages to the server, also for watches",
                    crowded + 1),
        floor);
}

std::string nothing_written() {
    return fmt::format("{} bare connections, nothing is written", crowded + 1);
}

void run_advisory_queue(Bench& bench, const Deployment& d) {
    SessionQueue floor(crowded + 1,
                       [&] { return advisory_session(bench.site.postgresql()->url()); });
    run_beside(bench, d, "floor: advisory lock", nothing_written(), floor);
}

void run_user_lock_queue(Bench& bench, const Deployment& d) {
    const auto at = MariadbAddress::of(*bench.site.mysql());
    SessionQueue floor(crowded + 1, [&] { return user_lock_session(at); });
    run_beside(bench, d, "floor: GET_LOCK", nothing_written(), floor);
}

/// A herd of bare clients; `settled` is called when everybody is in it.
template <class Herd>
BroadcastResult run_herd(Bench& bench, const Row& row, Herd& herd, std::size_t n,
                         const std::function<void()>& settled) {
    herd.run_for(bench.options.pick(0.2, 0.5, 1.0));
    settled();
    const BroadcastResult result = herd.run_for(bench.options.pick(0.8, 1.2, 6.0));
    if (result.hand_offs == 0) throw SelfCheck("nothing was handed over");
    report_times(bench, row, result);
    Row more = row;
    more.n = result.hand_offs;
    add(bench, more, "requests per hand-off", "", per(double(result.requests), result.hand_offs),
        "requests sent by " + std::to_string(n + 1) + " bare clients");
    add(bench, more, "notifications per hand-off", "",
        per(double(result.notifications), result.hand_offs), "counted where they arrive");
    return result;
}

void run_broadcast(Bench& bench, std::size_t n) {
    auto& server = *bench.site.redis();
    Broadcast herd(server.port(), n);
    ServerCalls before;
    Row row = base("redis", "broadcast", n);
    const BroadcastResult result =
        run_herd(bench, row, herd, n, [&] { before = server_calls(server); });
    const ServerCalls calls = server_calls(server).since(before);
    row.n = result.hand_offs;
    add(bench, row, "requests at the server per hand-off", "",
        per(double(calls.scripts + calls.sets), result.hand_offs), "INFO commandstats");
    add(bench, row, "server CPU per hand-off", "us", per(1e3 * calls.cpu_ms, result.hand_offs));
}

void run_node_herd(Bench& bench, std::size_t n) {
    NodeHerd herd(bench.site.zookeeper()->connect_string(), n);
    run_herd(bench, base("zookeeper", "doc: one node, all watch", n), herd, n, [] {});
}

/// Ten other locks are released: what a waiter of none of them has to do with it.
void run_parent_herd(Bench& bench, const Deployment& d, std::size_t n) {
    constexpr std::size_t others = 10;
    constexpr const char* looks = "looks at a waiter per release of another lock";
    const auto result = parent_herd(bench.site.zookeeper()->connect_string(), n, others);
    const double waits = static_cast<double>(n * others);
    Row row = base("zookeeper", "doc: parent of all locks watched", n);
    row.n = others;
    add(bench, row, looks, "", double(result.requests) / waits, "requests of the waiters");
    add(bench, row, "events at a waiter per release of another lock", "",
        double(result.notifications) / waits);

    const Client holder = bench.open(d), waiter = bench.open(d);
    std::vector<Lease> held;
    for (std::size_t i = 0; i <= others; ++i) {
        auto lease =
            bench.lock(holder, d, "bench-herds-" + std::to_string(i))->acquire({.wait = cap});
        if (!lease) check(lease.error(), "herd: acquire");
        held.push_back(std::move(*lease));
    }
    std::stop_source stop;
    std::uint64_t attempts = 0;
    {
        const std::jthread waits_for_the_first(
            [&] { (void)bench.lock(waiter, d, "bench-herds-0")->acquire({}, stop.get_token()); });
        lab::wait_until([&] { return waiter.stats().attempts > 0; }, lab::default_cap, "a waiter");
        const auto before = waiter.stats().attempts;
        for (std::size_t i = 1; i <= others; ++i)
            held[i].release();
        attempts = waiter.stats().attempts - before;
        stop.request_stop();
    }
    row = base(d.backend, d.variant, n);
    row.n = others;
    add(bench, row, looks, "", double(attempts) / others, "attempts of one waiting client");
}

std::vector<Step> plan(const Options& options, const Site& site) {
    std::vector<std::size_t> crowds{2, 10, crowded};
    if (options.effort == Effort::full) crowds.push_back(huge);
    std::vector<Step> steps;
    for (const std::size_t n : crowds) {
        const auto number = " hand-off n=" + std::to_string(n);
        for (const Deployment& d : site.deployments())
            if (d.variant != "durable" && d.variant != "plain")
                steps.push_back(
                    {d.label() + number, [d, n](Bench& bench) { run_holdfast(bench, d, n); }});
        const Deployment* zookeeper = site.find("zookeeper");
        if (zookeeper != nullptr)
            steps.push_back({"zookeeper one node, all watch" + number,
                             [n](Bench& bench) { run_node_herd(bench, n); }});
        if (zookeeper != nullptr && n == crowded)
            steps.push_back({"zookeeper beside a bare queue of nodes" + number,
                             [d = *zookeeper](Bench& bench) { run_queue_of_nodes(bench, d); }});
        if (const auto* d = site.find("etcd"); d != nullptr && n == crowded)
            steps.push_back({"etcd beside a bare queue of keys" + number,
                             [d = *d](Bench& bench) { run_queue_of_keys(bench, d); }});
        if (const auto* d = site.find("postgresql"); d != nullptr && n == crowded)
            steps.push_back({"postgresql beside bare advisory locks" + number,
                             [d = *d](Bench& bench) { run_advisory_queue(bench, d); }});
        if (const auto* d = site.find("mysql"); d != nullptr && n == crowded)
            steps.push_back({"mysql beside bare GET_LOCK" + number,
                             [d = *d](Bench& bench) { run_user_lock_queue(bench, d); }});
        if (zookeeper != nullptr && n == crowded)
            steps.push_back({"zookeeper parent of all locks watched" + number,
                             [d = *zookeeper, n](Bench& bench) { run_parent_herd(bench, d, n); }});
        if (site.has_redis())
            steps.push_back(
                {"redis broadcast" + number, [n](Bench& bench) { run_broadcast(bench, n); }});
    }
    return steps;
}

}  // namespace

Scenario c3_hand_off() {
    return {id, "hand-off of one lock among 2, 10 and 100 waiters (1000 with --full)",
            "N + 1 callers acquire one lock, release it at once and queue again; a hand-off is a "
            "grant to "
            "another caller than the one before. Holdfast's callers are "
            "in up to 10 clients, the broadcast variant with two bare connections each, the "
            "ZooKeeper node that all watch with a bare session each. With 100 waiters the queue of "
            "nodes by bare ZooKeeper clients, PostgreSQL's advisory lock and MariaDB's GET_LOCK by "
            "bare "
            "connections, take turns with Holdfast's callers. Requests are those of "
            "clients; what scripts call inside the server is not counted.",
            true, plan};
}

}  // namespace holdfast::bench
