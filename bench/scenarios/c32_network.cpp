// C32: what a lock costs over a network that delays.
#include <fmt/format.h>

#include "faults/through.hpp"
#include "measure/alone.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C32";
constexpr int delays_ms[] = {0, 1, 10};

/// Ensembles of three: their links to each other are whole.
struct Ensembles {
    std::optional<lab::ZooKeeperServers> zookeeper;
    std::optional<lab::EtcdServers> etcd;
    std::vector<Deployment> deployments;

    explicit Ensembles(const Site& site) {
        const auto add = [&](const char* backend, std::string url) {
            Deployment d;
            d.backend = backend;
            d.variant = "3 servers";
            d.open = std::move(url);
            deployments.push_back(std::move(d));
        };
        if (site.find("zookeeper") != nullptr) {
            lab::ZooKeeperOptions how;
            how.count = 3;
            zookeeper = lab::ZooKeeperServers::start(how);
            add("zookeeper", zookeeper->url() + "?tick_time=100ms");
        }
        if (site.find("etcd") != nullptr) {
            lab::EtcdOptions how;
            how.count = 3;
            etcd = lab::EtcdServers::start(how);
            add("etcd", etcd->url());
        }
    }
};

void run(Bench& bench) {
    // Three servers each where there is time to start them: that is what one takes.
    std::optional<Ensembles> ensembles;
    if (bench.options.effort != Effort::quick) ensembles.emplace(bench.site);
    std::vector<Deployment> far;
    for (const Deployment& d : bench.site.deployments()) {
        const bool one_of_three = ensembles && (d.backend == "zookeeper" || d.backend == "etcd");
        if ((d.variant == "default" || d.variant == "durable") && !d.in_process &&
            d.behind_proxies && !one_of_three)
            far.push_back(d);
    }
    if (ensembles)
        far.insert(far.end(), ensembles->deployments.begin(), ensembles->deployments.end());
    std::vector<Through> through;  // outlives the clients
    through.reserve(far.size());
    std::vector<Contender> who;
    for (const Deployment& d : far) {
        through.emplace_back(d);
        add_contender(bench, id, who, d.backend, d.variant,
                      [&] { return alone(through.back().deployment, "bench-network"); });
    }
    for (const int delay : delays_ms) {
        for (Through& one : through)
            for (lab::Proxy& proxy : one.proxies)
                proxy.delay_both(milliseconds(delay));
        const RoundPlan plan{id, bench.options.pick(2, 3, 5), bench.options.pick(0.04, 0.06, 0.2),
                             3};
        for (const Measured& m : measure_rounds(bench, plan, who)) {
            if (m.none()) continue;
            Row row = row_of(id, m, delay);
            row.metric = "p50";
            row.unit = "us";
            row.note = m.backend == "sqlite" ? "a file: no network" : "x: delay each way, ms";
            bench.add(row, spread_of(m.p50_us));
        }
        if (delay == 0) continue;
        for (Through& one : through)
            for (lab::Proxy& proxy : one.proxies)
                if (proxy.counters().delayed == 0 && proxy.counters().connections_open > 0)
                    throw SelfCheck("c32: nothing was delayed: " + one.deployment.label());
    }
}

}  // namespace

Scenario c32_network() {
    return {
        id, "what a network changes",
        "C1's cycle by one blocking caller through a proxy in front of each server, which holds "
        "each piece back for 0, 1 and 10 ms, each way. Three ZooKeeper servers and three etcd "
        "members as well (not with --quick); the links among servers are as they are.",
        false, [](const Options&, const Site&) {
            return std::vector<Step>{{"cost over a delay of 0, 1 and 10 ms", run}};
        }};
}

}  // namespace holdfast::bench
