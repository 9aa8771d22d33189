#include "floors/record.hpp"

#include <holdfast/lab/grpc_server.hpp>
#include <holdfast/lab/protobuf_text.hpp>

#include "etcd.pb.h"
#include "faults/through.hpp"
#include "floors/etcd_floor.hpp"
#include "measure/in_flight.hpp"

namespace holdfast::bench {

namespace {

namespace rpc = etcd::rpc;

/// A word for what differs each time.
void hide(rpc::TxnRequest& t) {
    for (rpc::Compare& c : *t.mutable_compare())
        if (c.create_revision() != 0) c.set_create_revision(1);
    for (auto* branch : {t.mutable_success(), t.mutable_failure()})
        for (rpc::RequestOp& one : *branch) {
            if (one.has_request_put()) one.mutable_request_put()->set_lease(1);
            if (one.has_request_txn()) hide(*one.mutable_request_txn());
        }
}

/// The calls, as text.
class Shown final : lab::GrpcServer::Listener {
public:
    static std::string of(const lab::Proxy& proxy, const std::string& owner) {
        const std::string sent = proxy.recorded(lab::Direction::to_server);
        constexpr std::string_view begins = "PRI * HTTP/2.0";
        Shown all;
        for (auto at = sent.find(begins), end = at; at != sent.npos; at = end) {
            end = sent.find(begins, at + 1);
            lab::GrpcServer(all).receive(std::string_view(sent).substr(at, end - at));
        }
        std::string out = std::move(all.text_);
        for (auto at = out.find(owner); at != out.npos; at = out.find(owner))
            out.replace(at, owner.size(), "OWNER");
        return out;
    }

private:
    void message(std::int32_t, const lab::GrpcServer::Request& r, std::string bytes) override {
        // Only the bare client looks whose keys are there.
        if (r.path.ends_with("/Range")) return;
        rpc::TxnRequest t;
        if (r.path.ends_with("/Txn") && t.ParseFromString(bytes)) {
            hide(t);
            bytes = t.SerializeAsString();
        }
        text_ += r.path + " " + lab::protobuf_text(bytes) + "\n";
    }
    std::string text_;
};

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
    const std::string theirs = Shown::of(bare.proxies.front(), floor.owner());
    const std::string wanted = Shown::of(ours.proxies.front(), owner);
    if (floor.owner().size() != owner.size() || theirs != wanted)
        throw SelfCheck("the bare client does not send what Holdfast does: " + theirs +
                        "instead of " + wanted);
}

}  // namespace holdfast::bench
