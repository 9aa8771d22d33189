// C1, second half: how many locks a second one caller gets when it does not wait for each.
#include "floors/record.hpp"
#include "floors/redis_floor.hpp"
#include "measure/in_flight.hpp"
#include "measure/rounds.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";

Contender holdfast(const Deployment& d, std::size_t n, double block) {
    auto load = std::make_shared<InFlight>(d, n, "bench/flight");
    load->run_cycles(n);  // connections and scripts come first
    *load->latency = Latency{};
    return {d.backend, d.variant, [load, block] { return load->run_for(block); }, load->latency};
}

Contender redis_floor(const lab::RedisServer& server, Trace trace) {
    auto floor = std::make_shared<RedisFloor>(server.port(), std::move(trace));
    return {{}, {}, [floor] {
                floor->pass();
                return floor->cycles();
            }};
}

std::vector<std::string> names(std::size_t n) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < n; ++i)
        all.push_back("bench/floor/" + std::to_string(i));
    return all;
}

void report(Bench& bench, const std::vector<Measured>& all, std::size_t n) {
    Row row;
    row.scenario = id;
    row.x = static_cast<double>(n);
    for (const Measured& m : all) {
        if (m.failed || m.rate.empty()) continue;
        row.backend = m.backend;
        row.variant = m.variant;
        row.metric = "cycles per second";
        row.unit = "1/s";
        row.n = m.all.count();
        row.note = "asynchronous, so many locks in flight";
        bench.add(row, spread_of(m.rate));
    }
    const auto compare = [&](const char* over, const char* under, const char* metric) {
        const Measured* a = find(all, "redis", over);
        const Measured* b = find(all, "redis", under);
        if (a == nullptr || b == nullptr) return;
        row.backend = "redis";
        row.variant = over;
        row.metric = metric;
        row.unit = "x";
        row.n = a->all.count();
        row.note = std::string("time per cycle over '") + under + "'";
        bench.add(row, spread_of(ratios(*a, *b, Of::rate)));
    };
    compare("default", "floor: same bytes", "client overhead in flight");
    compare("plain", "floor: plain pair", "client overhead in flight");
    compare("floor: same bytes", "floor: plain pair", "price of the guarantees in flight");
}

void run(Bench& bench, std::size_t n) {
    const double block = bench.options.pick(0.08, 0.25, 0.5);
    std::vector<Contender> all;
    const auto add = [&](const std::string& backend, const std::string& variant,
                         const std::function<Contender()>& make) {
        add_contender(bench, id, all, backend, variant, make);
    };
    for (const Deployment& d : bench.site.deployments())
        if (d.variant != "poll") add(d.backend, d.variant, [&] { return holdfast(d, n, block); });
    if (auto* redis = bench.site.redis()) {
        add("redis", "floor: plain pair", [&] {
            const auto sha = load_compare_and_delete(connect_redis(redis->port()).get());
            return redis_floor(*redis, plain_pair(names(n), sha));
        });
        if (const Deployment* d = bench.site.find("redis"))
            add("redis", "floor: same bytes",
                [&] { return redis_floor(*redis, record_in_flight(*d, *redis, n)); });
    }
    RoundPlan plan{id, bench.options.pick(5, 7, 11), block, 1};
    report(bench, measure_rounds(bench, plan, all), n);
}

}  // namespace

Scenario c1_in_flight() {
    return {id, "throughput with 1, 64 and 1000 locks in flight, one caller",
            "Different names, acquired and released by callbacks; the floor keeps as many requests "
            "unanswered on one bare connection, and one floor replays what Holdfast sent under the "
            "same load, recorded with MONITOR.",
            true, [](const Options&, const Site&) {
                std::vector<Step> steps;
                for (const std::size_t n : {1U, 64U, 1000U})
                    steps.push_back(
                        {"in flight n=" + std::to_string(n), [n](Bench& bench) { run(bench, n); }});
                return steps;
            }};
}

}  // namespace holdfast::bench
