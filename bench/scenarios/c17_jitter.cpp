// C17: a holder works behind a network that delays, more and more; does it keep its lease?
#include <fmt/format.h>

#include <holdfast/lab/wait_until.hpp>
#include <span>

#include "faults/holder.hpp"
#include "faults/three.hpp"
#include "faults/through.hpp"
#include "measure/trials.hpp"
#include "measure/tries.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C17";
// Each piece of each direction is held back for up to so long, in shares of the ttl.
constexpr double shares[] = {0, 0.05, 0.1, 0.2, 0.4, 1};

struct Level {
    Deployment deployment;
    milliseconds ttl;
    double jitter_ms = 0;
    std::size_t runs = 0, lost = 0, two_holders = 0, tokens_back = 0;
    std::vector<double> kept_ms;  ///< of the leases that were lost: how long they had been held
};

/// A holder behind the proxy, somebody in line for the same name on a whole network.
void play(const Bench& bench, Level& level, const std::string& name, std::uint64_t seed) {
    Through through(level.deployment, seed);
    const LockOptions how{.ttl = level.ttl};
    Holder first(bench, through.deployment, name, how, bench.history(level.deployment, "C17-A"));
    Holder second(bench, level.deployment, name, how, bench.history(level.deployment, "C17-B"));
    // By its first renewal it has all its connections. Set-up only: one that the busy machine makes
    // too late for that is begun again.
    const auto renewed = [&] {
        first.must_acquire(std::chrono::seconds(20));
        const double promised = first.promised_until_ms();
        lab::wait_until([&] { return first.promised_until_ms() > promised || !first.believes(); },
                        std::chrono::seconds(20), "a renewed lease");
        return first.believes();
    };
    for (std::size_t tries = 1; !renewed(); ++tries) {
        if (tries == most_tries)
            throw SelfCheck("c17: three leases were lost before anything was delayed");
        first.release();
    }
    const auto token = first.lease().fencing_token();
    const auto jitter = milliseconds(static_cast<int>(level.jitter_ms));
    if (jitter.count() > 0)
        for (auto& proxy : through.proxies)
            proxy.delay_both(milliseconds(1), jitter);
    second.queue(std::chrono::seconds(60));

    const double begun = boot_ms();
    double last = begun;
    bool both = false;
    (void)lab::reached(
        [&] {
            const double now = boot_ms();
            if (!first.believes()) return true;
            last = now;
            both = both || second.believes();
            return false;
        },
        bench.options.pick(3, 5, 10) * level.ttl);
    ++level.runs;
    if (both) ++level.two_holders;
    if (!first.believes()) {
        ++level.lost;
        level.kept_ms.push_back(last - begun);
    }
    std::uint64_t delayed = 0;  // of several servers a client may use one
    for (auto& proxy : through.proxies) {
        delayed += proxy.counters().delayed;
        proxy.heal();
    }
    if (jitter.count() > 0 && delayed == 0) throw SelfCheck("c17: nothing was delayed");
    first.release();
    const auto answer = second.answer();
    if (answer) throw SelfCheck("c17: the next holder: " + answer.message());
    const std::string& variant = level.deployment.variant;
    if ((variant == "default" || variant == "3 servers") &&
        second.lease().fencing_token().value <= token.value)
        ++level.tokens_back;
    second.release();
}

/// All delays of one deployment, one after the other in `levels`.
void add_rows(Bench& bench, std::span<const Level> levels) {
    Row row = row_of(id, levels.front().deployment);
    std::size_t runs = 0, two_holders = 0, tokens_back = 0;
    for (const Level& level : levels) {
        runs += level.runs;
        two_holders += level.two_holders;
        tokens_back += level.tokens_back;
        row.x = level.jitter_ms;
        row.n = level.runs;
        row.metric = "leases lost";
        row.unit = fmt::format("of {} runs", level.runs);
        row.note = fmt::format("x: each piece is late by up to so many ms, both ways; ttl {} ms",
                               level.ttl.count());
        bench.add_value(row, static_cast<double>(level.lost));
        row.unit.clear();
        if (level.kept_ms.empty()) continue;
        row.metric = "held until it was lost";
        row.unit = "ms";
        bench.add(row, spread_of(level.kept_ms));
        row.unit = "";
    }
    row.x = 0;
    row.n = runs;
    row.note = "of " + std::to_string(runs) + " runs with all delays";
    const auto never = [&](const char* metric, std::size_t value) {
        row.metric = metric;
        row.status = value > 0 ? Status::violated : Status::ok;
        bench.add_value(row, static_cast<double>(value));
    };
    never("runs with two holders", two_holders);
    never("runs with a token going back", tokens_back);
}

/// All of these with all delays at once.
void play_all(Bench& bench, const std::vector<Deployment>& deployments, milliseconds ttl) {
    std::vector<Level> levels;
    for (const Deployment& d : deployments)
        if (has_network(d))
            for (const double share : shares)
                levels.push_back(
                    {d, ttl, share * static_cast<double>(ttl.count()), 0, 0, 0, 0, {}});
    for (int round = 0; round < bench.options.pick(1, 1, 10) && !bench.stopped(); ++round) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t i = 0; i < levels.size(); ++i)
            jobs.emplace_back(
                [&, i, seed = bench.random(), name = fmt::format("bench/jitter/{}-{}", i, round)] {
                    play(bench, levels[i], name, seed);
                });
        side_by_side(jobs);
    }
    constexpr auto each = std::size(shares);
    for (std::size_t i = 0; i < levels.size(); i += each)
        add_rows(bench, std::span(levels).subspan(i, each));
}

void run(Bench& bench) {
    play_all(bench, across_processes(bench.site), roomy_ttl(bench, milliseconds(1000)));
}

void run_three(Bench& bench) {
    const Three three(bench);
    play_all(bench, three.deployments(), roomy_ttl(bench, milliseconds(1000)));
}

}  // namespace

Scenario c17_jitter() {
    return {id, "a network that delays, by up to the ttl",
            "A client behind a proxy holds the lock and has renewed it once; then each piece of "
            "each direction "
            "is held back for a random time. Somebody else, on a whole network, stands in line. Is "
            "the lease lost, and do both believe at any look? All backends and delays at once; "
            "then ZooKeeper and etcd on three servers (not in --quick).",
            false, [](const Options& options, const Site&) {
                std::vector<Step> steps{{"jitter, all backends", run}};
                // Six more servers are too much for the quick run.
                if (options.effort != Effort::quick)
                    steps.push_back({"jitter, three servers", run_three});
                return steps;
            }};
}

}  // namespace holdfast::bench
