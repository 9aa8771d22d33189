// The bench's own program as a worker process: real processes, since an in-process lock would look
// sufficient otherwise.
#pragma once
#include <string>
#include <vector>

#include "holdfast/lab/process.hpp"
#include "site.hpp"

namespace holdfast::bench {

/// What a worker does, as its command line has it.
struct WorkerOptions {
    std::string job;    ///< "count", "buy", "write", "hold", "update[-throws]", "lead", "tasks",
                        ///< "believe", "watch"
    std::string guard;  ///< "holdfast", "mutex" (in the process), "none"
    std::string store;  ///< address of the Store; believe, lead: the journal
    std::string url;    ///< watch: servers and ports
    std::string name = "bench/worker";
    std::string who = "A";
    std::string history;  ///< file for what it does with its lock; empty: not recorded
    int cycles = 100;     ///< count: additions of each thread; tasks: how many
    int threads = 1;
    int ttl_ms = 1000;  ///< of all but count and buy
};

/// Runs in the worker; returns its exit code. Errors go to standard error.
int worker_main(const WorkerOptions&);

/// Starts this program again as a worker. It ends with the returned object.
lab::Process start_worker(const WorkerOptions&, const std::filesystem::path& log);

/// Waits until all have ended. Errors: SelfCheck when one failed or `seconds` have passed.
void join_workers(std::vector<lab::Process>&, double seconds);

}  // namespace holdfast::bench
