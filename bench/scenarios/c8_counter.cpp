// C8, C8a, C8b: read, then write, from several processes: with a lock, without, and with a lock
// that only one process can see.
#include <algorithm>

#include "processes/store.hpp"
#include "processes/worker.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr int processes = 6;
constexpr int stock = 10, buyers = 100;

struct Team {
    std::string scenario, backend, variant;
    WorkerOptions worker;
    int processes = 1;
    bool guarded = false;  ///< by Holdfast, so the result is a promise
};

/// Starts the team's processes, lets them go together, waits for all.
void run_team(Bench& bench, Store& store, Team team, long long number) {
    store.reset(number, static_cast<std::size_t>(team.processes * team.worker.threads));
    team.worker.store = store.address();
    const auto history = [&](const std::string& who) {
        return bench.histories.file(team.backend, team.variant,
                                    team.guarded ? Promise::holdfast : Promise::nothing,
                                    team.scenario + "-" + who);
    };
    store.record(history("store"), team.worker.name);
    std::vector<lab::Process> workers;
    for (int i = 0; i < team.processes; ++i) {
        team.worker.who = "p" + std::to_string(i);
        team.worker.history = history(team.worker.who).string();
        workers.push_back(start_worker(team.worker, bench.site.folder() / "workers.log"));
    }
    join_workers(workers, 120);
}

Row row_of(const Team& team, const char* metric) {
    Row row;
    row.scenario = team.scenario;
    row.backend = team.backend;
    row.variant = team.variant;
    row.metric = metric;
    return row;
}

void count(Bench& bench, const Team& team) {
    Store store(bench.site.folder() / "store.sock");
    run_team(bench, store, team, 0);
    const long long wanted =
        static_cast<long long>(team.processes) * team.worker.threads * team.worker.cycles;
    Row row = row_of(team, "updates lost");
    row.n = static_cast<std::uint64_t>(wanted);
    row.x = team.processes * team.worker.threads;
    row.note = "of " + std::to_string(wanted) + " additions by " +
               (team.processes > 1 ? std::to_string(team.processes) + " processes"
                                   : std::to_string(team.worker.threads) + " threads");
    const long long lost = wanted - store.number();
    if (team.guarded && lost != 0) row.status = Status::violated;
    bench.add_value(row, static_cast<double>(lost));
}

void sell(Bench& bench, const Team& team) {
    Store store(bench.site.folder() / "store.sock");
    run_team(bench, store, team, stock);
    const auto sold = store.events().size();
    Row row = row_of(team, "sold");
    row.n = buyers;
    row.x = stock;
    row.note = "of a stock of 10, by 100 buyers in " +
               (team.processes > 1 ? std::to_string(team.processes) + " processes"
                                   : std::string("100 threads"));
    if (team.guarded && sold != stock) row.status = Status::violated;
    bench.add_value(row, static_cast<double>(sold));
}

/// On a busy machine so many processes need more than two seconds to connect, and to give up and
/// begin again makes it busier.
std::string patient(std::string url) {
    const std::string option = "request_timeout=";
    const auto at = url.find(option);
    if (at == url.npos) return url + (url.find('?') == url.npos ? "?" : "&") + option + "8s";
    const auto end = std::min(url.find('&', at), url.size());
    return url.replace(at, end - at, option + "8s");
}

Team guarded_team(const char* scenario, const Deployment& d, const char* job) {
    Team team{scenario, d.backend, d.variant, {}, processes, true};
    team.worker.job = job;
    team.worker.guard = "holdfast";
    team.worker.url = patient(d.open);
    team.worker.name = std::string("bench/") + job;
    return team;
}

Team other_team(const char* scenario, const char* guard, const char* job) {
    Team team{scenario, "none", std::string("guard: ") + guard, {}, processes, false};
    team.worker.job = job;
    team.worker.guard = guard;
    team.worker.name = std::string("bench/") + job;
    return team;
}

/// The memory backend's processes would not see each other: its team is threads of one process.
void arrange(Team& team, bool in_process, int people, int each = 1) {
    team.processes = in_process ? 1 : people / each;
    team.worker.threads = in_process ? people : each;
}

std::vector<Step> plan_c8(const Options& options, const Site& site) {
    std::vector<Step> steps;
    const auto add = [&](const std::string& label, Team team) {
        team.worker.cycles = options.pick(60, 150, 1000);
        steps.push_back({label, [team](Bench& bench) { count(bench, team); }});
    };
    add("counter without a lock", other_team("C8", "none", "count"));
    for (const Deployment& d : site.deployments()) {
        Team team = guarded_team("C8", d, "count");
        arrange(team, d.in_process, processes);
        add(d.label() + " counter", team);
    }
    return steps;
}

std::vector<Step> plan_c8a(const Options& options, const Site& site) {
    std::vector<Step> steps;
    const auto add = [&](const std::string& label, Team team) {
        team.worker.cycles = options.pick(60, 150, 1000);
        steps.push_back({label, [team](Bench& bench) { count(bench, team); }});
    };
    Team threads = other_team("C8a", "mutex", "count");
    threads.variant = "std::mutex, threads of one process";
    arrange(threads, true, processes);
    add("counter, std::mutex in one process", threads);
    Team each = other_team("C8a", "mutex", "count");
    each.variant = "std::mutex in each process";
    add("counter, std::mutex in each process", each);
    if (const Deployment* memory = site.find("memory")) {
        Team team = guarded_team("C8a", *memory, "count");
        team.variant = "in each process";
        team.guarded = false;  // it declares that it does not exclude other processes
        add("counter, memory: in each process", team);
    }
    return steps;
}

std::vector<Step> plan_c8b(const Options&, const Site& site) {
    // A server is not asked for a hundred times the connections of a client.
    constexpr int each = 5;
    std::vector<Step> steps;
    const auto add = [&](const std::string& label, const Team& team) {
        steps.push_back({label, [team](Bench& bench) { sell(bench, team); }});
    };
    Team none = other_team("C8b", "none", "buy");
    arrange(none, false, buyers, each);
    add("stock without a lock", none);
    for (const Deployment& d : site.deployments()) {
        Team team = guarded_team("C8b", d, "buy");
        arrange(team, d.in_process, buyers, each);
        add(d.label() + " stock", team);
    }
    return steps;
}

}  // namespace

Scenario c8_counter() {
    return {
        "C8", "a counter, read then written by 6 processes",
        "The number lives in the bench's process and is read and written by two requests over a "
        "Unix socket; each process adds 1 again and again. Lost = additions - final number.",
        false, plan_c8};
}

Scenario c8a_in_process_mutex() {
    return {"C8a", "the same with a lock that only one process can see",
            "A std::mutex, and the memory backend, in each of 6 processes; and the mutex among 6 "
            "threads of one process, where it does suffice.",
            false, plan_c8a};
}

Scenario c8b_stock() {
    return {
        "C8b", "a stock of 10 and 100 buyers",
        "100 buyers in 20 processes start together; each looks at the stock and takes one if there "
        "is one.",
        false, plan_c8b};
}

}  // namespace holdfast::bench
