// A fault is shown by runs, not by one: how many of how many showed it. Most of a run's time is
// waiting for a ttl, so that runs on different backends go side by side.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench.hpp"
#include "processes/store.hpp"
#include "processes/worker.hpp"

namespace holdfast::bench {

/// How often something was seen.
struct Count {
    std::size_t runs = 0, seen = 0;
    void add(bool yes) {
        ++runs;
        seen += yes ? 1 : 0;
    }
};

/// How many runs of each fault: 10 with --full.
inline int trials(const Options& options) {
    return options.pick(1, 2, 10);
}

/// A row for `tally`. `promised`: Holdfast says that this never happens, so once is a violation.
void add_tally(Bench&, const std::string& scenario, const Deployment&, const std::string& metric,
               const Count& tally, bool promised, const std::string& note = {});
/// A row for some durations in ms; none when there are none.
void add_times(Bench&, const std::string& scenario, const Deployment&, const std::string& metric,
               const std::vector<double>& ms, const std::string& note = {});

/// A client of its own with one lock: what a process of its own would be.
struct Party {
    Party(const Bench&, const Deployment&, const std::string& name, const LockOptions& = {});
    /// Waits at most so long. Errors: SelfCheck for any other than that somebody else has it.
    Lease ask(milliseconds wait);
    /// As ask, and it must be granted. Errors: SelfCheck.
    Lease must(milliseconds wait);

    Client client;
    std::unique_ptr<Lock> lock;
};

/// A worker process that holds a lock, in the middle of two steps of which the first is done.
class HoldingProcess {
public:
    /// Starts it. Its store's socket has the lock's name. `history`: as for a Holder. `job`: what
    /// the steps are, as the worker knows them.
    HoldingProcess(const Bench&, const Deployment&, const std::string& name, milliseconds ttl,
                   const std::filesystem::path& history = {}, const char* job = "hold");
    /// Waits until it holds. Errors: LabError.
    void wait_held();
    /// Whether it has said so.
    bool holds() const { return !store_.events().empty(); }
    lab::Process& process() { return process_; }
    long long steps() const { return store_.number(); }
    Store& store() { return store_; }

private:
    Store store_;
    lab::Process process_;
};

/// A ttl for trials side by side: `least`, or more where this machine is so busy that a crowd of
/// clients takes as long to connect, acquire, renew and release: no lease of a trial is to be lost
/// to that. In whole seconds then, as etcd sets it. Errors: SelfCheck.
milliseconds roomy_ttl(const Bench&, milliseconds least);

/// Runs all of them at once, each on a thread. Errors: that of the first one that failed.
void side_by_side(const std::vector<std::function<void()>>& jobs);

/// A variant of a backend: a document's form of it.
Deployment variant_of(const std::string& backend, const std::string& variant,
                      const std::string& url);

/// The same, where a waiter that dies leaves the line after this ttl: with etcd it is the client's,
/// not the lock's.
Deployment leaves_after(Deployment, milliseconds ttl);

/// The deployments that exclude other processes, each server once: what a claim about crashes and
/// ttl is put to.
std::vector<Deployment> across_processes(const Site&);

}  // namespace holdfast::bench
