#include "director.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <fstream>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/error.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <mutex>
#include <thread>

#include "checker/check.hpp"
#include "checker/recorder.hpp"
#include "faults.hpp"

namespace holdfast::soak {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
namespace history = bench::history;

class Crew {
public:
    Crew(const Plan& plan, Deployment& deployment, bool long_holds)
        : plan_(plan), deployment_(deployment), long_holds_(long_holds) {
        deployment_.on_kill = [this](history::Nanos from) { servers_.server_killed(from); };
        for (int i = 0; i < plan.workers; ++i) {
            Worker worker{deployment.link(), nullptr};
            spawn(worker);
            workers_.push_back(std::move(worker));
        }
    }

    ~Crew() { deployment_.on_kill = {}; }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    void spawn(Worker& worker) {
        lab::ProcessOptions o;
        o.argv = {plan_.program,
                  "worker",
                  deployment_.url(*worker.link),
                  folder_.path().string(),
                  std::to_string(plan_.seed * 100 + spawned_++),
                  long_holds_ ? "control" : "soak"};
        o.log = folder_ / "workers.log";
        worker.process = std::make_unique<lab::Process>(o);
    }

    std::vector<Worker>& workers() { return workers_; }

    /// Asks all to end, and reads their summaries. Errors: LabError when one does not end.
    std::map<std::string, std::uint64_t> end() {
        for (auto& worker : workers_)
            worker.process->signal(SIGTERM);
        for (auto& worker : workers_) {
            const auto ended = worker.process->wait(60s);
            if (!ended) throw lab::LabError("a worker does not end: " + worker.process->log_tail());
            if (ended->by_signal || ended->code != 0)
                throw lab::LabError("a worker failed: " + worker.process->log_tail());
        }
        std::map<std::string, std::uint64_t> sums;
        for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
            if (file.path().extension() != ".summary") continue;
            std::ifstream in(file.path());
            std::string word;
            for (std::uint64_t n = 0; in >> word >> n;)
                sums[word] = word == "latest_ms" ? std::max(sums[word], n) : sums[word] + n;
        }
        return sums;
    }

    /// What workers complained of.
    std::string complaints() const {
        std::ifstream in(folder_ / "workers.log");
        return {std::istreambuf_iterator<char>(in), {}};
    }

    history::Verdict judge() const {
        history::Limits limits;
        limits.unsynced_release = std::chrono::nanoseconds(deployment_.unsynced_release()).count();
        return history::check_folder(folder_.path(), limits);
    }

private:
    const Plan& plan_;
    Deployment& deployment_;
    const bool long_holds_;
    lab::TempDir folder_;
    history::Recorder servers_{folder_ / "servers.history", "servers"};
    std::uint64_t spawned_ = 1;
    std::vector<Worker> workers_;
};

/// Counts what took effect; several threads.
class Tally {
public:
    void add(const std::string& kind) {
        const std::lock_guard hold(mutex_);
        ++counts_[kind];
    }
    std::map<std::string, std::uint64_t> counts() {
        const std::lock_guard hold(mutex_);
        return counts_;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::uint64_t> counts_;
};

/// One fault after the other until `stop`: to links and workers, or to servers.
template <class Fault>
void strike(std::vector<Fault> faults, Random random, const Wait& wait,
            const std::function<bool(Fault&, Random&)>& act, Tally& tally) {
    // Half of the pauses are long, so that work is done between the faults.
    while (wait(pick(random, 0, pick(random, 0, 1).count() == 0 ? 400 : 12'000))) {
        auto& fault =
            faults[std::uniform_int_distribution<std::size_t>(0, faults.size() - 1)(random)];
        if (act(fault, random)) tally.add(fault.name);
    }
}

/// What is held or waited for, a line each.
std::vector<std::string> found_at(const Client& client) {
    const auto held = client.list("soak/");
    if (!held) return {held.error().message()};
    std::vector<std::string> out = *held;
    for (int i = 0; i < 8; ++i) {
        const auto name = fmt::format("soak/hot-{}", i);
        const auto seen = client.inspect(name);
        if (!seen)
            out.push_back(name + ": " + seen.error().message());
        else if (!seen->waiters.empty())
            out.push_back(fmt::format("{} has {} waiters", name, seen->waiters.size()));
    }
    return out;
}

/// Everything is healed: soon nothing is held, and what a killed worker waited for is forgotten.
std::uint64_t left_over(const Deployment& deployment, std::string& words) {
    // To list tens of thousands of names takes longer than a request of a lock may.
    auto url = deployment.url();
    const std::string times = "ttl=3s&request_timeout=1s";
    if (const auto at = url.find(times); at != url.npos)
        url.replace(at, times.size(), "ttl=60s&request_timeout=20s");
    const auto client = Client::open(url).value();
    std::vector<std::string> found;
    (void)lab::reached(
        [&] {
            found = found_at(client);
            return found.empty();
        },
        45s);
    words = fmt::format("{}", fmt::join(found, ", "));
    return found.size();
}

void soak(const Plan& plan, Deployment& deployment, Result& outcome) {
    Crew crew(plan, deployment, false);
    Tally tally;
    const auto end = clock::now() + plan.length;
    const auto over = [end] { return clock::now() >= end; };
    const Wait wait = [&](std::chrono::milliseconds time) {
        const auto until = std::min(end, clock::now() + time);
        (void)lab::reached([&] { return clock::now() >= until; }, time + 1s);
        return !over();
    };
    {
        std::exception_ptr failed;
        std::mutex failed_mutex;
        const auto guarded = [&](auto&& body) {
            return std::jthread([&, body] {
                try {
                    body();
                } catch (...) {
                    const std::lock_guard hold(failed_mutex);
                    failed = std::current_exception();
                }
            });
        };
        std::vector<std::jthread> threads;
        // Each worker has faults of its own, so that some are cut off while others go on.
        for (std::size_t i = 0; i < crew.workers().size(); ++i)
            threads.push_back(guarded([&, i] {
                strike<WorkerFault>(
                    worker_faults([&](Worker& w) { crew.spawn(w); }), Random(plan.seed + i), wait,
                    [&](WorkerFault& f, Random& r) { return f.act(crew.workers()[i], r, wait); },
                    tally);
            }));
        threads.push_back(guarded([&] {
            strike<ServerFault>(
                deployment.faults(), Random(plan.seed + 1000), wait,
                [&](ServerFault& f, Random& r) {
                    f.act(r, wait);
                    deployment.wait_ready();
                    wait(pick(r, 500, 3000));  // work goes on between two faults
                    return true;
                },
                tally);
        }));
        threads.clear();
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            throw lab::LabError(e.what() + std::string("; the workers' log:\n") +
                                crew.complaints());
        }
    }
    deployment.wait_ready();
    outcome.calls = crew.end();
    outcome.left = left_over(deployment, outcome.left_words);
    outcome.faults = tally.counts();
    outcome.verdict = crew.judge();
    outcome.unsynced_release = deployment.unsynced_release();
    outcome.complaints = crew.complaints();
}

/// A holder that is cut off while its servers lose their data: no class survives that.
void control(const Plan& plan, Deployment& deployment, Result& outcome) {
    Crew crew(plan, deployment, true);
    const auto end = clock::now() + plan.control;
    Random random(plan.seed);
    const auto pause = [](std::chrono::milliseconds time) {
        (void)lab::stays_true([] { return true; }, time);
    };
    std::size_t next = 0;
    while (clock::now() < end) {
        pause(2500ms);  // somebody holds by then
        auto& worker = crew.workers()[next++ % crew.workers().size()];
        for (auto& proxy : *worker.link)
            proxy.black_hole();
        deployment.wipe();
        deployment.wait_ready();
        // One that knows nothing of what was: a ZooKeeper server refuses clients that have seen
        // more than it has.
        auto& fresh = crew.workers()[next % crew.workers().size()];
        fresh.process->kill();
        crew.spawn(fresh);
        pause(2000ms);
        for (auto& proxy : *worker.link)
            proxy.heal();
    }
    (void)crew.end();
    outcome.control = crew.judge();
}

}  // namespace

std::uint64_t Result::fault_count() const {
    std::uint64_t sum = 0;
    for (const auto& [kind, count] : faults)
        sum += count;
    return sum;
}

bool Result::control_caught() const {
    return control.count(history::Trouble::overlap) +
               control.count(history::Trouble::within_validity) >
           0;
}

bool Result::sound() const {
    const auto late = calls.find("late");
    return verdict.exit_code() == 0 && verdict.figures.granted > 0 && left == 0 &&
           (late == calls.end() || late->second == 0) && control_caught();
}

Result run(const Plan& plan) {
    Result outcome;
    const auto begin = clock::now();
    auto deployment = start(plan.backend);
    outcome.deployment = deployment->words();
    soak(plan, *deployment, outcome);
    outcome.seconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(clock::now() - begin).count());
    // A machine that stands still can keep it from happening.
    for (int trial = 0; trial < 3 && !outcome.control_caught(); ++trial) {
        deployment = start(plan.backend);
        control(plan, *deployment, outcome);
    }
    return outcome;
}

}  // namespace holdfast::soak
