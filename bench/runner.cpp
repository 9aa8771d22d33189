#include "runner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cores.hpp"
#include "measure/tries.hpp"

namespace holdfast::bench {

namespace {

struct Planned {
    const Scenario* scenario;
    Step step;
};

bool chosen(const Scenario& scenario, const Options& options) {
    if (options.own_servers() && !scenario.on_own_servers) return false;
    return options.scenarios.empty() ||
           std::find(options.scenarios.begin(), options.scenarios.end(), scenario.id) !=
               options.scenarios.end();
}

/// One line that is written over on a terminal, a line each elsewhere.
class Progress {
public:
    explicit Progress(std::size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) == 1) {}
    void show(const std::string& label) {
        const auto line = fmt::format("[{}/{}] {}", ++done_, total_, label);
        fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", line, terminal_ ? "" : "\n");
        std::fflush(stderr);
    }
    void say(const std::string& line) {
        fmt::print(stderr, "{}{}\n", terminal_ ? "\r\x1b[K" : "", line);
    }
    void end() {
        if (terminal_) fmt::print(stderr, "\r\x1b[K");
    }

private:
    std::size_t total_, done_ = 0;
    bool terminal_;
};

void run_step(Bench& bench, const Planned& planned, Progress& progress) {
    const auto measure = [&] {
        bench.histories.next_try();
        try {
            planned.step.run(bench);
        } catch (...) {
            bench.histories.forget_unwritten();
            throw;
        }
    };
    const Tries failed = try_to_measure(bench.rows, measure, [&] { return bench.stopped(); });
    // ^C ends the step's own processes, too: that they failed says nothing.
    if (failed.empty() || bench.stopped()) return;
    const bool given_up = failed.size() == most_tries;
    Row row;
    row.scenario = planned.scenario->id;
    row.backend = planned.step.label;
    row.metric = given_up ? "failed" : "begun again";
    row.unit = "times";
    row.note = failed.back();
    row.status = given_up ? Status::failed : Status::ok;
    progress.say(fmt::format("    {}: {}", row.metric, row.note));
    bench.add_value(std::move(row), static_cast<double>(failed.size()));
}

}  // namespace

Run run_all(Bench& bench) {
    std::vector<Planned> plan;
    Run run;
    for (const Scenario& scenario : scenarios()) {
        if (!chosen(scenario, bench.options)) continue;
        if (run.ran.empty() || run.ran.back() != scenario.id) run.ran.push_back(scenario.id);
        for (Step& step : scenario.plan(bench.options, bench.site))
            plan.push_back({&scenario, std::move(step)});
    }
    Progress progress(plan.size());
    const auto start = Clock::now();
    for (const Planned& planned : plan) {
        if (bench.stopped()) break;
        if (planned.scenario->on_all_cores) use_all_cores();
        progress.show(planned.step.label);
        run_step(bench, planned, progress);
    }
    progress.end();
    run.partial = bench.stopped();
    run.seconds = seconds_since(start);
    return run;
}

}  // namespace holdfast::bench
