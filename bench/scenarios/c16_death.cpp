// C16: the holder dies, is stopped, or is cut off. When is the lock free, and never too early?
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "faults/holder.hpp"
#include "faults/sqlite_file.hpp"
#include "faults/three.hpp"
#include "faults/through.hpp"
#include "measure/trials.hpp"
#include "processes/believer.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C16";

enum class Fault : std::uint8_t { kill, stop, cut };
constexpr std::pair<Fault, const char*> faults[] = {
    {Fault::kill, "SIGKILL"}, {Fault::stop, "SIGSTOP"}, {Fault::cut, "network cut"}};

struct Outcome {
    double next_ms = 0;       ///< fault -> next grant
    double without_ms = 0;    ///< last belief of the first -> next grant
    double too_early_ms = 0;  ///< by which the next grant came before the first one's promised time
    bool two_holders = false;
    bool blocked = false;  ///< stopped inside a transaction: nobody is granted until it goes on
};

struct Trial {
    Deployment deployment;
    Fault fault{};
    std::string name;
    std::filesystem::path journal, log;
    int ttl_ms = 0;
};

/// Nothing when the machine was so busy that the lease ran out before the fault.
std::optional<Outcome> play(const Bench& bench, const Trial& trial) {
    const auto cap = milliseconds(5 * trial.ttl_ms) + std::chrono::seconds(30);
    Through through(trial.deployment);
    const Deployment& reached = trial.fault == Fault::cut ? through.deployment : trial.deployment;
    auto first = start_worker(believer(reached, trial.name, trial.ttl_ms, trial.journal,
                                       bench.history(trial.deployment, "C16-A")),
                              trial.log);
    const auto belief = [&] { return read_belief(trial.journal); };
    lab::wait_until([&] { return belief().granted_ms > 0 || !first.alive(); }, cap, "the holder");
    if (!first.alive()) throw SelfCheck("the holder's process ended: " + first.log_tail(3));

    Holder next(bench, trial.deployment, trial.name, {.ttl = milliseconds(trial.ttl_ms)},
                bench.history(trial.deployment, "C16-B"));
    next.queue(std::chrono::duration_cast<milliseconds>(cap));
    // It works longer than its ttl, so it has renewed; the other one waits all the while.
    const auto renewed = [&] {
        const Belief now = belief();
        return next.queued() && now.last_valid_ms > now.granted_ms + trial.ttl_ms;
    };
    lab::wait_until([&] { return renewed() || next.granted(); }, cap, "a renewed lease");
    if (next.granted()) {
        const auto looked = [&] {
            return belief().invalid_ms > 0 || belief().last_valid_ms > next.granted_ms();
        };
        lab::wait_until(looked, cap, "the first one to look again");
        if (belief().last_valid_ms <= next.granted_ms()) return std::nullopt;
        Outcome both;
        both.two_holders = true;
        return both;
    }

    const double fault = boot_ms();
    if (trial.fault == Fault::kill) first.kill();
    if (trial.fault == Fault::stop) first.pause();
    if (trial.fault == Fault::cut)
        for (auto& proxy : through.proxies)
            proxy.black_hole();
    if (trial.fault == Fault::stop &&
        !lab::reached([&] { return next.granted(); }, milliseconds(4 * trial.ttl_ms)) &&
        stays_locked(trial.deployment, milliseconds(200))) {
        first.kill();
        Outcome seen;
        seen.blocked = true;
        return seen;
    }
    const auto answer = next.answer();
    if (answer) throw SelfCheck("the next holder: " + answer.message() + ": " + next.words());
    const Belief then = belief();
    if (trial.fault == Fault::stop) first.resume();
    if (trial.fault != Fault::kill)
        lab::wait_until([&] { return belief().invalid_ms > 0; }, cap, "the first one to know");
    if (trial.fault == Fault::cut)
        for (auto& proxy : through.proxies)
            proxy.wait_fired();

    Outcome seen;
    seen.next_ms = next.granted_ms() - fault;
    seen.without_ms = std::max(0.0, next.granted_ms() - std::max(fault, then.last_valid_ms));
    seen.too_early_ms = std::max(0.0, then.promised_until_ms - next.granted_ms());
    seen.two_holders = belief().last_valid_ms > next.granted_ms();
    if (trial.fault == Fault::cut)
        seen.without_ms = std::max(0.0, next.granted_ms() - then.last_valid_ms);
    next.release();
    return seen;
}

struct Sum {
    std::vector<double> next, without, early;
    std::size_t two_holders = 0, blocked = 0;
    std::string failure;
};

void add_rows(Bench& bench, const Deployment& d, const char* fault, const Sum& sum, int ttl_ms) {
    Row row = row_of(id, d, ttl_ms);
    row.n = sum.next.size();
    const auto metric = [&](const char* what) { row.metric = std::string(what) + ": " + fault; };
    if (!sum.failure.empty()) {
        metric("failed");
        row.note = sum.failure;
        row.status = Status::failed;
        bench.add_value(row, 0);
        row.status = Status::ok;
    }
    if (sum.blocked > 0) {
        metric("runs in which nobody was granted the lock until the holder went on");
        row.note = "it was stopped inside a transaction, which keeps SQLite's file locked";
        row.n = sum.next.size() + sum.blocked;
        bench.add_value(row, static_cast<double>(sum.blocked));
        row.n = sum.next.size();
    }
    if (sum.next.empty()) return;
    row.note = "of " + std::to_string(row.n) + " runs, by the looks of both holders";
    metric("runs with two holders");
    row.status = sum.two_holders > 0 ? Status::violated : Status::ok;
    bench.add_value(row, static_cast<double>(sum.two_holders));
    row.unit = "ms";
    metric("granted before the promised time was over");
    const Spread early = spread_of(sum.early);
    row.note = "by at most so much; 0 is right";
    row.status = early.max > 0 ? Status::violated : Status::ok;
    bench.add_value(row, early.max);
    row.status = Status::ok;
    row.note = "from the fault to the next grant; the ttl is x ms";
    metric("time until the next holder");
    bench.add(row, spread_of(sum.next));
    row.note = "from the first holder's last belief, or its end, to the next grant";
    metric("time without a holder");
    bench.add(row, spread_of(sum.without));
}

void add_up(Sum& sum, const Outcome& seen) {
    if (seen.blocked) {
        ++sum.blocked;
        return;
    }
    sum.next.push_back(seen.next_ms);
    sum.without.push_back(seen.without_ms);
    sum.early.push_back(seen.too_early_ms);
    sum.two_holders += seen.two_holders ? 1 : 0;
}

Outcome play_until_it_works(const Bench& bench, Trial trial) {
    for (int attempt = 0; attempt < 3; ++attempt) {
        // Never one of before, also when this step is begun again: journals are added to.
        static std::atomic<unsigned> played{0};
        const auto number = std::to_string(++played);
        trial.name = "bench/death/" + number;
        trial.journal = bench.site.folder() / ("journal-" + number);
        if (trial.deployment.backend == "sqlite")  // a file of its own: a holder may block it
            trial.deployment.open =
                "sqlite://" + (bench.site.folder() / ("death-" + number + ".db")).string();
        if (const auto seen = play(bench, trial)) return *seen;
    }
    throw SelfCheck("the machine was too busy for a lease to be renewed in time");
}

bool applies(const Deployment& d) {
    // In one process nobody dies alone; how waiters poll, and what is synced, makes no difference.
    return !d.in_process && d.variant != "durable" && d.variant != "poll" &&
           d.variant != "no token";
}

/// All of these with all faults at once: each mostly waits for its ttl.
void play_all(Bench& bench, const std::vector<Deployment>& deployments) {
    const auto ttl_ms = static_cast<int>(
        roomy_ttl(bench, milliseconds(bench.options.pick(500, 1000, 1000))).count());
    std::vector<Trial> trials;
    for (const Deployment& d : deployments)
        for (const auto& [fault, word] : faults) {
            if (!applies(d) || (fault == Fault::cut && !has_network(d))) continue;
            trials.push_back({d, fault, {}, {}, bench.site.folder() / "workers.log", ttl_ms});
        }
    std::vector<Sum> sums(trials.size());
    const int rounds = bench.options.pick(1, 3, 10);
    for (int round = 0; round < rounds && !bench.stopped(); ++round) {
        std::vector<std::jthread> all;
        for (std::size_t i = 0; i < trials.size(); ++i)
            all.emplace_back([&, i] {
                try {
                    add_up(sums[i], play_until_it_works(bench, trials[i]));
                } catch (const std::exception& error) {
                    sums[i].failure = error.what();
                }
            });
    }
    for (std::size_t i = 0; i < trials.size(); ++i)
        for (const auto& [fault, word] : faults)
            if (trials[i].fault == fault)
                add_rows(bench, trials[i].deployment, word, sums[i], ttl_ms);
}

void run(Bench& bench) {
    play_all(bench, bench.site.deployments());
}

void run_three(Bench& bench) {
    const Three three(bench);
    play_all(bench, three.deployments());
}

}  // namespace

Scenario c16_death() {
    return {
        id, "the holder dies (SIGKILL), is stopped (SIGSTOP), or its network is cut",
        "A process holds and renews the lock for longer than its ttl, and writes down at each "
        "look whether its lease is valid, and until when; another client waits. Then the fault. "
        "All backends and faults at the same time; then ZooKeeper and etcd on three servers (not "
        "in "
        "--quick). Two holders: the first one's lease was valid "
        "at a look after the second one's grant. With SQLite there is no network to cut.",
        false, [](const Options& options, const Site&) {
            std::vector<Step> steps{{"holders killed, stopped, cut off, all backends", run}};
            // Six more servers are too much for the quick run.
            if (options.effort != Effort::quick)
                steps.push_back({"holders killed, stopped, cut off, three servers", run_three});
            return steps;
        }};
}

}  // namespace holdfast::bench
