// C23, the half that an exclusive lock has: what readers pay who need not be alone, and what a
// writer among them waits.
#include <fmt/format.h>

#include "measure/crowd.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C23";
constexpr std::size_t callers = 100;
constexpr milliseconds inside{1};

void report(Bench& bench, const Deployment& d, double readers, const CrowdResult& seen) {
    Row row = row_of(id, d, readers);
    row.n = seen.grants;
    row.note = fmt::format("{} callers, {} ms inside each, readers alone as well", callers,
                           inside.count());
    const auto add = [&](const char* metric, const char* unit, double value) {
        row.metric = metric;
        row.unit = unit;
        bench.add_value(row, value);
    };
    double reads = 0, longest_ms = 0;
    for (std::size_t i = 0; i < seen.shares.size(); ++i) {
        const bool reader = static_cast<double>(i) < readers / 100 * callers;
        if (reader)
            reads += static_cast<double>(seen.shares[i].grants);
        else
            longest_ms = std::max(longest_ms, seen.shares[i].longest_ms);
    }
    add("grants per second", "1/s", static_cast<double>(seen.grants) / seen.seconds);
    add("reads per second", "1/s", reads / seen.seconds);
    add("requests per grant", "",
        static_cast<double>(seen.requests) / static_cast<double>(seen.grants));
    add("writer's longest wait", "ms", longest_ms);
    if (seen.two_at_once > 0) row.status = Status::violated;
    add("granted while another was inside", "", static_cast<double>(seen.two_at_once));
}

void run(Bench& bench, const Deployment& d) {
    Crowd crowd(d, callers - 1, "bench/readers", inside);
    // Until everybody is in line, and the lock goes round.
    for (int tries = 0; tries < 20; ++tries)
        if (crowd.run_for(bench.options.pick(0.1, 0.4, 1.0)).grants > 0) break;
    for (const double readers : {50.0, 90.0, 99.0}) {
        if (bench.stopped()) break;
        const auto seen = crowd.run_for(bench.options.pick(0.25, 0.7, 5.0));
        if (seen.grants == 0) throw SelfCheck("nobody was granted the lock");
        report(bench, d, readers, seen);
    }
    crowd.end();
}

}  // namespace

Scenario c23_readers() {
    return {id, "readers and writers of one exclusive lock: 50, 90 and 99 % readers",
            "100 callers in 10 clients want one lock for 1 ms each, again and again. A share of "
            "them only reads and would not have to be alone; Holdfast's lock is exclusive, so they "
            "are. The writer's longest wait is from asking to the grant, or to the end for who "
            "still waits.",
            false, [](const Options&, const Site& site) {
                std::vector<Step> steps;
                for (const char* backend : {"redis", "zookeeper", "etcd", "postgresql"})
                    if (const Deployment* d = site.find(backend))
                        steps.push_back({d->label() + " readers and writers",
                                         [d = *d](Bench& bench) { run(bench, d); }});
                return steps;
            }};
}

}  // namespace holdfast::bench
