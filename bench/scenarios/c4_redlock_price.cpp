// C4: what five Redis nodes cost over one, for the same lock.
#include "floors/server_calls.hpp"
#include "measure/cpu.hpp"
#include "measure/rounds.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C4";

/// One way to lock, and the servers behind it.
struct Way {
    const Deployment* deployment;
    std::vector<lab::RedisServer*> servers;
    std::optional<Client> client;
    std::unique_ptr<Lock> lock;

    void cycle() {
        auto lease = lock->acquire();
        if (!lease) check(lease.error(), "acquire");
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("a release was not answered");
    }
};

struct Cost {
    double requests = 0, server_us = 0, client_us = 0;
};

Cost measure(Way& way, std::size_t cycles) {
    const auto servers = [&] {
        double ms = 0;
        for (const auto* server : way.servers)
            ms += server_calls(*server).cpu_ms;
        return ms;
    };
    const auto requests = way.client->stats().requests;
    const double server = servers(), own = own_cpu_ms();
    for (std::size_t i = 0; i < cycles; ++i)
        way.cycle();
    const double n = static_cast<double>(cycles);
    const double client_us = 1000 * (own_cpu_ms() - own) / n;
    return {static_cast<double>(way.client->stats().requests - requests) / n,
            1000 * (servers() - server) / n, client_us};
}

std::vector<std::shared_ptr<Way>> ways(Bench& bench) {
    std::vector<std::shared_ptr<Way>> all;
    for (const Deployment& d : bench.site.deployments()) {
        if ((d.backend != "redis" && d.backend != "redlock") || d.variant == "poll" ||
            d.variant == "durable")
            continue;
        auto way = std::make_shared<Way>();
        way->deployment = &d;
        if (d.backend == "redis")
            way->servers = {bench.site.redis()};
        else
            for (auto& node : bench.site.redlock_nodes())
                way->servers.push_back(&node);
        way->client = bench.open(d);
        way->lock = bench.lock(*way->client, d, "bench/price/" + d.variant);
        way->cycle();  // connects, loads scripts
        all.push_back(std::move(way));
    }
    return all;
}

void run(Bench& bench) {
    auto all = ways(bench);
    std::vector<Contender> contenders;
    for (const auto& way : all)
        contenders.push_back({way->deployment->backend, way->deployment->variant, [way] {
                                  way->cycle();
                                  return std::size_t{1};
                              }});
    const RoundPlan plan{id, bench.options.pick(3, 7, 15), bench.options.pick(0.05, 0.15, 0.3), 10};
    const auto measured = measure_rounds(bench, plan, contenders);
    for (const auto& way : all) {
        const auto* m = find(measured, way->deployment->backend, way->deployment->variant);
        if (m == nullptr || m->failed) continue;
        Row row;
        row.scenario = id;
        row.backend = m->backend;
        row.variant = m->variant;
        row.n = m->all.count();
        row.unit = "us";
        row.metric = "acquire + release, p50";
        row.note = "one blocking caller";
        bench.add(row, spread_of(m->p50_us));
        const auto cycles = static_cast<std::size_t>(bench.options.pick(300, 2000, 5000));
        const Cost cost = measure(*way, cycles);
        row.n = cycles;
        row.note = "of all servers together, and all clients' commands";
        row.metric = "CPU of the servers";
        bench.add_value(row, cost.server_us);
        row.note = "of the calling process";
        row.metric = "CPU of the client";
        bench.add_value(row, cost.client_us);
        row.unit = "";
        row.metric = "requests per acquire + release";
        row.note = "by the client's own count";
        bench.add_value(row, cost.requests);
    }
}

}  // namespace

Scenario c4_redlock_price() {
    return {
        id, "Redlock on five nodes against one Redis",
        "One blocking caller and a lock that nobody else wants, on one server and on five, in "
        "blocks in random order; then cycles with the CPU time of servers (INFO cpu) and client.",
        false, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            if (site.find("redlock") != nullptr && site.has_redis())
                steps.push_back({"redis against redlock, latency, requests, CPU", run});
            return steps;
        }};
}

}  // namespace holdfast::bench
