// C1, second part: how many locks a second one caller gets when it does not wait for each.
#include "floors/contenders.hpp"
#include "floors/etcd_floor.hpp"
#include "floors/mysql_floor.hpp"
#include "floors/postgresql_floor.hpp"
#include "floors/record.hpp"
#include "floors/zookeeper_floor.hpp"
#include "measure/alone.hpp"
#include "measure/in_flight.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";
constexpr const char* over_floor = "throughput over its floor in flight";
constexpr const char* over_plain = "throughput over the plain pair in flight";
constexpr const char* over_one_by_one = "throughput over one by one in flight";
constexpr std::size_t most = 1000, sqlite_callers = 100;

Contender holdfast(const Deployment& d, std::size_t n, double block) {
    auto load = std::make_shared<InFlight>(d, n, "bench/flight");
    load->run_cycles(n);  // connections and scripts come first
    *load->latency = Latency{};
    return {d.backend, d.variant, [load, block] { return load->run_for(block); }, load->latency};
}

/// Between two blocks nobody sends heartbeats for it, so each block has a session of its own.
Contender zookeeper_floor(const lab::ZooKeeperServers& servers, std::size_t n, double block) {
    auto floor = std::make_shared<ZooKeeperFloor>(servers.connect_string(), n);
    return {{},
            {},
            [floor, block] { return floor->run_for(block); },
            nullptr,
            [floor] { floor->connect(); }};
}

Contender etcd_floor(const lab::EtcdServers& servers, std::size_t n, double block) {
    auto floor = std::make_shared<EtcdFloor>(servers.port(), n);
    return {{}, {}, [floor, block] { return floor->run_for(block); }};
}

Contender mysql_batch(const lab::MariadbServer& server, std::size_t n) {
    auto floor = std::make_shared<MysqlBatch>(MariadbAddress::of(server), n);
    return {{}, {}, [floor] { return floor->cycles(); }};
}

/// One at a time, whatever is in flight elsewhere.
bool one_by_one(const Measured& m) {
    return m.variant == "floor: INSERT, DELETE" || m.variant == "one by one";
}

struct Compared {
    const char* backend;
    const char* over;
    const char* under;
    const char* metric;
};

constexpr Compared prices[] = {
    {"redis", "default", "floor: same bytes", "client overhead in flight"},
    {"redis", "plain", "floor: plain pair", "client overhead in flight"},
    {"redis", "floor: same bytes", "floor: plain pair", "price of the guarantees in flight"},
};
constexpr Compared throughputs[] = {
    {"redis", "default", "floor: same bytes", over_floor},
    {"redis", "default", "floor: plain pair", over_plain},
    {"redis", "plain", "floor: plain pair", over_floor},
    {"redlock", "default", "floor: five at once", over_floor},
    {"redlock", "no token", "floor: five at once", over_floor},
    {"zookeeper", "default", "floor: three steps", over_floor},
    {"etcd", "default", EtcdFloor::variant, over_floor},
    {"postgresql", "default", "floor: INSERT, DELETE", over_one_by_one},
    {"mysql", "default", MysqlBatch::variant, over_floor},
    {"sqlite", "default", "one by one", over_one_by_one},
};

void report(Bench& bench, const std::vector<Measured>& all, std::size_t n) {
    for (const Measured& m : all) {
        if (m.none()) continue;
        Row row = row_of(id, m, one_by_one(m) ? 1 : static_cast<double>(n));
        row.metric = "cycles per second";
        row.unit = "1/s";
        row.note = one_by_one(m) ? "one by one" : "asynchronous, so many locks in flight";
        bench.add(row, spread_of(m.rate));
    }
    Row row;
    row.scenario = id;
    row.x = static_cast<double>(n);
    row.unit = "x";
    const auto compare = [&](const Compared& c, bool time) {
        const Measured* over = find(all, c.backend, c.over);
        const Measured* under = find(all, c.backend, c.under);
        if (over == nullptr || under == nullptr) return;
        row.backend = c.backend;
        row.variant = c.over;
        row.metric = c.metric;
        row.n = over->all.count();
        row.note = std::string(time ? "time per cycle over '" : "cycles per second over '") +
                   c.under + "'";
        bench.add(row, spread_of(time ? ratios(*over, *under, Of::rate)
                                      : ratios(*under, *over, Of::rate)));
    };
    for (const Compared& c : prices)
        compare(c, true);
    if (n < sqlite_callers) return;  // with few in flight the price says it
    for (const Compared& c : throughputs)
        compare(c, false);
}

/// The floors that are there only where many are in flight.
void add_crowded_floors(
    Bench& bench, double block,
    const std::function<void(const char*, const char*, const std::function<Contender()>&)>& add) {
    Site& site = bench.site;
    if (const auto ports = site.redlock_ports(); !ports.empty())
        add("redlock", "floor: five at once", [&] { return plain_pairs(ports, most); });
    if (auto* servers = site.zookeeper())
        add("zookeeper", "floor: three steps",
            [&] { return zookeeper_floor(*servers, most, block); });
    if (auto* servers = site.etcd())
        add("etcd", EtcdFloor::variant, [&] { return etcd_floor(*servers, most, block); });
    if (auto* server = site.postgresql())
        add("postgresql", "floor: INSERT, DELETE",
            [&] { return cycles_of<PostgresqlFloor>(server->url(), true); });
    if (auto* server = site.mysql())
        add("mysql", MysqlBatch::variant, [&] { return mysql_batch(*server, most); });
}

void run(Bench& bench, std::size_t n) {
    const double block = bench.options.pick(0.08, 0.25, 0.5);
    std::vector<Contender> all;
    const auto add = [&](const std::string& backend, const std::string& variant,
                         const std::function<Contender()>& make) {
        add_contender(bench, id, all, backend, variant, make);
    };
    for (const Deployment& d : bench.site.deployments())
        if (d.variant != "poll") add(d.backend, d.variant, [&] { return holdfast(d, n, block); });
    if (auto* redis = bench.site.redis()) {
        add("redis", "floor: plain pair", [&] { return plain_pairs({redis->port()}, n); });
        if (const Deployment* d = bench.site.find("redis"))
            add("redis", "floor: same bytes",
                [&] { return replay({redis->port()}, record_in_flight(*d, *redis, n)); });
    }
    if (n == most) add_crowded_floors(bench, block, add);
    RoundPlan plan{id, bench.options.pick(5, 5, 11), block, 1};
    report(bench, measure_rounds(bench, plan, all), n);
}

/// Callers that share a commit to the disk, beside one that has it alone.
void run_sqlite(Bench& bench, const Deployment& d) {
    const double block = bench.options.pick(0.1, 0.25, 0.5);
    std::vector<Contender> all;
    add_contender(bench, id, all, d.backend, d.variant,
                  [&] { return holdfast(d, sqlite_callers, block); });
    add_contender(bench, id, all, d.backend, "one by one",
                  [&] { return alone(d, "bench/one-by-one"); });
    RoundPlan plan{id, bench.options.pick(3, 5, 11), block, 1};
    report(bench, measure_rounds(bench, plan, all), sqlite_callers);
}

}  // namespace

Scenario c1_in_flight() {
    return {id, "throughput with 1, 64 and 1000 locks in flight, one caller",
            "Different names, acquired and released by callbacks; the floor keeps as many requests "
            "unanswered on bare connections, and one floor replays what Holdfast sent under the "
            "same load, recorded with MONITOR. MariaDB's sends a packet of updates for 1000 names, "
            "one that takes and one that frees. PostgreSQL's, and SQLite's with 100 callers, are "
            "one by one.",
            true, [](const Options&, const Site& site) {
                std::vector<Step> steps;
                for (const std::size_t n : {std::size_t{1}, std::size_t{64}, most})
                    steps.push_back(
                        {"in flight n=" + std::to_string(n), [n](Bench& bench) { run(bench, n); }});
                if (const Deployment* d = site.find("sqlite"))
                    steps.push_back({"sqlite in flight n=" + std::to_string(sqlite_callers),
                                     [d = *d](Bench& bench) { run_sqlite(bench, d); }});
                return steps;
            }};
}

}  // namespace holdfast::bench
