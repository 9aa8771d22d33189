// C13: a Redis primary dies before it has replicated a grant, and its replica takes over.
#include <array>
#include <functional>
#include <holdfast/lab/proxy.hpp>
#include <holdfast/lab/wall_clock.hpp>
#include <vector>

#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C13";

enum class Guard : std::uint8_t {
    none,
    min_replicas_to_write,  ///< and the primary knows that its replica is silent
    asked_at_once,          ///< the same server, asked before it can know
    acknowledged            ///< min_replicas_ack: the client asks for the replicas' word
};

struct Case {
    const char* variant;
    bool cut;                   ///< replication, before the grant
    milliseconds replica_late;  ///< the replica's wall clock is behind
    Guard guard;
    bool safe;
    const char* note;
};

constexpr Case cases[] = {
    {"replicated, then promoted", false, milliseconds(0), Guard::none, true,
     "the control: the replica has heard of the grant"},
    {"cut, then promoted", true, milliseconds(0), Guard::none, false,
     "the replica has not heard of the grant"},
    {"cut, then promoted, replica's clock a minute behind", true, milliseconds(-60000), Guard::none,
     false, "tokens rest on the server's clock where the last one is not known"},
    {"cut, then promoted, min-replicas-to-write 1", true, milliseconds(0),
     Guard::min_replicas_to_write, false,
     "the server refuses writes once no replica has answered for a second"},
    {"cut, then promoted, min-replicas-to-write 1, asked at once", true, milliseconds(0),
     Guard::asked_at_once, false, "until then it grants what nobody else hears of"},
    {"replicated, then promoted, min_replicas_ack 1", false, milliseconds(0), Guard::acknowledged,
     true, "the control: a replica that answers is believed"},
    {"cut, then promoted, min_replicas_ack 1", true, milliseconds(0), Guard::acknowledged, false,
     "the client believes no grant that no replica has confirmed"},
};

long long offset_of(const lab::RedisServer& server, const char* which) {
    return std::stoll(server.info("replication").at(which));
}

/// A primary and its replica, with a proxy between them.
struct Pair {
    Pair(const Bench& bench, const Case& what, int number)
        : clock(bench.site.folder() / ("clock-replica-" + std::to_string(number))),
          primary(start_primary(what)),
          between(primary.port()),
          replica(start_replica()) {
        clock.set(what.replica_late);
        lab::wait_until([&] { return in_step(); }, lab::default_cap, "the replica to be in step");
        if (what.guard == Guard::acknowledged)
            lab::wait_until([&] { return primary.replica_acknowledges(); }, lab::default_cap,
                            "the primary to hear of its replica");
        else if (what.guard != Guard::none)
            lab::wait_until([&] { return good_replicas() == "1"; }, lab::default_cap,
                            "the primary to count its replica");
    }

    static lab::RedisServer start_primary(const Case& what) {
        lab::RedisOptions options;
        options.config = {"repl-diskless-sync-delay 0", "repl-ping-replica-period 1"};
        if (what.guard == Guard::min_replicas_to_write || what.guard == Guard::asked_at_once) {
            options.config.emplace_back("min-replicas-to-write 1");
            options.config.emplace_back("min-replicas-max-lag 1");
        }
        return lab::RedisServer::start(options);
    }
    lab::RedisServer start_replica() {
        lab::RedisOptions options;
        options.config = {"replicaof 127.0.0.1 " + std::to_string(between.port())};
        options.environment = clock.environment();
        return lab::RedisServer::start(options);
    }
    bool in_step() const {
        const auto info = replica.info("replication");
        return info.at("master_link_status") == "up" &&
               offset_of(replica, "slave_repl_offset") == offset_of(primary, "master_repl_offset");
    }
    std::string good_replicas() const {
        return primary.info("replication").at("min_slaves_good_slaves");
    }
    bool replica_knows(const std::string& name) const {
        return replica.cli({"EXISTS", name}).integer == 1;
    }

    lab::WallClock clock;
    lab::RedisServer primary;
    lab::Proxy between;
    lab::RedisServer replica;
};

SetUp of(const Case& what) {
    return {id, "redis", what.variant, what.safe, what.note};
}

Deployment at(const lab::RedisServer& server, const char* query = "") {
    return {"redis", "default", server.url() + query, {}, {}, {}};
}

void play(const Bench& bench, const Case& what, int number, int ttl_ms, Tally& tally) {
    Pair pair(bench, what, number);
    const std::string name = "bench/failover/" + std::to_string(number);
    const SetUp set_up = of(what);
    const bool asks = what.guard == Guard::acknowledged;
    Holder first(bench, at(pair.primary, asks ? "?min_replicas_ack=1" : ""), name,
                 {.ttl = milliseconds(ttl_ms)}, history_of(bench, set_up, at(pair.primary), "A"));
    if (what.cut) pair.between.black_hole();
    if (what.guard == Guard::min_replicas_to_write)
        lab::wait_until([&] { return pair.good_replicas() == "0"; }, lab::default_cap,
                        "the primary to notice that its replica is silent");
    const auto refused = first.acquire(milliseconds(ttl_ms / 2));
    if (refused && what.guard != Guard::min_replicas_to_write && !(asks && what.cut))
        throw SelfCheck("the primary: " + refused.message() + ": " + first.words());
    if (!refused && !what.cut)
        lab::wait_until([&] { return pair.replica_knows(name) && pair.in_step(); },
                        lab::default_cap, "the grant to be replicated");
    if (!refused && what.cut &&
        (offset_of(pair.primary, "master_repl_offset") <=
             offset_of(pair.replica, "slave_repl_offset") ||
         pair.replica_knows(name)))
        throw SelfCheck("replication was not cut: the replica knows of the grant");

    pair.primary.kill();
    if (!pair.replica.cli({"REPLICAOF", "NO", "ONE"}).is_ok()) throw SelfCheck("not promoted");
    Holder second(bench, at(pair.replica), name, {.ttl = milliseconds(ttl_ms)},
                  history_of(bench, set_up, at(pair.replica), "B"));
    second.must_acquire(milliseconds(3 * ttl_ms) + lab::default_cap);
    tally.add(refused ? Overlap{} : watch(first, second, milliseconds(2 * ttl_ms)));
    if (!refused) tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
}

void run(Bench& bench) {
    const int ttl_ms = bench.options.pick(600, 1000, 1000);
    const int rounds = bench.options.pick(1, 1, 10);
    std::array<Tally, std::size(cases)> tallies;
    std::vector<std::function<void()>> jobs;
    for (int c = 0; c < static_cast<int>(std::size(cases)); ++c) {
        const Case& what = cases[c];
        // Redis takes seconds to miss a replica.
        if (what.guard != Guard::none && bench.options.effort == Effort::quick) continue;
        jobs.emplace_back(
            [&bench, &what, &tally = tallies.at(static_cast<std::size_t>(c)), c, rounds, ttl_ms] {
                for (int i = 0; i < rounds && !bench.stopped(); ++i)
                    play(bench, what, c * rounds + i, ttl_ms, tally);
            });
    }
    side_by_side(jobs);
    for (std::size_t c = 0; c < std::size(cases); ++c)
        report(bench, of(cases[c]), tallies.at(c));
}

}  // namespace

Scenario c13_failover() {
    return {
        id, "a Redis primary dies, its replica takes over",
        "The replication goes through a proxy that swallows everything before the grant (the "
        "offsets and the replica's keys prove it). The primary is killed, the replica promoted, "
        "and another client asks there, as after a fail-over. The first holder hears nothing. "
        "Both leases are looked at at the same moments. All cases at once.",
        false, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            if (site.find("redis") != nullptr)
                steps.push_back({"redis, primary killed, replica promoted", run});
            return steps;
        }};
}

}  // namespace holdfast::bench
