// C14: how many of Redlock's five nodes may be lost?
#include "faults/five.hpp"
#include "faults/holder.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C14";

struct Seen {
    std::size_t granted = 0, asked = 0;
    bool kept = false;   ///< the holder renewed past the time promised when the nodes were killed
    double told_ms = 0;  ///< after the nodes were killed; 0: it was not told
    double refused_ms = 0;  ///< how long the slowest refusal took
    Latency cycles;
};

Seen play(const Bench& bench, Five& five, std::size_t killed, int ttl_ms) {
    const auto cap = milliseconds(4 * ttl_ms) + lab::default_cap;
    const std::string query = "durable=yes&ttl=1s&max_ttl=5s";
    const Deployment d = five.whole(query);
    Holder holder(bench, d, "bench/minority", {.ttl = milliseconds(ttl_ms)},
                  bench.history(d, "C14-holder"));
    holder.must_acquire(cap);
    const auto client = bench.open(d);
    LockOptions fixed;
    fixed.ttl = milliseconds(ttl_ms);
    const auto other = bench.lock(client, d, "bench/minority/other", fixed);
    auto warm = other->acquire();
    if (!warm) check(warm.error(), "acquire with all nodes");
    if (warm->release() != ReleaseResult::released) throw SelfCheck("a release was not answered");

    for (std::size_t i = 0; i < killed; ++i)
        five[i].kill();
    const double fault = boot_ms();
    const double promised = holder.promised_until_ms();
    Seen seen;
    for (seen.asked = 0; seen.asked < 10; ++seen.asked) {
        const auto start = Clock::now();
        auto lease = other->acquire({.wait = milliseconds(0)});
        if (lease) {
            ++seen.granted;
            lease->release();
            seen.cycles.add(Clock::now() - start);
        } else {
            seen.refused_ms = std::max(seen.refused_ms, millis_since(start));
        }
    }
    lab::wait_until([&] { return holder.told_ms() > 0 || boot_ms() > promised + 100; }, cap,
                    "the end of the time promised before the nodes were killed");
    seen.kept = holder.believes();
    seen.told_ms = holder.told_ms() > 0 ? holder.told_ms() - fault : 0;
    return seen;
}

void add_rows(Bench& bench, std::size_t killed, const std::vector<Seen>& all, int ttl_ms) {
    Row row;
    row.scenario = id;
    row.backend = "redlock";
    row.variant = "default";
    row.x = static_cast<double>(killed);
    row.n = all.size();
    row.note = std::to_string(killed) + " of 5 nodes killed, ttl " + std::to_string(ttl_ms) + " ms";
    std::size_t asked = 0, granted = 0, kept = 0;
    std::vector<double> told, refused;
    Latency cycles;
    for (const Seen& seen : all) {
        asked += seen.asked;
        granted += seen.granted;
        kept += seen.kept ? 1 : 0;
        if (seen.told_ms > 0) told.push_back(seen.told_ms);
        if (seen.refused_ms > 0) refused.push_back(seen.refused_ms);
        cycles.merge(seen.cycles);
    }
    row.metric = "holders that kept their lease";
    row.unit = "of " + std::to_string(row.n) + " runs";
    bench.add_value(row, static_cast<double>(kept));
    row.unit.clear();
    row.n = asked;
    row.metric = "share of attempts granted";
    bench.add_value(row, static_cast<double>(granted) / static_cast<double>(asked));
    row.unit = "ms";
    if (cycles.count() > 0) {
        row.n = cycles.count();
        row.metric = "acquire + release, p50";
        bench.add_value(row, cycles.quantile_us(0.5) / 1000);
        row.metric = "acquire + release, slowest";
        bench.add_value(row, cycles.max_us() / 1000);
    }
    if (!told.empty()) {
        row.n = told.size();
        row.metric = "time until the holder was told";
        bench.add(row, spread_of(told));
    }
    if (!refused.empty()) {
        row.n = refused.size();
        row.metric = "longest time to a refusal";
        bench.add(row, spread_of(refused));
    }
}

void run(Bench& bench) {
    const int ttl_ms = bench.options.pick(400, 1000, 1000);
    Five five(bench.site.folder(), true);
    for (std::size_t killed = 1; killed <= 3 && !bench.stopped(); ++killed) {
        std::vector<Seen> all;
        for (int i = 0; i < bench.options.pick(1, 2, 10) && !bench.stopped(); ++i) {
            all.push_back(play(bench, five, killed, ttl_ms));
            for (std::size_t node = 0; node < killed; ++node)
                five[node].restart(lab::Data::keep);
        }
        add_rows(bench, killed, all, ttl_ms);
    }
}

}  // namespace

Scenario c14_minority() {
    return {id, "1, 2 and 3 of Redlock's 5 nodes are killed",
            "A holder renews; nodes are killed (SIGKILL). Another client asks for a free lock ten "
            "times, once each. Kept: the holder's lease is still valid after the time that was "
            "promised when the nodes were killed. Afterwards they are restarted with their data.",
            false, [](const Options&, const Site& site) {
                std::vector<Step> steps;
                if (site.find("redlock") != nullptr)
                    steps.push_back({"redlock, 1, 2, 3 of 5 nodes killed", run});
                return steps;
            }};
}

}  // namespace holdfast::bench
