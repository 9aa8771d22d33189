// C11a: the worker hangs while its process lives, so that the watchdog goes on renewing.
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C11a";

struct Result {
    Count kept, ended, believed;
    std::vector<double> freed;
};

/// The holder's lease is never looked at and never released, and its client renews.
void trial(Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl,
           Result& result) {
    LockOptions endless, limited;
    endless.ttl = limited.ttl = ttl;
    limited.max_hold = 2 * ttl;
    Party hangs(bench, d, name, endless), waits(bench, d, name, endless);
    Party limit(bench, d, name + "-limit", limited), next(bench, d, name + "-limit", endless);

    bool kept = false, ended = false, believed = false;
    double freed = 0;
    side_by_side({[&] {
                      const Lease lease = hangs.must(5 * ttl);
                      kept = waits.ask(8 * ttl).state() == LeaseState::empty;
                  },
                  [&] {
                      const Lease lease = limit.must(5 * ttl);
                      const auto granted = Clock::now();
                      const Lease second = next.ask(8 * ttl);
                      freed = millis_since(granted);
                      ended = second.state() != LeaseState::empty;
                      believed = ended && lease.valid();
                  }});
    result.kept.add(kept);
    result.ended.add(ended);
    result.believed.add(believed);
    if (ended) result.freed.push_back(freed);
}

void run(Bench& bench) {
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(300, 500, 1000)));
    std::vector<Deployment> all;
    for (const Deployment& d : bench.site.deployments())
        if (d.variant != "durable" && d.variant != "poll") all.push_back(d);
    std::vector<Result> results(all.size());
    for (int i = 0; i < bench.options.pick(1, 1, 10) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t k = 0; k < all.size(); ++k)
            jobs.emplace_back([&, k, i] {
                trial(bench, all[k], "bench-c11a-" + std::to_string(k) + "-" + std::to_string(i),
                      ttl, results[k]);
            });
        side_by_side(jobs);
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
        const Result& r = results[k];
        add_tally(bench, id, all[k], "still held after 8 x ttl", r.kept, false,
                  "the worker hangs, its client renews");
        add_tally(bench, id, all[k], "ended by max_hold", r.ended, false, "max_hold = 2 x ttl");
        add_tally(bench, id, all[k], "lease valid while another was granted", r.believed, true);
        add_times(bench, id, all[k], "time until the next holder with max_hold", r.freed,
                  "ttl " + std::to_string(ttl.count()) + " ms");
    }
}

std::vector<Step> plan(const Options&, const Site&) {
    return {{"hanging worker, all backends side by side", run}};
}

}  // namespace

Scenario c11a_watchdog() {
    return {id, "the worker hangs while its process lives",
            "A lease is neither looked at nor released while its client renews it; another client "
            "asks for 8 x ttl. The same with max_hold = 2 x ttl.",
            false, plan};
}

}  // namespace holdfast::bench
