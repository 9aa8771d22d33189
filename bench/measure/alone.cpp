#include "measure/alone.hpp"

#include "measure/patience.hpp"

namespace holdfast::bench {

Contender alone(const Deployment& deployment, const std::string& name, const Wants& wants) {
    struct State {
        Client client;
        std::unique_ptr<Lock> lock;
    };
    auto client = Bench::open(deployment);
    auto lock = Bench::lock(client, deployment, name, wants.lock);
    auto state = std::make_shared<State>(State{std::move(client), std::move(lock)});
    // Nobody else wants it: what keeps it from being granted is a mistake, and ends.
    AcquireOptions how = wants.how;
    how.wait = stuck_after;
    const auto cycle = [state, how] {
        auto lease = state->lock->acquire(how);
        if (!lease) check(lease.error(), "acquire");
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("a release was not answered");
        return std::size_t{1};
    };
    cycle();  // connects, loads scripts, makes the file
    return {deployment.backend, deployment.variant, cycle};
}

}  // namespace holdfast::bench
