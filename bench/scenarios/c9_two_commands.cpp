// C9: the client dies between taking the lock and giving it a ttl.
#include <csignal>

#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C9";

struct Form {
    Deployment deployment;
    bool dies = false;  ///< by itself, right after its first command; else killed once it holds
    bool holdfast = false;
};

struct Result {
    Count stuck;
    std::vector<double> without_holder;
};

/// The worker takes the lock and is killed.
void take_and_die(Bench& bench, const Form& form, const std::string& name, milliseconds ttl) {
    Deployment deadly = form.deployment;
    if (form.dies) deadly.open += "&dies=true";
    HoldingProcess holder(bench, deadly, name, ttl);
    if (!form.dies) {
        holder.wait_held();
        return holder.process().kill();
    }
    const auto ended = holder.process().wait(lab::default_cap);
    if (!ended || !ended->by_signal || ended->code != SIGKILL)
        throw SelfCheck("the holder was to die between two commands: " +
                        holder.process().log_tail(3));
}

void try_it(Bench& bench, const Form& form, const std::string& name, milliseconds ttl,
            Result& result) {
    take_and_die(bench, form, name, ttl);
    const auto died = Clock::now();
    const auto& redis = *bench.site.redis();
    if (redis.cli({"EXISTS", name}).integer != 1)
        throw SelfCheck("the lock was to be taken when its holder died");
    Party next(bench, form.deployment, name);
    const Lease lease = next.ask(4 * ttl);
    const bool stuck = lease.state() == LeaseState::empty;
    if (stuck && redis.cli({"PTTL", name}).integer != -1)
        throw SelfCheck("nobody was granted, and yet the lock has a ttl");
    result.stuck.add(stuck);
    if (!stuck) result.without_holder.push_back(millis_since(died));
}

void run(Bench& bench, const std::vector<Form>& forms) {
    std::vector<Result> results(forms.size());
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(300, 500, 1000)));
        std::vector<std::function<void()>> jobs;
        for (std::size_t f = 0; f < forms.size(); ++f)
            jobs.emplace_back([&, f, i] {
                try_it(bench, forms[f], "bench-c9-" + std::to_string(f) + "-" + std::to_string(i),
                       ttl, results[f]);
            });
        side_by_side(jobs);
    }
    for (std::size_t f = 0; f < forms.size(); ++f) {
        const Deployment& d = forms[f].deployment;
        add_tally(
            bench, id, d, "held for ever after a crash", results[f].stuck, forms[f].holdfast,
            forms[f].dies ? "killed right after its first command" : "killed as soon as it held");
        add_times(bench, id, d, "time without a holder", results[f].without_holder);
    }
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Form> forms;
    if (const auto* redis = site.find("redis")) {
        const std::string at = doc_url(redis->open) + "take=";
        forms.push_back(
            {variant_of("redis", "doc: SETNX, EXPIRE", at + "setnx-expire"), true, false});
        forms.push_back({variant_of("redis", "doc: SET NX PX", at + "set-nx-px"), true, false});
        forms.push_back({*redis, false, true});
    }
    if (const auto* plain = site.find("redis", "plain")) forms.push_back({*plain, false, true});
    if (forms.empty()) return {};
    return {
        {"holder killed between taking and expiry", [forms](Bench& bench) { run(bench, forms); }}};
}

}  // namespace

Scenario c9_two_commands() {
    return {id, "the holder dies between SETNX and EXPIRE",
            "The documents' client ends by SIGKILL right after its first command; Holdfast's is "
            "killed as soon as it holds. Another client then asks for 4 x ttl. Held for ever: it "
            "was not granted, and the server says that the key has no ttl.",
            false, plan};
}

}  // namespace holdfast::bench
