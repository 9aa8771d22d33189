// C18a: the counterpart of C18. Of several servers one is lost while a lock is held and another
// client waits: of three that agree (ZooKeeper, etcd), and of Redlock's five.
#include <atomic>
#include <holdfast/lab/wait_until.hpp>

#include "faults/five.hpp"
#include "faults/holder.hpp"
#include "faults/three.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C18a";
constexpr int ttl_ms = 4000;  // an election takes a second or two
constexpr milliseconds jump = std::chrono::hours(1);

struct Fault {
    std::string words;  ///< "leader killed"
    std::function<void()> begin, heal;
};

struct Cluster {
    Deployment deployment;
    std::vector<Fault> faults;
};

/// The leader is killed; another one stands still, so that neither clients nor the others hear it.
template <class Servers>
std::vector<Fault> faults_of(Servers& servers) {
    const auto leader = [&servers] {
        const auto one = servers.leader();
        if (!one) throw SelfCheck("c18a: nobody leads");
        return *one;
    };
    const auto lost = std::make_shared<std::size_t>(0);
    return {{"leader killed", [&servers, lost] { *lost = servers.kill_leader(); },
             [&servers, lost] {
                 servers.restart(*lost);
                 servers.wait_ready();
             }},
            {"follower silent",
             [&servers, lost, leader] {
                 *lost = (leader() + 1) % servers.size();
                 servers.pause(*lost);
             },
             [&servers, lost] {
                 servers.resume(*lost);
                 servers.wait_ready();
             }}};
}

std::vector<Cluster> clusters_of(Three& three, Five* five) {
    std::vector<Cluster> all;
    for (const Deployment& d : three.deployments()) {
        Cluster one{d, {}};
        if (d.backend == "etcd") one.faults = faults_of(*three.etcd());
        if (d.backend == "zookeeper") {
            one.faults = faults_of(*three.zookeeper());
            one.faults.push_back({"leader's clock jumps",
                                  [&three] {
                                      three.clock(three.zookeeper()->leader().value()).set(jump);
                                      if (three.zookeeper_ahead() < jump / 2)
                                          throw SelfCheck("c18a: no clock has jumped");
                                  },
                                  [&three] {
                                      for (std::size_t i = 0; i < Three::count; ++i)
                                          three.clock(i).set(milliseconds(0));
                                  }});
        }
        all.push_back(std::move(one));
    }
    if (five == nullptr) return all;
    Cluster one{five->whole("durable=yes&ttl=4s&max_ttl=5s"), {}};
    one.deployment.variant = "5 servers";
    one.faults = {{"node killed", [five] { (*five)[0].kill(); },
                   [five] { (*five)[0].restart(lab::Data::keep); }},
                  {"node silent", [five] { (*five)[1].pause(); }, [five] { (*five)[1].resume(); }},
                  {"node's clock jumps",
                   [five] {
                       five->clock(2).set(jump);
                       if (lab::ahead((*five)[2]) < jump / 2)
                           throw SelfCheck("c18a: no clock has jumped");
                   },
                   [five] { five->clock(2).set(milliseconds(0)); }}};
    all.push_back(std::move(one));
    return all;
}

SetUp of(const Deployment& d, const Fault& fault) {
    return {id, d.backend, d.variant + ", " + fault.words, true,
            "ttl " + std::to_string(ttl_ms) + " ms"};
}

Fate play(const Bench& bench, const Deployment& d, const Fault& fault, Tally& tally) {
    static std::atomic<unsigned> played{0};  // a new name also when this step is begun again
    const auto cap = milliseconds(6 * ttl_ms) + std::chrono::seconds(30);
    const auto long_cap = std::chrono::duration_cast<milliseconds>(cap);
    const std::string name = "bench/one-of-several/" + std::to_string(++played);
    const SetUp set_up = of(d, fault);
    const LockOptions how{.ttl = milliseconds(ttl_ms)};
    Holder first(bench, d, name, how, history_of(bench, set_up, d, "A"));
    Holder second(bench, d, name, how, history_of(bench, set_up, d, "B"));
    line_up(first, second, long_cap);

    fault.begin();
    double from = boot_ms();
    const double promised = first.promised_until_ms();
    const auto over = [&] {
        return first.told_ms() > 0 || second.granted() || boot_ms() > promised + 100;
    };
    lab::wait_until(over, cap, "the end of the time promised before the fault");
    Fate seen;
    seen.kept = first.believes() && !second.granted();
    if (first.told_ms() > 0) seen.told_ms = first.told_ms() - from;
    if (seen.kept) {
        from = boot_ms();
        first.release();
    }
    const auto answer = second.answer();
    fault.heal();
    if (answer) throw SelfCheck("the next holder: " + answer.message() + ": " + second.words());
    tally.add(watch(first, second, long_cap));
    tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
    seen.again_ms = std::max(0.0, second.granted_ms() - from);
    return seen;
}

struct Played {
    std::vector<Fate> seen;
    Tally tally;
};

void add_rows(Bench& bench, const SetUp& set_up, const Played& played) {
    if (played.seen.empty()) return;
    report(bench, set_up, played.tally);
    report(bench, set_up, played.seen, ttl_ms, "renewed while the server was lost",
           "time until the next grant",
           "from the release, or where the lease was lost from the fault");
}

void run(Bench& bench) {
    Three three(bench);
    std::optional<Five> five;
    if (bench.site.find("redlock") != nullptr) five.emplace(bench.site.folder(), true);
    const auto clusters = clusters_of(three, five ? &*five : nullptr);
    std::vector<std::vector<Played>> played(clusters.size());
    std::vector<std::string> failures(clusters.size());
    const int rounds = bench.options.pick(1, 1, 10);
    std::vector<std::function<void()>> jobs;
    for (std::size_t i = 0; i < clusters.size(); ++i)
        jobs.emplace_back([&, i] {
            const auto& [deployment, faults] = clusters[i];
            played[i].resize(faults.size());
            try {
                for (int round = 0; round < rounds; ++round)
                    for (std::size_t f = 0; f < faults.size() && !bench.stopped(); ++f)
                        played[i][f].seen.push_back(
                            play(bench, deployment, faults[f], played[i][f].tally));
            } catch (const std::exception& error) {
                failures[i] = error.what();
            }
        });
    side_by_side(jobs);
    for (std::size_t i = 0; i < clusters.size(); ++i) {
        const auto& [deployment, faults] = clusters[i];
        for (std::size_t f = 0; f < faults.size(); ++f)
            add_rows(bench, of(deployment, faults[f]), played[i][f]);
        if (failures[i].empty()) continue;
        Row row = row_of(id, deployment);
        row.metric = "failed";
        row.note = failures[i];
        row.status = Status::failed;
        bench.add(std::move(row));
    }
}

}  // namespace

Scenario c18a_one_of_several() {
    return {
        id, "one of several servers is lost while a lock is held",
        "Three servers of ZooKeeper, three members of etcd, five nodes of Redlock. A holder has "
        "renewed, another client waits; then the leader (a node) is killed, a follower (a node) "
        "is stopped, so that neither clients nor the others hear it, or the clock of the leader "
        "(a node) jumps an hour ahead. etcd's clocks cannot be moved. Kept: the lease is valid "
        "after the time that was promised at the fault. Then the holder releases.",
        false, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            for (const char* backend : {"zookeeper", "etcd", "redlock"})
                if (steps.empty() && site.find(backend) != nullptr)
                    steps.push_back({"one of several servers lost", run});
            return steps;
        }};
}

}  // namespace holdfast::bench
