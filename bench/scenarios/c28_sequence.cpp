// C28: sequence numbers, and what Holdfast takes as a token, over deletion of the parent.
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C28";
using Kind = ZooKeeperSession::Kind;

long long sequence(const std::string& path) {
    return std::stoll(path.substr(path.size() - 10));
}

struct Seen {
    long long sequence = 0, czxid = 0;
};

/// Some nodes below `parent`, which is made before and deleted afterwards.
Seen once(ZooKeeperSession& session, const std::string& parent, int nodes) {
    if (!session.create(parent, Kind::persistent).ok()) throw SelfCheck("c28: the parent");
    Seen seen;
    for (int i = 0; i < nodes; ++i) {
        const std::string path = session.create(parent + "/lock-", Kind::sequential).path;
        seen = {sequence(path), session.get(path).czxid};
        session.remove(path);
    }
    if (!session.remove(parent).ok()) throw SelfCheck("c28: the parent was to be deleted");
    return seen;
}

void run(Bench& bench, const Deployment& d) {
    ZooKeeperSession session(bench.site.zookeeper()->connect_string(), milliseconds(2000));
    const Deployment bare = variant_of("zookeeper", "doc: sequence number", "");
    const Deployment czxid = variant_of("zookeeper", "czxid", "");
    Party party(bench, d, "bench-c28");
    Count by_sequence, by_czxid, by_token;
    const int runs = bench.options.pick(3, 10, 10);
    for (int i = 0; i < runs && !bench.stopped(); ++i) {
        const std::string parent = "/bench-c28-bare-" + std::to_string(i);
        const Seen before = once(session, parent, 5), after = once(session, parent, 1);
        by_sequence.add(after.sequence <= before.sequence);
        by_czxid.add(after.czxid <= before.czxid);

        Lease first = party.must(lab::default_cap);
        const auto token = first.fencing_token();
        first.release();
        // Empty containers go by themselves within a minute; this is that, at once.
        lab::wait_until([&] { return session.remove("/holdfast/bench-c28").ok(); },
                        lab::default_cap, "the parent's deletion");
        Lease second = party.must(lab::default_cap);
        by_token.add(second.fencing_token() <= token);
        second.release();
    }
    const char* metric = "went back over deletion of the parent";
    add_tally(bench, id, bare, metric, by_sequence, false);
    add_tally(bench, id, czxid, metric, by_czxid, false);
    add_tally(bench, id, d, metric, by_token, true, "the fencing token");
}

std::vector<Step> plan(const Options&, const Site& site) {
    const auto* d = site.find("zookeeper");
    if (d == nullptr) return {};
    return {{"sequence numbers over deletion of the parent",
             [d = *d](Bench& bench) { run(bench, d); }}};
}

}  // namespace

Scenario c28_sequence() {
    return {id, "sequence numbers and czxid over deletion of the parent",
            "Five nodes, then the parent is deleted and made again, then one node. The same with a "
            "lock of Holdfast's and its fencing token.",
            false, plan};
}

}  // namespace holdfast::bench
