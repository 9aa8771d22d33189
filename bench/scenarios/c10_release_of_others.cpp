// C10: a holder works longer than the lock lasts and then releases: its own, or whatever is there?
#include <fmt/format.h>

#include <deque>
#include <optional>

#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "measure/tries.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"
#include "variants/sql_recipe.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C10";
constexpr const char* table = "doc_lock_swept";
constexpr const char* version_table = "doc_lock_version_swept";

struct Form {
    Deployment deployment;
    bool holdfast = false;
};

/// A works for longer than its lock lasts, B is granted, A releases, C asks. Whether C was granted
/// while B's time had barely begun. Empty: too late to tell whose time it was.
std::optional<bool> two_holders(Bench& bench, const Form& form, const std::string& name,
                                milliseconds ttl) {
    const Deployment& d = form.deployment;
    const SetUp set_up{id, d.backend, d.variant, form.holdfast, {}};
    const LockOptions fixed{.ttl = ttl, .renew = false};
    Holder a(bench, d, name, fixed, history_of(bench, set_up, d, "A"));
    Holder b(bench, d, name, {.ttl = ttl}, history_of(bench, set_up, d, "B"));
    Holder c(bench, d, name, fixed, history_of(bench, set_up, d, "C"));
    a.must_acquire(lab::default_cap);
    b.must_acquire(10 * ttl + lab::default_cap);
    const auto granted = Clock::now();
    a.release();
    const bool third = c.ask(ttl / 2);
    const bool in_time = millis_since(granted) < 0.8 * static_cast<double>(ttl.count());
    if (!third || !b.believes()) return false;
    if (!in_time) return std::nullopt;
    return true;
}

std::vector<Form> forms(const Site& site, milliseconds ttl) {
    std::vector<Form> all;
    const auto add = [&](const char* backend, const char* variant, const std::string& url) {
        all.push_back({variant_of(backend, variant, url), false});
    };
    if (const auto* redis = site.find("redis")) {
        const std::string at = doc_url(redis->open) + "pause=20ms&give=";
        add("redis", "doc: DEL", at + "del");
        add("redis", "checked: compare-and-delete", at + "checked");
    }
    for (const char* backend : sql_backends) {
        const auto* sql = site.find(backend);
        if (sql == nullptr) continue;
        const std::string at = doc_url(sql->open) + "pause=20ms&table=" + table + "&give=";
        add(backend, "doc: DELETE by name", at + "by-name");
        add(backend, "checked: DELETE by name and owner", at + "checked");
        const std::string row =
            doc_url(sql->open) + "form=version&pause=20ms&table=" + version_table + "&update=";
        add(backend, "doc: state/version, UPDATE by name", row + "by-name");
        add(backend, "checked: state/version compared", row + "counted");
    }
    if (const auto* zookeeper = site.find("zookeeper")) {
        const std::string at = doc_url(zookeeper->open) +
                               "pause=20ms&session=" + std::to_string(ttl.count()) + "ms&give=";
        add("zookeeper", "doc: delete by path", at + "by-path");
        add("zookeeper", "checked: delete if own session's", at + "checked");
    }
    for (const Deployment& d : across_processes(site))
        all.push_back({d, true});
    return all;
}

void run(Bench& bench) {
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(400, 600, 1000)));
    const auto all = forms(bench.site, ttl);
    std::vector<Count> tallies(all.size());
    std::deque<Sweeper> sweepers;
    for (const char* backend : sql_backends) {
        if (bench.site.find(backend) == nullptr) continue;
        sweepers.emplace_back(sql_server(bench.site, backend), table, ttl);
        sweepers.emplace_back(sql_server(bench.site, backend), version_table, ttl, Sweeps::states);
    }
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (std::size_t f = 0; f < all.size(); ++f)
            jobs.emplace_back([&, f, i] {
                for (std::size_t tried = 0; tried < most_tries; ++tried) {
                    const auto name = fmt::format("bench-c10-{}-{}-{}", f, i, tried);
                    if (const auto caught = two_holders(bench, all[f], name, ttl))
                        return tallies[f].add(*caught);
                }
                throw SelfCheck("the machine was too slow to tell whose time it was");
            });
        side_by_side(jobs);
    }
    for (std::size_t f = 0; f < all.size(); ++f)
        add_tally(bench, id, all[f].deployment, "somebody else's lock freed", tallies[f],
                  all[f].holdfast, "two holders at once");
}

std::vector<Step> plan(const Options&, const Site&) {
    return {{"release after the ttl, all forms side by side", run}};
}

}  // namespace

Scenario c10_release_of_others() {
    return {
        id, "a release after the lock has become somebody else's",
        "A works longer than the ttl (its session, the sweeper's age), B is granted, A releases "
        "as its recipe says, C asks for half a ttl. Caught: C is granted in B's time. The bare "
        "ZooKeeper client sends no heartbeats while it works, as a paused process.",
        false, plan};
}

}  // namespace holdfast::bench
