// C4a: Redlock's nodes asked one after the other, and all at once; all of them up, and one hung.
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C4a";

/// Milliseconds of acquire + release, one after the other.
std::vector<double> cycles(Party& party, int n) {
    std::vector<double> all;
    for (int i = 0; i < n; ++i) {
        const auto start = Clock::now();
        Lease lease = party.must(lab::default_cap);
        lease.release();
        all.push_back(millis_since(start));
    }
    return all;
}

void run(Bench& bench, const std::vector<Deployment>& forms) {
    std::vector<std::unique_ptr<Party>> parties;
    for (const Deployment& d : forms)
        parties.push_back(std::make_unique<Party>(bench, d, "bench-c4a"));
    // The first cycle of each is a row of its own: it connects, or finds out that a node is hung.
    const auto measure = [&](const char* first, const char* metric, int n) {
        for (std::size_t f = 0; f < forms.size() && !bench.stopped(); ++f) {
            add_times(bench, id, forms[f], first, cycles(*parties[f], 1), "acquire + release");
            add_times(bench, id, forms[f], metric, cycles(*parties[f], n), "acquire + release");
        }
    };
    measure("first cycle, connecting", "cycle, all nodes up", bench.options.pick(20, 100, 300));
    lab::RedisServer& hung = bench.site.redlock_nodes().at(2);
    hung.pause();  // returns when the kernel shows every thread as stopped
    try {
        measure("first cycle after a node hung", "cycle, one node hung",
                bench.options.pick(5, 20, 60));
    } catch (...) {
        hung.resume();
        throw;
    }
    hung.resume();
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Deployment> forms;
    for (const char* variant : {"no token", "default"})
        if (const auto* d = site.find("redlock", variant)) forms.push_back(*d);
    if (forms.empty()) return {};
    // Last: its slow cycles would give the others time to find out by themselves that a node hangs.
    forms.push_back(variant_of("redlock", "doc: in turn", doc_url(forms[0].open)));
    return {{"redlock in turn and at once, one node hung",
             [forms](Bench& bench) { run(bench, forms); }}};
}

}  // namespace

Scenario c4a_in_turn() {
    return {id, "Redlock's nodes asked in turn, or at once",
            "Acquire and release, again and again, by one caller: five nodes one after the other "
            "with 50 ms for each, and Holdfast's parallel rounds. Then the third node is stopped "
            "(SIGSTOP, proved by the kernel's state).",
            false, plan};
}

}  // namespace holdfast::bench
