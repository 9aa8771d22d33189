// C23: readers share, a writer is alone. What sharing gains, what a writer among readers waits, and
// which node ZooKeeper's readers had better watch.
#include <fmt/format.h>

#include "measure/crowd.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_readers.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C23";
constexpr std::size_t callers = 100;
constexpr std::size_t shares[] = {50, 90, 99};
constexpr milliseconds inside{1};
constexpr const char* all_exclusive = "all exclusive";

void report(Bench& bench, Row row, const ReadersResult& seen, bool promised) {
    row.n = seen.grants;
    if (row.note.empty())
        row.note = fmt::format("{} callers, {} ms inside", callers, inside.count());
    const auto add = [&](const char* metric, const char* unit, double value) {
        row.metric = metric;
        row.unit = unit;
        bench.add_value(row, value);
    };
    const auto per_grant = [&](std::uint64_t count) {
        return static_cast<double>(count) / static_cast<double>(seen.grants);
    };
    const double a_second = static_cast<double>(seen.grants) / seen.seconds;
    add("grants per second", "1/s", a_second);
    if (const Row* exclusive =
            find(bench.rows, {id, row.backend, all_exclusive, "grants per second", 0});
        exclusive != nullptr && exclusive->value > 0 && row.variant == "default")
        add("grants over all exclusive", "x", a_second / exclusive->value);
    add("reads per second", "1/s", static_cast<double>(seen.reads) / seen.seconds);
    if (seen.grants > 0) add("requests per grant", "", per_grant(seen.requests));
    if (!promised && seen.grants > 0)
        add("notifications per grant", "", per_grant(seen.notifications));
    add("writer's longest wait", "ms", seen.writers_longest_ms);
    if (promised && seen.two_at_once > 0) row.status = Status::violated;
    add("granted beside a writer", "", static_cast<double>(seen.two_at_once));
}

ReadersResult sum_of(const CrowdResult& crowd) {
    ReadersResult sum;
    sum.seconds = crowd.seconds;
    sum.grants = crowd.grants;
    sum.two_at_once = crowd.two_at_once;
    sum.requests = crowd.requests;
    for (const auto& one : crowd.shares)
        if (one.reads)
            sum.reads += one.grants;
        else
            sum.writers_longest_ms = std::max(sum.writers_longest_ms, one.longest_ms);
    return sum;
}

/// Runs until everybody has stood in line and had a turn, and then for the measurement.
template <class Readers>
auto measure(Bench& bench, Readers& readers) {
    std::size_t turns = 0;
    for (int tries = 0; tries < 40 && turns < callers && !bench.stopped(); ++tries)
        turns += readers.run_for(bench.options.pick(0.05, 0.05, 0.5)).grants;
    double seconds = bench.options.pick(0.15, 0.3, 5.0);
    auto seen = readers.run_for(seconds);
    for (int tries = 0; tries < 3 && seen.grants < callers / 4; ++tries)  // readers come in bursts
        seen = readers.run_for(seconds *= 2);
    return seen;
}

void run(Bench& bench, const Deployment& d) {
    for (const std::size_t readers : {std::size_t{0}, shares[0], shares[1], shares[2]}) {
        if (bench.stopped()) break;
        if (readers == shares[1] && bench.options.effort == Effort::quick) continue;
        Crowd crowd(d, callers - 1, fmt::format("bench/readers/{}", readers), inside, readers);
        Row row = row_of(id, d, static_cast<double>(readers));
        if (readers == 0) row.variant = all_exclusive;
        report(bench, row, sum_of(measure(bench, crowd)), true);
        crowd.end();
    }
}

void run_bare(Bench& bench, const std::string& servers) {
    using Watches = ZooKeeperReaders::Watches;
    for (const auto& [watches, words] :
         {std::pair{Watches::parent, "doc: readers watch the parent"},
          {Watches::last_writer, "doc: readers watch the last earlier writer"}})
        for (const std::size_t readers : shares) {
            if (bench.stopped()) break;
            if (readers == shares[1] && bench.options.effort == Effort::quick) continue;
            ZooKeeperReaders crowd(servers, fmt::format("/bench-readers-{}", readers), callers,
                                   readers, watches, inside);
            Row row;
            row.scenario = id;
            row.backend = "zookeeper";
            row.variant = words;
            row.x = static_cast<double>(readers);
            row.note = fmt::format("{} bare sessions, {} ms inside", callers, inside.count());
            report(bench, row, measure(bench, crowd), false);
        }
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments())
        if (d.variant == "default")
            steps.push_back(
                {d.label() + " readers and writers", [d](Bench& bench) { run(bench, d); }});
    if (site.find("zookeeper") != nullptr)
        steps.push_back({"zookeeper readers, bare: what they watch", [](Bench& bench) {
                             run_bare(bench, bench.site.zookeeper()->connect_string());
                         }});
    return steps;
}

}  // namespace

Scenario c23_readers() {
    return {
        id, "readers and writers: 50, 90 and 99 % readers",
        "100 callers in 10 clients want a shared_mutex for 1 ms each, again and again; a share "
        "of them only in shared mode. Beside it the same with all exclusive. The writer's "
        "longest wait is from asking to the grant, or to the end for one that still waits. Bare "
        "ZooKeeper sessions do the same: their readers watch the parent, or the last writer "
        "before them.",
        false, plan};
}

}  // namespace holdfast::bench
