// C19a: a row with state and version, taken optimistically: who else believes that he took it?
#include "measure/callers.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"
#include "variants/sql_connection.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C19a";
constexpr std::size_t contenders = 6;

struct Form {
    Deployment deployment;
    bool holdfast = false;
};

void run(Bench& bench, const std::vector<Form>& forms) {
    for (std::size_t f = 0; f < forms.size(); ++f) {
        Count tally;
        std::size_t grants = 0, wrong = 0;
        for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
            Callers callers(forms[f].deployment, contenders, Conflict::waits,
                            "bench-c19a-" + std::to_string(f) + "-" + std::to_string(i));
            const auto seen = callers.run_for(bench.options.pick(0.4, 0.6, 0.6));
            callers.end();
            if (seen.grants == 0) throw SelfCheck("nobody was granted the lock");
            tally.add(seen.two_at_once > 0);
            grants += seen.grants;
            wrong += seen.two_at_once;
        }
        add_tally(bench, id, forms[f].deployment, "two holders at once", tally, forms[f].holdfast,
                  std::to_string(wrong) + " of " + std::to_string(grants) +
                      " grants while another held it");
    }
}

std::vector<Form> forms_on(const Deployment& sql) {
    const auto form = [&](const char* words, const char* update) {
        return Form{variant_of(sql.backend, words,
                               doc_url(sql.open) + "form=version&table=doc_lock_version&" +
                                   "pause=10ms&update=" + update),
                    false};
    };
    return {
        form("doc: state/version, UPDATE by name", "by-name"),
        form("doc: state/version, count not looked at", "uncounted"),
        form("corrected: state/version compared and counted", "counted"),
        {sql, true},
    };
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const char* backend : sql_backends)
        if (const auto* sql = site.find(backend))
            steps.push_back({sql->label() + " row with state and version, as printed and corrected",
                             [forms = forms_on(*sql)](Bench& bench) { run(bench, forms); }});
    return steps;
}

}  // namespace

Scenario c19a_state_version() {
    return {id, "a row with state and version, as articles print it and corrected",
            "6 callers read state and version and then update the row, each statement a "
            "transaction of its own; who was granted holds for 1 ms, releases, has another job for "
            "5 ms, and asks again. Caught: in one run some caller was granted while another held.",
            false, plan};
}

}  // namespace holdfast::bench
