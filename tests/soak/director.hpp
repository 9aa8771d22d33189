// Runs workers on one deployment, does to it what its class survives, and has the checker judge
// what the workers wrote down.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "checker/verdict.hpp"
#include "deployment.hpp"

namespace holdfast::soak {

using namespace deployments;

struct Plan {
    std::string backend;
    std::chrono::seconds length{1800}, control{20};
    std::uint64_t seed = 1;
    int workers = 4;
    std::string program;  ///< this one, for the workers
};

struct Result {
    std::string deployment;
    std::map<std::string, std::uint64_t> faults;  ///< that took effect, by kind
    std::map<std::string, std::uint64_t> calls;   ///< the workers' summaries, added up
    bench::history::Verdict verdict;
    std::chrono::milliseconds unsynced_release{0};  ///< as the deployment declares it
    std::uint64_t left = 0;  ///< names held or waited for at the end, when all was healed
    std::string left_words;
    std::string complaints;           ///< of workers, about calls that ended too late
    bench::history::Verdict control;  ///< of a run whose servers lose their data
    std::uint64_t seconds = 0;

    std::uint64_t fault_count() const;
    /// A control that was not caught makes the rest worthless.
    bool control_caught() const;
    bool sound() const;
};

/// Blocks for about `length` and `control`. Errors: LabError.
Result run(const Plan&);

}  // namespace holdfast::soak
