// C2, for etcd: what a lock costs at one member, and at clusters of three and five.
#include <fmt/format.h>

#include <deque>

#include "measure/cpu.hpp"
#include "measure/in_flight.hpp"
#include "measure/rounds.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C2";
constexpr const char* of_many = ", 64 in flight";
constexpr std::size_t many = 64;

/// One cluster with a lock at it, and many.
struct Cluster {
    lab::EtcdServers servers;
    Deployment deployment;
    Client client;
    std::unique_ptr<Lock> lock;
    InFlight in_flight;

    Cluster(const Bench& bench, lab::EtcdServers started, Deployment d)
        : servers(std::move(started)),
          deployment(std::move(d)),
          client(bench.open(deployment)),
          lock(bench.lock(client, deployment, "bench-cluster-lock")),
          in_flight(deployment, many, "bench-cluster") {
        cycle();  // connects
        in_flight.run_cycles(many);
    }
    void cycle() {
        auto lease = lock->acquire();
        if (!lease) check(lease.error(), "C2: acquire");
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("C2: a release was not answered");
    }
    double cpu_ms() {
        double sum = 0;
        for (std::size_t i = 0; i < servers.size(); ++i)
            sum += cpu_ms_of(servers.process(i).family());
        return sum;
    }
};

void report(Bench& bench, Cluster& cluster, const std::vector<Measured>& measured) {
    const std::string& variant = cluster.deployment.variant;
    Row row = row_of(id, cluster.deployment, static_cast<double>(cluster.servers.size()));
    if (const Measured* m = find(measured, "etcd", variant)) {
        row.metric = "acquire + release, p50";
        row.unit = "us";
        row.n = m->all.count();
        row.note = "one blocking caller";
        bench.add(row, spread_of(m->p50_us));
        const int cycles = bench.options.pick(50, 100, 1000);
        const double before = cluster.cpu_ms();
        for (int i = 0; i < cycles; ++i)
            cluster.cycle();
        row.metric = "CPU of all servers, each";
        row.n = static_cast<std::uint64_t>(cycles);
        row.note = "by the scheduler's count";
        bench.add_value(row, 1e3 * (cluster.cpu_ms() - before) / cycles);
    }
    if (const Measured* m = find(measured, "etcd", variant + of_many)) {
        row.metric = "cycles per second, 64 in flight";
        row.unit = "1/s";
        row.n = m->all.count();
        row.note = "asynchronous, one caller";
        bench.add(row, spread_of(m->rate));
    }
}

void run(Bench& bench) {
    const double block = bench.options.pick(0.04, 0.1, 0.3);
    std::deque<Cluster> clusters;
    std::vector<Contender> who;
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
        lab::EtcdOptions how;
        how.count = size;
        auto servers = lab::EtcdServers::start(how);
        Deployment d;
        d.backend = "etcd";
        d.variant = fmt::format("{} server{}", size, size == 1 ? "" : "s");
        d.open = servers.url();
        Cluster& one = clusters.emplace_back(bench, std::move(servers), std::move(d));
        who.push_back({"etcd", one.deployment.variant, [&one] {
                           one.cycle();
                           return std::size_t{1};
                       }});
        who.push_back({"etcd", one.deployment.variant + of_many,
                       [&one, block] { return one.in_flight.run_for(block); },
                       one.in_flight.latency});
    }
    const RoundPlan plan{id, bench.options.pick(3, 5, 11), block, 1};
    const auto measured = measure_rounds(bench, plan, who);
    for (Cluster& cluster : clusters)
        report(bench, cluster, measured);
}

std::vector<Step> plan(const Options& options, const Site& site) {
    // Nine more servers are too much for the quick run.
    if (site.find("etcd") == nullptr || options.effort == Effort::quick) return {};
    return {{"etcd on 1, 3 and 5 members", run}};
}

}  // namespace

Scenario c2_members() {
    return {id, "a lock on one etcd member, on three and on five",
            "The same for clusters of etcd on the same cores and the same disk, with etcd's own "
            "heartbeats and elections: acquire + release by one blocking caller, 64 locks in "
            "flight, the processor time of all members together. Not in --quick.",
            false, plan};
}

}  // namespace holdfast::bench
