// C11: a job of three times the ttl, with and without renewal, and with a longer ttl; and what a
// long ttl costs when the holder crashes.
#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C11";

struct Case {
    const char* words;
    bool renew;
    int ttls;  ///< the lock's ttl, in those of the run
};
constexpr Case cases[] = {
    {"renewal off", false, 1}, {"renewal on", true, 1}, {"ttl x 5", false, 5}};

struct Result {
    Count two[std::size(cases)];
    Count believed;  ///< the lease still called itself valid when the next one was granted
    std::vector<double> short_gap, long_gap;
};

/// Whether another one was granted the lock during a job of 3 x ttl whose worker never looks.
bool second_at_work(Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl,
                    const Case& how, Count& believed) {
    Holder worker(bench, d, name, {.ttl = how.ttls * ttl, .renew = how.renew},
                  bench.history(d, "C11-worker"));
    Holder other(bench, d, name, {}, bench.history(d, "C11-other"));
    const auto start = Clock::now();
    worker.must_acquire(lab::default_cap);
    const auto left = 3.0 * static_cast<double>(ttl.count()) - millis_since(start);
    const bool granted = other.ask(milliseconds(static_cast<long>(std::max(1.0, left))));
    believed.add(granted && worker.believes());
    return granted;
}

/// From the holder's SIGKILL to the next grant.
double gap(Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl) {
    HoldingProcess holder(bench, d, name, ttl, bench.history(d, "C11-killed"));
    holder.wait_held();
    Holder next(bench, d, name, {}, bench.history(d, "C11-next"));
    holder.process().kill();
    const auto killed = Clock::now();
    next.must_acquire(3 * ttl + lab::default_cap);
    return millis_since(killed);
}

void trial(Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl,
           Result& result) {
    bool two[std::size(cases)] = {};
    Count believed[std::size(cases)];
    double gaps[2] = {};
    std::vector<std::function<void()>> jobs;
    for (std::size_t c = 0; c < std::size(cases); ++c)
        jobs.emplace_back([&, c] {
            two[c] = second_at_work(bench, d, name + "-" + std::to_string(c), ttl, cases[c],
                                    believed[c]);
        });
    jobs.emplace_back([&] { gaps[0] = gap(bench, d, name + "-short", ttl); });
    jobs.emplace_back([&] { gaps[1] = gap(bench, d, name + "-long", 5 * ttl); });
    side_by_side(jobs);
    for (std::size_t c = 0; c < std::size(cases); ++c) {
        result.two[c].add(two[c]);
        result.believed.runs += believed[c].runs;
        result.believed.seen += believed[c].seen;
    }
    result.short_gap.push_back(gaps[0]);
    result.long_gap.push_back(gaps[1]);
}

void report(Bench& bench, const Deployment& d, const Result& result, milliseconds ttl) {
    for (std::size_t c = 0; c < std::size(cases); ++c)
        add_tally(bench, id, d, std::string("another at work: ") + cases[c].words, result.two[c],
                  false, "job of 3 x ttl, its worker never looks at its lease");
    add_tally(bench, id, d, "lease valid while another was granted", result.believed, true);
    const auto words = "ttl " + std::to_string(ttl.count()) + " ms";
    add_times(bench, id, d, "time without a holder after a crash", result.short_gap, words);
    add_times(bench, id, d, "time without a holder after a crash, ttl x 5", result.long_gap, words);
}

void run(Bench& bench) {
    // etcd sets whole seconds: less would not be its ttl.
    const auto ttl = roomy_ttl(bench, milliseconds(1000));
    const auto all = across_processes(bench.site);
    std::vector<Result> results(all.size());
    for (int i = 0; i < bench.options.pick(1, 1, 10) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t k = 0; k < all.size(); ++k)
            jobs.emplace_back([&, k, i] {
                trial(bench, all[k], "bench-c11-" + std::to_string(k) + "-" + std::to_string(i),
                      ttl, results[k]);
            });
        side_by_side(jobs);
    }
    for (std::size_t k = 0; k < all.size(); ++k)
        report(bench, all[k], results[k], ttl);
}

std::vector<Step> plan(const Options&, const Site&) {
    return {{"job of 3 x ttl, all backends side by side", run}};
}

}  // namespace

Scenario c11_long_job() {
    return {id, "a job of three times the ttl",
            "A worker that never looks at its lease works for 3 x ttl: without renewal, with it, "
            "and with a ttl five times as long; another client asks meanwhile. Then a holder with "
            "renewal is killed, with the short ttl and with the long one.",
            false, plan};
}

}  // namespace holdfast::bench
