// What the soak does to links and to workers; what it does to servers is each deployment's own.
#pragma once
#include <holdfast/lab/process.hpp>

#include "deployment.hpp"

namespace holdfast::soak {

using namespace deployments;

struct Worker {
    std::unique_ptr<Link> link;
    std::unique_ptr<lab::Process> process;
};

/// A fault of the network between one worker and the servers, or of the worker's process. `act`
/// returns false when it had nothing to act on: it then does not count.
struct WorkerFault {
    std::string name;
    std::function<bool(Worker&, Random&, const Wait&)> act;
};

/// `respawn` starts a worker's process anew.
std::vector<WorkerFault> worker_faults(const std::function<void(Worker&)>& respawn);

}  // namespace holdfast::soak
