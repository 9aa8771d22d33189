// C31: how long should a ttl be? What a longer one costs when a holder dies, and what a shorter one
// costs when a process or its network pauses.
#include <fmt/format.h>

#include "faults/holder.hpp"
#include "faults/through.hpp"
#include "measure/trials.hpp"
#include "processes/believer.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C31";
constexpr int pauses_ms[] = {200, 700, 1500};
constexpr auto cap = std::chrono::seconds(60);

struct Trial {
    Deployment deployment;
    int ttl_ms = 0;
    std::size_t pauses = 0, lost_to_pauses = 0, silences = 0, lost_to_silence = 0;
    std::vector<double> without_ms;  ///< one for each run
};

/// A process that holds the lock through proxies of its own and writes down what it believes.
class Believer {
public:
    Believer(const Bench& bench, const Trial& trial, std::string name)
        : bench_(&bench), trial_(&trial), name_(std::move(name)), through_(trial.deployment) {
        start();
    }

    Belief belief() const { return read_belief(journal_); }
    lab::Process& process() { return *process_; }
    Through& through() { return through_; }

    /// Waits until a lease of the present process has been renewed. One that is lost before, to a
    /// machine that stood still, is nobody's measurement: another process takes over.
    void wait_renewed() {
        for (int tries = 5; lost_it(); --tries)
            if (tries == 0)
                throw SelfCheck(fmt::format(
                    "{}, ttl {} ms: leases are lost before anything has happened to them: {}",
                    trial_->deployment.label(), trial_->ttl_ms, process_->log_tail(3)));
    }
    /// Whether it lost its lease to what has just ended; if so another process takes over.
    bool lost_it() {
        const Belief then = belief();
        until(
            [&] {
                const Belief now = belief();
                return now.invalid_ms > 0 || now.promised_until_ms > then.promised_until_ms;
            },
            "a renewal, or the loss");
        if (belief().invalid_ms <= 0) return false;
        process_->kill();
        start();
        return true;
    }

private:
    void start() {
        const auto number = fmt::format("ttl-{}-{}", name_, started_++);
        journal_ = bench_->site.folder() / ("journal-" + number);
        process_.emplace(
            start_worker(believer(through_.deployment, "bench/ttl/" + name_, trial_->ttl_ms,
                                  journal_, bench_->history(trial_->deployment, "C31-A")),
                         bench_->site.folder() / "workers.log"));
        until([&] { return belief().promised_until_ms > 0; }, "the holder");
    }
    template <class Ready>
    void until(Ready ready, const char* what) {
        lab::wait_until([&] { return ready() || !process_->alive(); }, cap, what);
        if (!process_->alive())
            throw SelfCheck("the holder's process ended: " + process_->log_tail(3));
    }

    const Bench* bench_;
    const Trial* trial_;
    std::string name_;
    Through through_;
    int started_ = 0;
    std::filesystem::path journal_;
    std::optional<lab::Process> process_;
};

void last_for(int ms) {
    (void)lab::stays_true([] { return true; }, milliseconds(ms));
}

void play(const Bench& bench, Trial& trial, const std::string& name) {
    Believer holder(bench, trial, name);
    for (const int ms : pauses_ms) {
        holder.wait_renewed();
        holder.process().pause();
        last_for(ms);
        holder.process().resume();
        ++trial.pauses;
        if (holder.lost_it()) ++trial.lost_to_pauses;
    }
    for (const int ms : pauses_ms) {
        if (holder.through().proxies.empty()) break;
        holder.wait_renewed();
        for (auto& proxy : holder.through().proxies)
            proxy.black_hole();
        last_for(ms);
        for (auto& proxy : holder.through().proxies)
            proxy.heal();
        ++trial.silences;
        if (holder.lost_it()) ++trial.lost_to_silence;
    }
    holder.wait_renewed();
    Holder next(bench, trial.deployment, "bench/ttl/" + name, {.ttl = milliseconds(trial.ttl_ms)},
                bench.history(trial.deployment, "C31-B"));
    next.queue(cap);
    lab::wait_until([&] { return next.queued(); }, cap, "the next one, in line");
    const double killed = boot_ms();
    holder.process().kill();
    const auto answer = next.answer();
    if (answer) throw SelfCheck("c31: the next holder: " + answer.message());
    trial.without_ms.push_back(next.granted_ms() - killed);
    next.release();
}

void add_rows(Bench& bench, const Trial& trial) {
    Row row = row_of(id, trial.deployment, trial.ttl_ms);
    row.metric = "time without a holder after SIGKILL";
    row.unit = "ms";
    row.n = trial.without_ms.size();
    row.note = "the ttl is x ms; somebody else is in line";
    bench.add(row, spread_of(trial.without_ms));
    const auto share = [&](const char* metric, std::size_t lost, std::size_t all) {
        if (all == 0) return;
        row.metric = metric;
        row.unit = fmt::format("% in {} runs", row.n);
        row.note = fmt::format("{} of {}: {}, {} and {} ms", lost, all, pauses_ms[0], pauses_ms[1],
                               pauses_ms[2]);
        bench.add_value(row, 100.0 * static_cast<double>(lost) / static_cast<double>(all));
    };
    share("leases lost to pauses of the process", trial.lost_to_pauses, trial.pauses);
    share("leases lost to silence of the network", trial.lost_to_silence, trial.silences);
}

void run(Bench& bench) {
    std::vector<int> ttls = {500, 1000, 2000};
    if (bench.options.effort == Effort::full) ttls.insert(ttls.end(), {5000, 10'000});
    if (bench.options.effort == Effort::quick) ttls.pop_back();
    std::vector<Trial> trials;
    for (const Deployment& d : across_processes(bench.site))
        for (const int ttl : ttls)
            trials.push_back({d, ttl, 0, 0, 0, 0, {}});
    for (int round = 0; round < bench.options.pick(1, 1, 10) && !bench.stopped(); ++round) {
        std::vector<std::function<void()>> jobs;  // all at once: each mostly waits
        for (std::size_t i = 0; i < trials.size(); ++i)
            jobs.emplace_back(
                [&, i, name = fmt::format("{}-{}", i, round)] { play(bench, trials[i], name); });
        side_by_side(jobs);
    }
    for (const Trial& trial : trials)
        add_rows(bench, trial);
}

}  // namespace

Scenario c31_ttl() {
    return {id, "the ttl: what a longer and a shorter one cost",
            "A process holds and renews the lock. It is stopped for 0.2, 0.7 and 1.5 s, then its "
            "network is silent for as long: is the lease lost? At last it is killed: how long does "
            "the next one in line wait? All backends and ttls at once.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{{"ttls of 0.5 s and more, all backends", run}};
            }};
}

}  // namespace holdfast::bench
