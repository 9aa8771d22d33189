// C1, beside it: what the articles' other forms cost alone, and whether they are locks at all.
#include <set>

#include "measure/alone.hpp"
#include "measure/callers.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";
constexpr std::size_t contenders = 6;

struct Form {
    const char* backend;
    const char* variant;
    const char* options;  ///< of the document's form on that server
    bool enters_again = false, excludes = true;
};
constexpr Form forms[] = {
    {"redis", "doc: hash with owner and count", "take=hash&pause=5ms", true},
    {"postgresql", "doc: row with owner and count", "form=owner&table=doc_lock_c1&pause=5ms", true},
    {"mysql", "doc: row with owner and count", "form=owner&table=doc_lock_c1&pause=5ms", true},
    {"zookeeper", "doc: semaphore of one lease", "form=semaphore&session=30s&pause=5ms"},
    {"postgresql", "doc: state/version, UPDATE by name",  // the control: two can take it
     "form=version&table=doc_lock_c1_version&pause=5ms&update=by-name", false, false},
    {"mysql", "doc: state/version, UPDATE by name",
     "form=version&table=doc_lock_c1_version&pause=5ms&update=by-name", false, false},
};

Deployment deployment_of(const Form& form, const Site& site, const std::string& more = {}) {
    return variant_of(form.backend, form.variant,
                      doc_url(site.find(form.backend)->open) + form.options + more);
}

void measure(Bench& bench) {
    std::vector<Contender> all;
    std::set<std::string> beside;
    for (const Form& form : forms) {
        const Deployment* own = bench.site.find(form.backend);
        if (own == nullptr || !form.excludes) continue;
        add_contender(bench, id, all, form.backend, form.variant,
                      [&] { return alone(deployment_of(form, bench.site), "bench-c1-documents"); });
        if (beside.insert(form.backend).second)
            add_contender(bench, id, all, form.backend, "default",
                          [&] { return alone(*own, "bench/c1-documents"); });
    }
    const RoundPlan plan{id, bench.options.pick(3, 5, 15), bench.options.pick(0.03, 0.08, 0.5), 5};
    const auto measured = measure_rounds(bench, plan, all);
    for (const Measured& m : measured) {
        const Measured* own = find(measured, m.backend, "default");
        if (m.none() || m.variant == "default") continue;
        Row row = row_of(id, m, 1);
        row.unit = "us";
        row.metric = "p50";
        row.note = "one blocking caller, behind Holdfast's interface; acquire + release";
        bench.add(row, spread_of(m.p50_us));
        row.metric = "p99";
        bench.add_value(row, m.all.quantile_us(0.99));
        if (own == nullptr) continue;
        row.unit = "x";
        row.metric = "time over Holdfast's";
        row.note = "over '" + m.backend + "' in the same rounds";
        bench.add(row, spread_of(ratios(m, *own, Of::p50)));
    }
}

/// The holder is granted it again, and somebody else only when he has released twice.
bool enters_again(const Bench& bench, const Form& form, const std::string& name) {
    Party mine(bench, deployment_of(form, bench.site, "&identity=one"), name);
    Party other(bench, deployment_of(form, bench.site, "&identity=other"), name);
    Lease outer = mine.must(lab::default_cap);
    Lease inner = mine.ask(milliseconds(0));
    if (inner.state() == LeaseState::empty) return false;
    inner.release();
    if (other.ask(milliseconds(0)).state() != LeaseState::empty) return false;
    outer.release();
    return other.ask(milliseconds(0)).state() != LeaseState::empty;
}

void control(Bench& bench, const Form& form) {
    if (bench.site.find(form.backend) == nullptr) return;
    const Deployment d = deployment_of(form, bench.site);
    Callers callers(d, contenders, Conflict::waits, "bench-c1-control");
    auto seen = callers.run_for(bench.options.pick(0.3, 0.4, 2.0));
    // What is there to be caught gets more time on a busy machine.
    for (int tries = 0; tries < 20 && !form.excludes && seen.two_at_once == 0; ++tries)
        seen = callers.run_for(0.3);
    callers.end();
    if (seen.grants == 0) throw SelfCheck("nobody was granted the lock");
    Row row = row_of(id, d, contenders);
    row.n = seen.grants;
    row.metric = "granted while another was inside";
    row.note = form.excludes ? "" : "the control: there to be caught";
    bench.add_value(row, static_cast<double>(seen.two_at_once));
    if (form.excludes != (seen.two_at_once == 0))
        throw SelfCheck(d.label() + (form.excludes ? " is no lock" : " was not caught"));
    if (form.enters_again && !enters_again(bench, form, "bench-c1-again"))
        throw SelfCheck(d.label() + " does not let its owner in again, or others in between");
}

}  // namespace

Scenario c1_documents() {
    return {id, "the articles' other forms, uncontended, beside Holdfast's",
            "Redisson's hash, a row with owner and count, Curator's semaphore of one lease: as in "
            "C1, in rounds with Holdfast's own on the same server. Then 6 callers contend for each "
            "(nobody may be granted while another holds), and an owner enters again where the form "
            "allows it; a form that is no lock has to be caught.",
            false, [](const Options&, const Site&) {
                std::vector<Step> steps{{"articles' forms, uncontended", measure}};
                for (const Form& form : forms)
                    steps.push_back({std::string(form.backend) + " " + form.variant + ", contended",
                                     [&form](Bench& bench) { control(bench, form); }});
                return steps;
            }};
}

}  // namespace holdfast::bench
