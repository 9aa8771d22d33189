// C1, third part: what a lock takes when callers come at a rate of their own, and do not wait until
// the one before them has been served.
#include <fmt/format.h>

#include "measure/open_loop.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";
constexpr std::size_t names = 1000;

/// What the closed loop with as many names gave in this run.
double closed_rate(const Bench& bench, const Deployment& d) {
    const Row* row = find(bench.rows, {id, d.backend, d.variant, "cycles per second", names});
    if (row == nullptr) throw SelfCheck("the closed loop of this run has no rate");
    return row->value;
}

void run(Bench& bench, const Deployment& d) {
    const double full = closed_rate(bench, d), seconds = bench.options.pick(0.12, 0.4, 2.0);
    OpenLoop loop(d, names, "bench/open");
    loop.run(0.3 * full, seconds / 4, bench.random());  // connections and scripts come first
    for (const double share : {30.0, 70.0}) {
        if (bench.stopped()) return;
        const double rate = full * share / 100;
        const auto seen = loop.run(rate, seconds, bench.random());
        if (seen.cycles == 0) continue;  // so few are asked for that none came
        Row row = row_of(id, d, share);
        row.n = seen.cycles;
        const auto add = [&](const char* metric, const char* unit, double value,
                             const std::string& note) {
            row.metric = metric;
            row.unit = unit;
            row.note = note;
            bench.add_value(row, value);
        };
        const auto asked =
            fmt::format("{:.0f} % of the closed loop's rate, at random times", share);
        add("open loop: cycles per second", "1/s", double(seen.cycles) / seen.seconds,
            asked + fmt::format(", {:.0f} asked for", rate));
        for (const auto& [metric, q] : {std::pair{"open loop: p50", 0.5}, {"open loop: p99", 0.99}})
            add(metric, "us", seen.from_the_start.quantile_us(q),
                "from when it was meant to be asked for");
        add("open loop: p99 from the call", "us", seen.from_the_call.quantile_us(0.99),
            "without the time that it came too late");
    }
}

}  // namespace

Scenario c1_open_loop() {
    return {
        id, "time of a lock when callers come at 30 and 70 % of the rate with 1000 in flight",
        "One client and 1000 names; cycles are asked for at random times (a Poisson process with "
        "the run's seed), whether or not those before have ended. Each one's time counts from "
        "when it was meant to be asked for, not from the call, so that a stall is not hidden.",
        true, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            for (const Deployment& d : site.deployments())
                if (d.variant != "poll")
                    steps.push_back(
                        {d.label() + " open loop", [d](Bench& bench) { run(bench, d); }});
            return steps;
        }};
}

}  // namespace holdfast::bench
