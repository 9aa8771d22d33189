// A worker that goes through a list of tasks, each under a lock of its own that it does not wait
// for: what a soft lock is for.
#pragma once
#include "checker/diary.hpp"
#include "holdfast/client.hpp"
#include "processes/store.hpp"
#include "processes/worker.hpp"

namespace holdfast::bench {

/// Says "add up" and waits until the store has "may/WHO". Then it does every task that is not
/// marked "done/I" in the store and that nobody else is at: adds one to "effect/I" half-way, and
/// marks it at the end. Ends when all are marked. Without a client it does them without locks.
void do_tasks(const WorkerOptions&, const std::optional<Client>&, Diary&, StoreClient&);

}  // namespace holdfast::bench
