// C25: the same recipe elects a leader. Leaders are killed one after the other: how long is there
// none, and are there ever two?
#include <fmt/format.h>

#include <deque>
#include <holdfast/election.hpp>

#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "processes/believer.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C25";
constexpr std::size_t candidates = 2;
constexpr auto cap = std::chrono::seconds(60);

struct Result {
    Count two_leaders, seen_by_others;
    std::vector<double> without_ms;
};

struct Candidate {
    std::string who;
    std::filesystem::path journal;
    lab::Process process;

    Belief belief() const { return read_belief(journal); }
};

/// Processes of one election; each that is gone is replaced by another one.
class Race {
public:
    Race(const Bench& bench, const Deployment& d, std::string name, int ttl_ms)
        : bench_(&bench), deployment_(&d), name_(std::move(name)), ttl_ms_(ttl_ms) {
        for (std::size_t i = 0; i < candidates; ++i)
            running_.push_back(start());
    }

    /// Waits for the one who leads and has looked at its lease.
    Candidate& leader() {
        Candidate* found = nullptr;
        lab::wait_until([&] { return (found = look()) != nullptr; }, cap, "a leader");
        return *found;
    }
    /// Waits until every candidate is about to ask, so that a killed leader has a successor.
    void all_there() {
        for (const Candidate& c : running_)
            lab::wait_until([&] { return std::filesystem::exists(c.journal); }, cap, "candidates");
    }
    /// Kills it, and has another one stand in its place. What it believed stays.
    void kill(Candidate& leader) {
        leader.process.kill();
        beliefs_.push_back(leader.belief());
        leader = start();
    }
    /// Of all who have ever led, in the order of their grants.
    std::vector<Belief> beliefs() const {
        std::vector<Belief> all = beliefs_;
        for (const Candidate& c : running_)
            if (const Belief b = c.belief(); b.granted_ms > 0) all.push_back(b);
        std::sort(all.begin(), all.end(),
                  [](const Belief& a, const Belief& b) { return a.granted_ms < b.granted_ms; });
        return all;
    }

private:
    Candidate start() {
        const std::string who = "candidate-" + std::to_string(started_++);
        std::string file = name_ + "-" + who;
        std::replace(file.begin(), file.end(), '/', '-');
        const auto journal = bench_->site.folder() / file;
        auto how =
            believer(*deployment_, name_, ttl_ms_, journal, bench_->history(*deployment_, "C25"));
        how.job = "lead";
        how.who = who;
        return {who, journal, start_worker(how, bench_->site.folder() / "workers.log")};
    }
    Candidate* look() {
        for (Candidate& c : running_) {
            if (!c.process.alive())
                throw SelfCheck("a candidate ended by itself: " + c.process.log_tail(3));
            const Belief b = c.belief();
            if (b.invalid_ms > 0)  // the machine stood still: its term is over
                kill(c);
            else if (b.last_valid_ms > 0)
                return &c;
        }
        return nullptr;
    }

    const Bench* bench_;
    const Deployment* deployment_;
    std::string name_;
    int ttl_ms_, started_ = 0;
    std::deque<Candidate> running_;
    std::vector<Belief> beliefs_;
};

void play(const Bench& bench, const Deployment& d, const std::string& name, int ttl_ms, int kills,
          Result& result) {
    Race race(bench, d, name, ttl_ms);
    const auto client = bench.open(d);
    const auto election = client.make_election(d.prefix + name);
    if (!election) throw SelfCheck(election.error().message());
    const auto note = [&](const Candidate& leads) {
        const auto seen = election->leader();
        if (!seen && seen.error() == errc::not_supported) return;
        result.seen_by_others.add(seen && *seen && (*seen)->value == leads.who);
    };
    note(race.leader());
    for (int i = 0; i < kills && !bench.stopped(); ++i) {
        race.all_there();
        Candidate& leads = race.leader();
        const double killed = boot_ms();
        race.kill(leads);
        const Candidate& next = race.leader();
        result.without_ms.push_back(std::max(0.0, next.belief().granted_ms - killed));
        note(next);
    }
    race.all_there();
    const auto terms = race.beliefs();
    for (std::size_t i = 1; i < terms.size(); ++i)
        result.two_leaders.add(terms[i - 1].last_valid_ms > terms[i].granted_ms);
}

void run(Bench& bench) {
    const auto deployments = across_processes(bench.site);
    const auto ttl_ms = static_cast<int>(
        roomy_ttl(bench, milliseconds(bench.options.pick(800, 1000, 1000))).count());
    const int kills = bench.options.pick(1, 4, 20);
    std::vector<Result> results(deployments.size());
    std::vector<std::function<void()>> jobs;
    for (std::size_t i = 0; i < deployments.size(); ++i)
        jobs.emplace_back([&, i] {
            play(bench, deployments[i], "bench/leader/" + std::to_string(i), ttl_ms, kills,
                 results[i]);
        });
    side_by_side(jobs);
    const auto note = fmt::format("ttl {} ms, {} candidates", ttl_ms, candidates);
    for (std::size_t i = 0; i < deployments.size(); ++i) {
        const Deployment& d = deployments[i];
        const Result& seen = results[i];
        add_tally(bench, id, d, "changes of leader with two leaders", seen.two_leaders, true,
                  "by the looks of both at their leases");
        add_tally(bench, id, d, "leaders that others saw by name", seen.seen_by_others, false);
        if (seen.without_ms.empty()) continue;
        Row row = row_of(id, d, ttl_ms);
        row.metric = "time without a leader";
        row.unit = "ms";
        row.n = seen.without_ms.size();
        row.note = note + ", from SIGKILL to the next one's grant";
        bench.add(row, spread_of(seen.without_ms));
    }
}

}  // namespace

Scenario c25_leader() {
    return {id, "leader election: the leader is killed again and again",
            "Two processes are candidates of one election. The one that leads is killed, and "
            "another one started: 4 times, with --full 20 times, with --quick once. Every process "
            "writes down its grant and each look at which its lease was valid, on one clock; two "
            "leaders: a look after the next one's grant. Another client asks who leads. All "
            "backends at once.",
            false, [](const Options&, const Site&) {
                return std::vector<Step>{{"leaders killed, all backends", run}};
            }};
}

}  // namespace holdfast::bench
