// C20: a lock makes no transaction: the holder after one that crashed, or failed, between
// two steps finds the first one done. What tells it?
#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C20";
constexpr int readers = 2;  ///< after the one who repairs

struct Fault {
    const char* job;
    const char* words;
};
constexpr Fault faults[] = {{"update", "crash"}, {"update-throws", "exception"}};

struct Result {
    Count found, unflagged, untold, repaired, acted;
};

/// What there is to read: two values that belong together.
bool half(const Store& store) {
    return store.cell("left") != store.cell("right");
}

void trial(Bench& bench, const Deployment& d, const Fault& fault, const std::string& name,
           milliseconds ttl, Result& result) {
    const SetUp set_up{id, d.backend, d.variant, true, {}};
    HoldingProcess writer(bench, d, name, ttl, history_of(bench, set_up, d, "A"), fault.job);
    Store& store = writer.store();
    store.put("ready", 1);
    writer.wait_held();
    if (&fault == &faults[0]) writer.process().kill();
    const milliseconds patience = 5 * ttl + lab::default_cap;
    const auto must_be_told = [](const Lease& lease) {
        return lease.previous_holder() == PreviousHolder::crashed ||
               lease.previous_holder() == PreviousHolder::abandoned;
    };
    Holder next(bench, d, name, {.ttl = ttl}, history_of(bench, set_up, d, "B"));
    next.must_acquire(patience);
    const bool flagged = store.cell("ready") == 0, told = must_be_told(next.lease());
    result.found.add(half(store));
    result.unflagged.add(!flagged);
    result.untold.add(!told);
    if (flagged || told) {  // the repair: the second step
        store.put("right", store.cell("left"));
        store.put("ready", 1);
    }
    result.repaired.add(!half(store));
    next.release();
    for (int i = 0; i < readers; ++i) {
        Holder reader(bench, d, name, {.ttl = ttl}, history_of(bench, set_up, d, "C"));
        reader.must_acquire(patience);
        // A reader that goes by flag and previous holder acts on nothing else.
        const bool acts = store.cell("ready") == 1 && !must_be_told(reader.lease());
        result.acted.add(acts && half(store));
        reader.release();
    }
}

void add_rows(Bench& bench, const Deployment& d, const char* fault, const Result& result,
              bool tells) {
    const auto metric = [&](const char* what) { return std::string(what) + ": " + fault; };
    add_tally(bench, id, d, metric("half-done work found by the next holder"), result.found, false,
              "it has the lock, and the first of two steps is done");
    add_tally(bench, id, d, metric("not told by a flag in the store"), result.unflagged, false);
    if (tells)  // other modes do not declare it
        add_tally(bench, id, d, metric("not told by previous_holder()"), result.untold, true);
    add_tally(bench, id, d, metric("repaired by the next holder"), result.repaired, false);
    add_tally(bench, id, d, metric("readers that acted on the half"), result.acted, false,
              "of those after the repair, who go by flag and previous holder");
}

void run(Bench& bench) {
    const auto deployments = across_processes(bench.site);
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(600, 800, 1000)));
    std::vector<std::pair<const Deployment*, const Fault*>> set_ups;
    for (const Deployment& d : deployments)
        for (const Fault& fault : faults)
            set_ups.emplace_back(&d, &fault);
    std::vector<Result> results(set_ups.size());
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t s = 0; s < set_ups.size(); ++s)
            jobs.emplace_back([&, s, i] {
                trial(bench, *set_ups[s].first, *set_ups[s].second,
                      "bench-c20-" + std::to_string(s) + "-" + std::to_string(i), ttl, results[s]);
            });
        side_by_side(jobs);
    }
    for (std::size_t s = 0; s < set_ups.size(); ++s) {
        const Deployment& d = *set_ups[s].first;
        const bool tells = bench.open(d).capabilities().has(Capability::previous_holder);
        add_rows(bench, d, set_ups[s].second->words, results[s], tells);
    }
}

}  // namespace

Scenario c20_half_done() {
    return {id, "a crash or an exception between two steps, and who tells the next holder",
            "A process takes the lock, marks a record as not ready and writes the first of its two "
            "values; then it is killed, or throws. The next holder looks at the flag and at "
            "previous_holder(), and does the second step if either tells him; two more "
            "readers follow. All backends at once.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{{"two steps, the second of which is missing", run}};
            }};
}

}  // namespace holdfast::bench
