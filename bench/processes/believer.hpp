// A holder in a process of its own that keeps a journal of what it believes. Each line is a look at
// its lease with the time from just before that look, so that a pause between looking and writing
// makes no belief longer than it was.
#pragma once
#include <cstdint>
#include <filesystem>
#include <holdfast/lease.hpp>
#include <string>

#include "checker/diary.hpp"
#include "processes/worker.hpp"

namespace holdfast::bench {

/// What a journal says, times in milliseconds on CLOCK_BOOTTIME; 0: not yet.
struct Belief {
    double granted_ms = 0;
    std::uint64_t token = 0;
    double last_valid_ms = 0;      ///< the last look at which the lease was valid
    double promised_until_ms = 0;  ///< valid_until() at that look
    double invalid_ms = 0;         ///< the first look at which it was not
    double told_ms = 0;            ///< lost() was requested
};

/// Reads the whole lines that are there; a missing file is an empty journal.
Belief read_belief(const std::filesystem::path& journal);

/// What start_worker takes for one that holds a lock of this deployment.
WorkerOptions believer(const Deployment&, const std::string& name, int ttl_ms,
                       const std::filesystem::path& journal, const std::filesystem::path& history);

/// In the worker (job "believe", `store` names the journal): acquires, looks every 10 ms, and stays
/// until it is killed.
void believe(const WorkerOptions&, Lease, Diary&, Diary::Entry);

}  // namespace holdfast::bench
