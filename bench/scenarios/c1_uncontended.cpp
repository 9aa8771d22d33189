// C1, first part: what one caller pays for one lock that nobody else wants.
#include "floors/contenders.hpp"
#include "floors/etcd_floor.hpp"
#include "floors/mysql_floor.hpp"
#include "floors/postgresql_floor.hpp"
#include "floors/record.hpp"
#include "floors/sqlite_floor.hpp"
#include "floors/zookeeper_floor.hpp"
#include "measure/alone.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";

std::vector<Contender> contenders(Bench& bench) {
    std::vector<Contender> all;
    const auto add = [&](const char* backend, const std::string& variant,
                         const std::function<Contender()>& make) {
        add_contender(bench, id, all, backend, variant, make);
    };
    for (const Deployment& d : bench.site.deployments())
        if (d.variant != "poll")  // the same as the default where nobody waits
            add(d.backend.c_str(), d.variant, [&] { return alone(d, "bench/uncontended"); });
    if (auto* redis = bench.site.redis()) {
        add("redis", "floor: two round trips",
            [&] { return replay({redis->port()}, bare_round_trips(false)); });
        add("redis", "floor: plain pair", [&] { return plain_pairs({redis->port()}); });
        if (const Deployment* d = bench.site.find("redis"))
            add("redis", "floor: same bytes",
                [&] { return replay({redis->port()}, record_one_cycle(*d, *redis)); });
    }
    if (auto* redis = bench.site.durable_redis()) {
        add("redis", "floor: two writes, durable",
            [&] { return replay({redis->port()}, bare_round_trips(true)); });
        add("redis", "floor: plain pair, durable", [&] { return plain_pairs({redis->port()}); });
    }
    if (bench.site.find("sqlite") != nullptr)
        add("sqlite", "floor: bare sqlite3", [&] {
            return cycles_of<SqliteFloor>(bench.site.folder() / "floor.db",
                                          set_up_of(bench.site.sqlite_file()));
        });
    if (const auto ports = bench.site.redlock_ports(); !ports.empty())
        add("redlock", "floor: five at once", [&] { return plain_pairs(ports); });
    if (auto* server = bench.site.postgresql()) {
        add("postgresql", "floor: INSERT, DELETE",
            [&] { return cycles_of<PostgresqlFloor>(server->url(), true); });
        add("postgresql", "floor: INSERT, DELETE not synced",
            [&] { return cycles_of<PostgresqlFloor>(server->url(), false); });
    }
    if (auto* server = bench.site.mysql())
        add("mysql", MysqlFloor::variant,
            [&] { return cycles_of<MysqlFloor>(MariadbAddress::of(*server)); });
    if (auto* servers = bench.site.zookeeper())
        add("zookeeper", "floor: three steps",
            [&] { return cycles_of<ZooKeeperFloor>(servers->connect_string()); });
    if (const Deployment* d = bench.site.find("etcd"); d != nullptr && bench.site.etcd() != nullptr)
        add("etcd", EtcdFloor::variant, [&] {
            must_send_the_same(*d);
            return cycles_of<EtcdFloor>(bench.site.etcd()->port());
        });
    return all;
}

struct Compared {
    const char* backend;
    const char* over;
    const char* under;
    const char* metric;
    const char* note;
};

constexpr Compared comparisons[] = {
    {"redis", "plain", "floor: plain pair", "client overhead", "the documents' two commands"},
    {"redis", "default", "floor: same bytes", "client overhead", "the very same requests"},
    {"redis", "floor: same bytes", "floor: plain pair", "price of the guarantees",
     "what token, order and deadline cost at the server"},
    {"redis", "default", "floor: plain pair", "whole price", "both together"},
    {"redis", "durable", "floor: plain pair, durable", "whole price", "every write on disk"},
    {"sqlite", "default", "floor: bare sqlite3", "client overhead", "two transactions"},
    {"redlock", "no token", "floor: five at once", "whole price",
     "the documents' two commands at five nodes"},
    {"redlock", "default", "floor: five at once", "whole price", "the same, and a token"},
    {"postgresql", "default", "floor: INSERT, DELETE", "whole price",
     "both synced, where Holdfast's release is not"},
    {"postgresql", "default", "floor: INSERT, DELETE not synced", "whole price, durable alike",
     "as durable as Holdfast"},
    {"mysql", "default", MysqlFloor::variant, "whole price", "two transactions, both synced"},
    {"zookeeper", "default", "floor: three steps", "whole price",
     "create, list, delete one after another"},
    {"etcd", "default", EtcdFloor::variant, "client overhead", "the same requests"},
};

/// A floor that is slow is no floor, and every ratio over it would flatter.
void check_floor(Bench& bench, const std::vector<Measured>& all) {
    const Measured* over = find(all, "redis", "floor: plain pair");
    const Measured* under = find(all, "redis", "floor: two round trips");
    if (over == nullptr || under == nullptr) return;
    const Spread ratio = spread_of(ratios(*over, *under, Of::p50));
    Row row;
    row.scenario = id;
    row.backend = "redis";
    row.variant = "floor: plain pair";
    row.metric = "floor over two round trips";
    row.unit = "x";
    row.n = over->all.count();
    row.note = "self-check: at most 1.5";
    row.status = ratio.median <= 1.5 ? Status::ok : Status::failed;
    bench.add(std::move(row), ratio);
}

void report(Bench& bench, const std::vector<Measured>& all) {
    for (const Measured& m : all) {
        if (m.none()) continue;
        Row row = row_of(id, m, 1);
        row.unit = "us";
        row.note = "one blocking caller, acquire + release";
        row.metric = "p50";
        bench.add(row, spread_of(m.p50_us));
        for (const auto& [metric, q] :
             {std::pair{"p10", 0.1}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}) {
            row.metric = metric;
            bench.add_value(row, m.all.quantile_us(q));
        }
    }
    for (const Compared& c : comparisons) {
        const Measured* over = find(all, c.backend, c.over);
        const Measured* under = find(all, c.backend, c.under);
        if (over == nullptr || under == nullptr) continue;
        Row row;
        row.scenario = id;
        row.backend = c.backend;
        row.variant = c.over;
        row.metric = c.metric;
        row.unit = "x";
        row.n = over->all.count();
        row.note = std::string("over '") + c.under + "': " + c.note;
        const Spread ratio = spread_of(ratios(*over, *under, Of::p50));
        if (row.metric == "client overhead" && ratio.max < 0.9) {
            row.note += "; self-check: slower than Holdfast in every round, so no floor";
            row.status = Status::failed;
        }
        bench.add(std::move(row), ratio);
    }
    check_floor(bench, all);
}

void run(Bench& bench) {
    auto all = contenders(bench);
    RoundPlan plan{id, bench.options.pick(5, 9, 15), bench.options.pick(0.08, 0.15, 0.5), 10};
    report(bench, measure_rounds(bench, plan, all));
}

}  // namespace

Scenario c1_uncontended() {
    return {id, "uncontended acquire + release, one blocking caller",
            "One lock that nobody else wants, acquired and released again and again by one thread, "
            "in blocks interleaved with raw floors in random order; medians over rounds, ratios "
            "taken within a round.",
            true, [](const Options&, const Site&) {
                return std::vector<Step>{{"uncontended, all backends and floors interleaved", run}};
            }};
}

}  // namespace holdfast::bench
