// C23a: what the other kinds of lock cost beside a mutex: alone, many at once, and handed on.
#include <fmt/format.h>

#include "measure/alone.hpp"
#include "measure/crowd.hpp"
#include "measure/in_flight.hpp"
#include "measure/rounds.hpp"
#include "measure/wants.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C23a";
constexpr std::size_t many = 1000, waiters = 100;

void run_alone(Bench& bench, const Deployment& d) {
    std::vector<Contender> contenders;
    const auto can = Bench::open(d).capabilities();
    for (const Wants& wants : {a_mutex, to_write, to_read, a_permit})
        if (!wants.needs || can.has(*wants.needs))
            add_contender(bench, id, contenders, d.backend, wants.words, [&] {
                return alone(d, fmt::format("bench/kinds/{}", wants.words), wants);
            });
    RoundPlan plan{id, bench.options.pick(3, 5, 11), bench.options.pick(0.02, 0.05, 0.3)};
    const auto all = measure_rounds(bench, plan, contenders);
    const Measured* mutex = find(all, d.backend, a_mutex.words);
    for (const Measured& m : all) {
        if (m.none()) continue;
        Row row = row_of(id, m);
        row.metric = "acquire + release, alone";
        row.unit = "us";
        bench.add(row, spread_of(m.p50_us));
        if (mutex == nullptr || mutex == &m) continue;
        row.metric = "time over a mutex, alone";
        row.unit = "x";
        row.note = "round by round";
        bench.add(row, spread_of(ratios(m, *mutex, Of::p50)));
    }
}

Contender in_flight(const Deployment& d, const Wants& wants, bool one_name, double block) {
    auto load = std::make_shared<InFlight>(d, many, "bench/kinds", wants, one_name);
    load->run_cycles(many);  // connections and scripts come first
    *load->latency = Latency{};
    return {d.backend, {}, [load, block] { return load->run_for(block); }, load->latency};
}

void run_in_flight(Bench& bench, const Deployment& d) {
    const auto names = fmt::format("{} mutexes", many);
    const auto readers = fmt::format("{} readers of one name", many);
    const double block = bench.options.pick(0.1, 0.2, 0.5);
    std::vector<Contender> contenders;
    add_contender(bench, id, contenders, d.backend, names,
                  [&] { return in_flight(d, a_mutex, false, block); });
    add_contender(bench, id, contenders, d.backend, readers,
                  [&] { return in_flight(d, to_read, true, block); });
    const RoundPlan plan{id, bench.options.pick(3, 5, 11), block, 1};
    const auto all = measure_rounds(bench, plan, contenders);
    for (const Measured& m : all) {
        if (m.none()) continue;
        Row row = row_of(id, m, static_cast<double>(many));
        row.metric = "cycles per second";
        row.unit = "1/s";
        bench.add(row, spread_of(m.rate));
    }
    const Measured* under = find(all, d.backend, names);
    const Measured* over = find(all, d.backend, readers);
    if (under == nullptr || over == nullptr) return;
    Row row = row_of(id, *over, static_cast<double>(many));
    row.metric = "throughput over as many mutexes";
    row.unit = "x";
    bench.add(row, spread_of(ratios(*under, *over, Of::rate)));
}

void run_hand_off(Bench& bench, const Deployment& d) {
    double of_a_mutex = 0;
    for (const Wants& wants : {a_mutex, a_permit}) {
        Crowd crowd(d, waiters, fmt::format("bench/kinds/crowd/{}", wants.words), {}, 0, wants);
        crowd.run_for(bench.options.pick(0.3, 0.5, 1.0));  // until everybody is in line
        const CrowdResult seen = crowd.run_for(bench.options.pick(0.5, 0.7, 4.0));
        crowd.end();
        if (seen.hand_offs == 0) throw SelfCheck("nothing was handed over");
        Row row = row_of(id, d, static_cast<double>(waiters));
        row.variant = wants.words;
        row.n = seen.hand_offs;
        row.metric = "requests per hand-off";
        const double each =
            static_cast<double>(seen.requests) / static_cast<double>(seen.hand_offs);
        bench.add_value(row, each);
        if (of_a_mutex == 0) {
            of_a_mutex = each;
            continue;
        }
        row.metric = "requests per hand-off over a mutex's";
        row.unit = "x";
        bench.add_value(row, each / of_a_mutex);
    }
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments()) {
        if (d.variant != "default") continue;
        steps.push_back({d.label() + " kinds alone", [d](Bench& bench) { run_alone(bench, d); }});
        if (d.backend == "redis")
            steps.push_back(
                {d.label() + " readers in flight", [d](Bench& bench) { run_in_flight(bench, d); }});
        // A crowd of permits is for backends that notify: the rest polls.
        steps.push_back({d.label() + " permits handed on", [d](Bench& bench) {
                             const auto can = Bench::open(d).capabilities();
                             if (can.has(Capability::semaphore) && can.has(Capability::notified) &&
                                 !d.in_process)
                                 run_hand_off(bench, d);
                         }});
    }
    return steps;
}

}  // namespace

Scenario c23a_kinds() {
    return {id, "what a reader, a writer and a permit cost beside a mutex",
            "One caller alone takes and gives back each kind, in interleaved rounds; on Redis one "
            "client has 1,000 readers of one name in flight beside 1,000 mutexes; and 100 callers "
            "in 10 clients hand a mutex on, and the four permits of a semaphore.",
            false, plan};
}

}  // namespace holdfast::bench
