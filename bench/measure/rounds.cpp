#include "measure/rounds.hpp"

#include <algorithm>
#include <numeric>

namespace holdfast::bench {

namespace {

/// One block: calls until the time is over. Adds one figure to p50_us and rate.
void run_block(const RoundPlan& plan, Contender& contender, Measured& out) {
    Latency block;
    std::size_t cycles = 0;
    int calls = 0;
    if (contender.get_ready) contender.get_ready();
    const auto start = Clock::now();
    auto before = start;
    const auto end = start + in_seconds(plan.block_seconds);
    while (calls < plan.least_calls || before < end) {
        const std::size_t done = contender.work();
        const auto after = Clock::now();
        if (done > 0 && !contender.own_latency)
            block.add((after - before) / static_cast<Clock::duration::rep>(done));
        before = after;
        cycles += done;
        ++calls;
    }
    if (contender.own_latency) {
        block.merge(*contender.own_latency);
        *contender.own_latency = Latency{};
    }
    out.p50_us.push_back(block.quantile_us(0.5));
    out.rate.push_back(static_cast<double>(cycles) / seconds_since(start));
    out.all.merge(block);
}

void fail(Bench& bench, const std::string& scenario, const std::string& backend,
          const std::string& variant, const std::string& why) {
    Row row;
    row.scenario = scenario;
    row.backend = backend;
    row.variant = variant;
    row.metric = "failed";
    row.note = why;
    row.status = Status::failed;
    bench.add(std::move(row));
}

}  // namespace

Row row_of(const std::string& scenario, const Measured& m, double x) {
    Row row;
    row.scenario = scenario;
    row.backend = m.backend;
    row.variant = m.variant;
    row.x = x;
    row.n = m.all.count();
    return row;
}

void add_contender(Bench& bench, const std::string& scenario, std::vector<Contender>& all,
                   const std::string& backend, const std::string& variant,
                   const std::function<Contender()>& make) {
    try {
        all.push_back(make());
        all.back().backend = backend;
        all.back().variant = variant;
    } catch (const std::exception& error) {
        fail(bench, scenario, backend, variant, error.what());
    }
}

std::vector<Measured> measure_rounds(Bench& bench, const RoundPlan& plan,
                                     std::vector<Contender>& contenders) {
    std::vector<Measured> results;
    for (const Contender& c : contenders)
        results.push_back({c.backend, c.variant, {}, {}, {}, false});
    std::vector<std::size_t> order(contenders.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < plan.rounds && !bench.stopped(); ++round) {
        std::shuffle(order.begin(), order.end(), bench.random);
        for (const std::size_t i : order) {
            if (results[i].failed || bench.stopped()) continue;
            try {
                run_block(plan, contenders[i], results[i]);
            } catch (const std::exception& error) {
                results[i].failed = true;
                fail(bench, plan.scenario, results[i].backend, results[i].variant, error.what());
            }
        }
    }
    return results;
}

const Measured* find(const std::vector<Measured>& all, const std::string& backend,
                     const std::string& variant) {
    for (const Measured& m : all)
        if (m.backend == backend && m.variant == variant && !m.none()) return &m;
    return nullptr;
}

std::vector<double> ratios(const Measured& over, const Measured& under, Of of) {
    const auto& a = of == Of::p50 ? over.p50_us : under.rate;
    const auto& b = of == Of::p50 ? under.p50_us : over.rate;
    std::vector<double> out;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        if (b[i] > 0) out.push_back(a[i] / b[i]);
    return out;
}

}  // namespace holdfast::bench
