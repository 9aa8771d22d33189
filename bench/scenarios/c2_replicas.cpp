// C2, for Redis and PostgreSQL: what a lock costs where another server can take over.
#include <functional>
#include <holdfast/lab/postgres_servers.hpp>
#include <holdfast/lab/redis_cluster.hpp>
#include <holdfast/lab/redis_set.hpp>

#include "measure/alone.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C2";
constexpr const char* one_server = "1 server";
constexpr double servers = 3;  // with the data, of each set-up

lab::PostgresServersOptions synced() {
    lab::PostgresServersOptions options;
    options.server.fsync = true;
    return options;
}

void compare(Bench& bench, const std::vector<Deployment>& set_ups) {
    std::vector<Contender> who;
    for (const Deployment& d : set_ups)
        add_contender(bench, id, who, d.backend, d.variant,
                      [&] { return alone(d, "bench/replicas"); });
    const RoundPlan plan{id, bench.options.pick(3, 5, 11), bench.options.pick(0.04, 0.1, 0.3), 3};
    const auto measured = measure_rounds(bench, plan, who);
    for (const Measured& m : measured) {
        if (m.none()) continue;
        const bool single = m.variant == one_server;
        Row row = row_of(id, m, single ? 1 : servers);
        row.metric = "acquire + release, p50";
        row.unit = "us";
        row.note = "one blocking caller";
        bench.add(row, spread_of(m.p50_us));
        const Measured* under = find(measured, m.backend, one_server);
        if (single || under == nullptr || under->none()) continue;
        row.metric = "time over one server's";
        row.unit = "x";
        bench.add(row, spread_of(ratios(m, *under, Of::p50)));
    }
}

/// The servers of the run, and those that can take over.
void redis(Bench& bench) {
    const auto set = lab::RedisSet::start();
    const auto cluster = lab::RedisCluster::start();
    const auto with = [](const char* variant, std::string url) {
        return variant_of("redis", variant, std::move(url));
    };
    compare(
        bench,
        {with(one_server, bench.site.find("redis")->open), with("3 servers, Sentinels", set.url()),
         with("3 servers, Sentinels, 1 replica confirms", set.url() + "?min_replicas_ack=1"),
         with("3 servers, Sentinels, 2 replicas confirm", set.url() + "?min_replicas_ack=2"),
         with("cluster of 3", cluster.url())});
}

void postgresql(Bench& bench) {
    const auto set = lab::PostgresServers::start(synced());
    compare(bench, {variant_of("postgresql", one_server, bench.site.find("postgresql")->open),
                    variant_of("postgresql", "3 servers, 1 standby confirms", set.url())});
}

std::vector<Step> plan(const Options& options, const Site& site) {
    std::vector<Step> steps;
    if (options.effort == Effort::quick) return steps;  // they take long to start
    if (site.find("redis") != nullptr) steps.push_back({"redis, one server and several", redis});
    if (site.find("postgresql") != nullptr)
        steps.push_back({"postgresql, one server and several", postgresql});
    return steps;
}

}  // namespace

Scenario c2_replicas() {
    return {id, "a lock where another server can take over",
            "Acquire + release by one blocking caller at one Redis server, at three with three "
            "Sentinels (and where replicas have to confirm each grant), at a cluster of three "
            "primaries; at one PostgreSQL server and at three, of which a synchronous standby "
            "confirms each grant: interleaved, ratios taken within a round. Not in --quick.",
            false, plan};
}

}  // namespace holdfast::bench
