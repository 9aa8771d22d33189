// C20a: a holder crashes between two steps and comes back with the same host and thread id.
#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"
#include "variants/sql_connection.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C20a";

struct Form {
    Deployment deployment;
    bool holdfast = false;
};

struct Result {
    Count at_once, told;
    std::vector<double> until;
};

void trial(Bench& bench, const Form& form, const std::string& name, milliseconds ttl,
           Result& result) {
    const Deployment& d = form.deployment;
    const SetUp set_up{id, d.backend, d.variant, form.holdfast, {}};
    Holder again(bench, d, name, {},  // host and thread as the holder's
                 history_of(bench, set_up, d, "B"));
    HoldingProcess holder(bench, d, name, ttl, history_of(bench, set_up, d, "A"));
    holder.wait_held();
    if (holder.steps() != 1) throw SelfCheck("the first of two steps was to be done");
    holder.process().kill();
    const auto killed = Clock::now();
    again.must_acquire(5 * ttl + lab::default_cap);
    const double until = millis_since(killed);
    // The dead holder's lease, just granted or renewed, has two thirds of its ttl left.
    result.at_once.add(until < static_cast<double>(ttl.count()) / 3);
    result.told.add(again.lease().previous_holder() == PreviousHolder::crashed);
    result.until.push_back(until);
}

void run(Bench& bench, const std::vector<Form>& forms) {
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(400, 800, 1000)));
    std::vector<Result> results(forms.size());
    std::vector<bool> tells;
    for (const Form& form : forms)
        tells.push_back(
            form.holdfast &&
            bench.open(form.deployment).capabilities().has(Capability::previous_holder));
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t f = 0; f < forms.size(); ++f)
            jobs.emplace_back([&, f, i] {
                trial(bench, forms[f], "bench-c20a-" + std::to_string(f) + "-" + std::to_string(i),
                      ttl, results[f]);
            });
        side_by_side(jobs);
    }
    for (std::size_t f = 0; f < forms.size(); ++f) {
        const Deployment& d = forms[f].deployment;
        add_tally(bench, id, d, "entered at once over half-done work", results[f].at_once, false,
                  "after a crash, with the same host and thread");
        const Count untold{results[f].told.runs, results[f].told.runs - results[f].told.seen};
        add_tally(bench, id, d, "not told that the holder before crashed", untold, tells[f],
                  forms[f].holdfast && !tells[f] ? "this mode declares no previous_holder" : "");
        add_times(bench, id, d, "time until it was granted again", results[f].until,
                  "ttl " + std::to_string(ttl.count()) + " ms");
    }
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Form> forms;
    for (const char* backend : sql_backends)
        if (const auto* sql = site.find(backend))
            forms.push_back(
                {variant_of(
                     backend, "doc: host and thread",
                     doc_url(sql->open) + "form=owner&table=doc_lock_c20a&identity=host1-thread7"),
                 false});
    for (const Deployment& d : across_processes(site))
        forms.push_back({d, true});
    return {
        {"restart after a crash between two steps", [forms](Bench& bench) { run(bench, forms); }}};
}

}  // namespace

Scenario c20a_identity() {
    return {id, "a holder crashes between two steps and comes back",
            "A process takes the lock, does the first of two steps and is killed. It is started "
            "again and asks: with the same host and thread id as its identity, and with Holdfast.",
            false, plan};
}

}  // namespace holdfast::bench
