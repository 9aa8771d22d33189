// C19: the database lock that is a row, and the one that is improved: whether it ends with a
// crashed holder, lets its own holder in again, and lets others wait.
#include <atomic>
#include <thread>

#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"
#include "variants/sql_recipe.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C19";
constexpr const char* swept_table = "doc_lock_c19";

struct Form {
    Deployment mine, stranger;  ///< the same lock, with the identity of another host
    const char* table;          ///< of a document's form
};

struct Result {
    Count for_ever, entered_again, waited, freed_at_work;
    std::vector<double> without_holder;
};

/// Asks again and again, since some forms do not wait.
Lease insist(Party& party, milliseconds cap) {
    Lease lease;
    (void)lab::reached([&] { return (lease = party.ask(cap)).state() != LeaseState::empty; }, cap);
    return lease;
}

/// The holder is granted it again, and others are kept out until it has released twice.
bool enters_again(const Bench& bench, const Form& form, const std::string& name) {
    Party mine(bench, form.mine, name), other(bench, form.stranger, name);
    Lease outer = mine.must(lab::default_cap);
    Lease inner = mine.ask(milliseconds(0));
    if (inner.state() == LeaseState::empty) return false;
    inner.release();
    return other.ask(milliseconds(0)).state() == LeaseState::empty;
}

/// Somebody asks while it is held, and is granted it once it is released.
bool waits(const Bench& bench, const Form& form, const std::string& name) {
    Party mine(bench, form.mine, name), other(bench, form.stranger, name);
    Lease lease = mine.must(lab::default_cap);
    std::atomic<bool> granted{false}, answered{false};
    {
        const std::jthread asks([&] {
            granted = other.ask(lab::default_cap).state() != LeaseState::empty;
            answered = true;
        });
        // A caller that does not wait is refused by then.
        (void)lab::reached([&] { return answered.load(); }, std::chrono::milliseconds(300));
        lease.release();
    }
    return granted;
}

/// The holder is killed. Milliseconds until the next one is granted it, or -1.
double after_crash(Bench& bench, const Form& form, const std::string& name, milliseconds ttl) {
    HoldingProcess holder(bench, form.mine, name, ttl);
    holder.wait_held();
    Party other(bench, form.stranger, name);
    holder.process().kill();
    const auto killed = Clock::now();
    const Lease lease = insist(other, 4 * ttl);
    if (lease.state() != LeaseState::empty) return millis_since(killed);
    const auto left = sql_server(bench.site, form.mine.backend)()->run(
        std::string("SELECT count(*) FROM ") + form.table + " WHERE name = ?", {name});
    if (left.rows[0][0] != "1")
        throw SelfCheck("nobody was granted the lock, and yet its row is gone");
    return -1;
}

/// The holder works for three times as long as a lock lasts without being touched.
bool freed_at_work(const Bench& bench, const Form& form, const std::string& name,
                   milliseconds ttl) {
    LockOptions how;
    how.ttl = ttl;
    Party mine(bench, form.mine, name, how), other(bench, form.stranger, name, how);
    const Lease lease = mine.must(lab::default_cap);
    return insist(other, 3 * ttl).state() != LeaseState::empty && lease.valid();
}

void trial(Bench& bench, const Form& form, const std::string& name, milliseconds ttl,
           Result& result) {
    bool again = false, waited = false, freed = false;
    double gap = 0;
    side_by_side({[&] { again = enters_again(bench, form, name + "-again"); },
                  [&] { waited = waits(bench, form, name + "-waits"); },
                  [&] { gap = after_crash(bench, form, name + "-crash", ttl); },
                  [&] { freed = freed_at_work(bench, form, name + "-work", ttl); }});
    result.entered_again.add(again);
    result.waited.add(waited);
    result.for_ever.add(gap < 0);
    result.freed_at_work.add(freed);
    if (gap >= 0) result.without_holder.push_back(gap);
}

void run(Bench& bench, const std::vector<Form>& forms) {
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(400, 800, 1000)));
    const Sweeper sweeper(sql_server(bench.site, forms[0].mine.backend), swept_table, ttl);
    std::vector<Result> results(forms.size());
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t f = 0; f < forms.size(); ++f)
            jobs.emplace_back([&, f, i] {
                trial(bench, forms[f], "bench-c19-" + std::to_string(f) + "-" + std::to_string(i),
                      ttl, results[f]);
            });
        side_by_side(jobs);
    }
    for (std::size_t f = 0; f < forms.size(); ++f) {
        const Deployment& d = forms[f].mine;
        const bool holdfast = forms[f].table == nullptr;
        add_tally(bench, id, d, "held for ever after a crash", results[f].for_ever, holdfast,
                  "asked for 4 x ttl, and the row was still there");
        add_tally(bench, id, d, "entered again by its holder", results[f].entered_again, false);
        add_tally(bench, id, d, "waited for a release", results[f].waited, false);
        add_tally(bench, id, d, "freed while its holder worked", results[f].freed_at_work, holdfast,
                  "a job of 3 x ttl: two holders");
        add_times(bench, id, d, "time without a holder", results[f].without_holder,
                  "ttl, or the sweeper's age, " + std::to_string(ttl.count()) + " ms");
    }
}

std::vector<Form> forms_on(const Deployment& sql) {
    const auto form = [&](const char* words, const std::string& options, const char* table) {
        const std::string url = doc_url(sql.open) + options + "&table=" + table + "&identity=";
        return Form{variant_of(sql.backend, words, url + "host1-thread7"),
                    variant_of(sql.backend, words, url + "host2-thread9"), table};
    };
    return {
        form("doc: insert/delete", "form=insert&pause=0ms", "doc_lock_naive"),
        form("doc: owner, count, sweeper", "form=owner&pause=20ms", swept_table),
        {sql, sql, nullptr},
    };
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const char* backend : sql_backends)
        if (const auto* sql = site.find(backend))
            steps.push_back({sql->label() + " row as a lock, plain and improved",
                             [forms = forms_on(*sql)](Bench& bench) { run(bench, forms); }});
    return steps;
}

}  // namespace

Scenario c19_naive_sql() {
    return {id, "a row as a lock: expiry, entering again, waiting",
            "INSERT takes, DELETE by name frees; and with owner and count, read by SELECT ... FOR "
            "UPDATE, and a task that deletes rows older than the ttl. Its holder is killed; asks "
            "again; is waited for; works for 3 x ttl.",
            false, plan};
}

}  // namespace holdfast::bench
