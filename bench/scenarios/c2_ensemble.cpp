// C2: what a lock costs at one ZooKeeper server, and at ensembles of three and five.
#include <fmt/format.h>

#include <deque>

#include "measure/cpu.hpp"
#include "measure/in_flight.hpp"
#include "measure/rounds.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C2";
constexpr const char* node = "/bench-ensemble";
constexpr std::size_t many = 64;
/// Longer than it takes to start the next ensemble, when nobody sends heartbeats.
constexpr milliseconds bare_session{120000};

std::string words(std::size_t servers, const char* what) {
    return std::to_string(servers) + (servers == 1 ? " server" : " servers") + what;
}

/// One ensemble with everything that is asked of it.
struct Ensemble {
    lab::ZooKeeperServers servers;
    Deployment deployment;
    Client client;
    std::unique_ptr<Lock> lock;
    InFlight in_flight;
    ZooKeeperSession bare;
    long long made = 0;

    Ensemble(const Bench& bench, lab::ZooKeeperServers started, Deployment d)
        : servers(std::move(started)),
          deployment(std::move(d)),
          client(bench.open(deployment)),
          lock(bench.lock(client, deployment, "bench-ensemble-lock")),
          in_flight(deployment, many, "bench-ensemble"),
          bare(servers.connect_string(), bare_session) {
        cycle();  // connects, makes the parents
        in_flight.run_cycles(many);
        if (!bare.create(node, ZooKeeperSession::Kind::persistent).ok())
            throw SelfCheck("C2: the parent node was not made");
    }

    void cycle() {
        auto lease = lock->acquire();
        if (!lease) check(lease.error(), "C2: acquire");
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("C2: a release was not answered");
    }
    void create_and_delete() {
        const auto path = fmt::format("{}/{}", node, made++);
        if (!bare.create(path, ZooKeeperSession::Kind::ephemeral).ok() || !bare.remove(path).ok())
            throw SelfCheck("C2: create and delete");
    }
    void read() {
        if (!bare.get(node).ok()) throw SelfCheck("C2: read");
    }
    double cpu_ms() {
        double sum = 0;
        for (std::size_t i = 0; i < servers.size(); ++i)
            sum += cpu_ms_of(servers.process(i).family());
        return sum;
    }
};

/// The sessions that are not asked just now are due their heartbeats.
class Ensembles {
public:
    Ensembles(const Bench& bench, const std::vector<std::size_t>& sizes) {
        for (const std::size_t size : sizes) {
            lab::ZooKeeperOptions how;
            how.count = size;
            auto servers = lab::ZooKeeperServers::start(how);
            Deployment d;
            d.backend = "zookeeper";
            d.variant = words(size, "");
            d.open = servers.url() + "?tick_time=100ms";
            all_.emplace_back(bench, std::move(servers), std::move(d));
            beat();
        }
    }
    std::deque<Ensemble>& all() { return all_; }
    void beat() {
        for (Ensemble& one : all_)
            one.bare.turn(milliseconds(0));
    }

private:
    std::deque<Ensemble> all_;
};

Row base(const Ensemble& e, const char* what) {
    Row row;
    row.scenario = id;
    row.backend = "zookeeper";
    row.variant = words(e.servers.size(), what);
    row.x = static_cast<double>(e.servers.size());
    return row;
}

constexpr const char* of_bare = ", bare create + delete";
constexpr const char* of_read = ", bare read";
constexpr const char* of_many = ", 64 in flight";

std::vector<Contender> contenders(Ensembles& ensembles, double block) {
    std::vector<Contender> all;
    for (Ensemble& e : ensembles.all()) {
        const auto add = [&](const char* what, const std::function<std::size_t()>& work,
                             const std::shared_ptr<Latency>& own = {}) {
            all.push_back({"zookeeper", words(e.servers.size(), what),
                           [&ensembles, work] {
                               ensembles.beat();
                               return work();
                           },
                           own});
        };
        const auto once = [&e](void (Ensemble::*what)()) {
            return [&e, what] {
                (e.*what)();
                return std::size_t{1};
            };
        };
        add("", once(&Ensemble::cycle));
        add(of_bare, once(&Ensemble::create_and_delete));
        add(of_read, once(&Ensemble::read));
        add(
            of_many, [&e, block] { return e.in_flight.run_for(block); }, e.in_flight.latency);
    }
    return all;
}

/// Processor time of all servers of the ensemble for one cycle of what `work` does.
double cpu_us(Ensemble& e, Ensembles& all, void (Ensemble::*work)(), int cycles) {
    const double before = e.cpu_ms();
    for (int i = 0; i < cycles; ++i) {
        all.beat();
        (e.*work)();
    }
    return 1e3 * (e.cpu_ms() - before) / cycles;
}

void report(Bench& bench, Ensembles& ensembles, const std::vector<Measured>& measured) {
    const int cycles = bench.options.pick(100, 200, 1000);
    for (Ensemble& e : ensembles.all()) {
        for (const auto& [what, metric, work] :
             {std::tuple{"", "acquire + release, p50", &Ensemble::cycle},
              std::tuple{of_bare, "create + delete, p50", &Ensemble::create_and_delete},
              std::tuple{of_read, "read, p50", &Ensemble::read}}) {
            const Measured* m = find(measured, "zookeeper", words(e.servers.size(), what));
            if (m == nullptr) continue;
            Row row = base(e, what);
            row.metric = metric;
            row.unit = "us";
            row.n = m->all.count();
            row.note = "one blocking caller";
            bench.add(row, spread_of(m->p50_us));
            row.metric = "CPU of all servers, each";
            row.n = static_cast<std::uint64_t>(cycles);
            row.note = "by the scheduler's count";
            bench.add_value(row, cpu_us(e, ensembles, work, cycles));
        }
        if (const Measured* m = find(measured, "zookeeper", words(e.servers.size(), of_many))) {
            Row row = base(e, "");
            row.metric = "cycles per second, 64 in flight";
            row.unit = "1/s";
            row.n = m->all.count();
            row.note = "asynchronous, one caller";
            bench.add(row, spread_of(m->rate));
        }
    }
}

void run(Bench& bench) {
    const std::vector<std::size_t> few{1, 3}, all{1, 3, 5};
    Ensembles ensembles(bench, bench.options.effort == Effort::quick ? few : all);
    const double block = bench.options.pick(0.04, 0.1, 0.3);
    auto who = contenders(ensembles, block);
    const RoundPlan plan{id, bench.options.pick(3, 5, 11), block, 1};
    report(bench, ensembles, measure_rounds(bench, plan, who));
}

std::vector<Step> plan(const Options& options, const Site& site) {
    // Nine more servers are too much for the quick run.
    if (site.find("zookeeper") == nullptr || options.effort == Effort::quick) return {};
    return {{"zookeeper on 1, 3 and 5 servers", run}};
}

}  // namespace

Scenario c2_ensemble() {
    return {id, "a lock on one ZooKeeper server, on three and on five",
            "Ensembles of 1, 3 and 5 servers (1 and 3 with --quick) on the same cores and the same "
            "disk: acquire + release by one blocking caller, a bare create + delete, a bare read, "
            "and 64 locks in flight, in blocks in random order; then the processor time of all "
            "servers together.",
            false, plan};
}

}  // namespace holdfast::bench
