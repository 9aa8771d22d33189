#include "floors/record.hpp"

#include "measure/in_flight.hpp"

namespace holdfast::bench {

Trace record_one_cycle(const Deployment& deployment, lab::RedisServer& server) {
    const Client client = Bench::open(deployment);
    const auto lock = Bench::lock(client, deployment, "bench/record");
    const auto cycle = [&] {
        auto lease = lock->acquire();
        check(lease ? error_code{} : lease.error(), "acquire while recording");
        Grant grant{std::string(lease->name()), std::string(lease->owner_id())};
        if (lease->release() != ReleaseResult::released)
            throw SelfCheck("recording: a release was not answered");
        return grant;
    };
    cycle();  // connections, scripts and clock samples come first and are not recorded
    lab::RedisMonitor monitor = server.monitor();
    const Grant grant = cycle();
    return recorded(monitor.stop(), {grant}, 1);
}

Trace record_in_flight(const Deployment& deployment, lab::RedisServer& server,
                       std::size_t in_flight) {
    InFlight load(deployment, in_flight, "bench/flight");
    load.run_cycles(in_flight);
    std::vector<Grant> grants;
    lab::RedisMonitor monitor = server.monitor();
    load.run_cycles(2 * in_flight, [&](const Lease& lease) {
        grants.push_back({std::string(lease.name()), std::string(lease.owner_id())});
    });
    return recorded(monitor.stop(), std::move(grants), in_flight);
}

}  // namespace holdfast::bench
