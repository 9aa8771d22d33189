#include "floors/record.hpp"

#include <holdfast/lab/etcd_server.hpp>
#include <regex>

#include "faults/through.hpp"
#include "floors/etcd_floor.hpp"
#include "measure/in_flight.hpp"

namespace holdfast::bench {

namespace {

/// The requests with their texts decoded, and a word for what differs each time.
std::string shown(const lab::Proxy& proxy, const std::string& owner) {
    const std::string sent = lab::EtcdServers::plain(proxy.recorded(lab::Direction::to_server));
    std::string out;
    for (std::size_t at = sent.find("POST "), end = 0; at != sent.npos; at = end) {
        end = sent.find("POST ", at + 1);
        const std::string one = sent.substr(at, end - at);
        // Only the bare client looks whose keys are there.
        if (!one.starts_with("POST /v3/kv/range")) out += one + "\n";
    }
    const std::pair<const char*, const char*> each[] = {
        {"Host: [0-9.:]+", "Host: HOST"},
        {"Content-Length: [0-9]+", "Content-Length: LENGTH"},
        {"\"lease\":\"[0-9]+\"", "\"lease\":\"LEASE\""},
        {"_revision\":\"[1-9][0-9]*\"", "_revision\":\"REVISION\""}};
    for (const auto& [what, word] : each)
        out = std::regex_replace(out, std::regex(what), word);
    for (auto at = out.find(owner); at != out.npos; at = out.find(owner))
        out.replace(at, owner.size(), "OWNER");
    return out;
}

}  // namespace

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

void must_send_the_same(const Deployment& etcd) {
    Through ours(etcd), bare(etcd);
    ours.proxies.front().record();
    const Client client = Bench::open(ours.deployment);
    const auto lock = Bench::lock(client, ours.deployment, EtcdFloor::lock_name(0));
    auto lease = lock->acquire();
    check(lease ? error_code{} : lease.error(), "acquire while recording");
    const std::string owner(lease->owner_id());
    if (lease->release() != ReleaseResult::released)
        throw SelfCheck("recording: a release was not answered");
    bare.proxies.front().record();
    const EtcdFloor floor(bare.proxies.front().port());
    const std::string theirs = shown(bare.proxies.front(), floor.owner());
    const std::string wanted = shown(ours.proxies.front(), owner);
    if (floor.owner().size() != owner.size() || theirs != wanted)
        throw SelfCheck("the bare client does not send what Holdfast does: " + theirs +
                        "instead of " + wanted);
}

}  // namespace holdfast::bench
