// C26: a waiter watches the node ahead, which goes away just then; it does not wait any longer.
#include <fmt/format.h>

#include <sstream>

#include "measure/crowd.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C26";
constexpr const char* metric = "watches left at the server";
using Kind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;

long watches(Bench& bench) {
    const std::string answer = bench.site.zookeeper()->ask(0, "mntr");
    const std::string key = "zk_watch_count";
    const auto at = answer.find(key);
    if (at == std::string::npos) throw SelfCheck("mntr tells no zk_watch_count");
    return std::stol(answer.substr(at + key.size()));
}

struct Watches {
    long on_waiters = 0;  ///< on nodes in a line
    long on_names = 0;    ///< on a lock's own node
};

/// Those below /holdfast, by the server's list of paths, each followed by the sessions that watch.
Watches watches_of_holdfast(Bench& bench) {
    std::istringstream lines(bench.site.zookeeper()->ask(0, "wchp"));
    Watches found;
    std::string path;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('/'))
            path = line;
        else if (line.starts_with('\t') && path.starts_with("/holdfast/"))
            ++(path.find("-lock-") != std::string::npos ? found.on_waiters : found.on_names);
    }
    return found;
}

/// Watches what the server has after so many abandoned waits, those before left out.
void run_bare(Bench& bench, bool by_exists) {
    const std::string servers = bench.site.zookeeper()->connect_string();
    ZooKeeperSession ahead(servers, milliseconds(2000)), waiter(servers, milliseconds(2000));
    const std::vector<ZooKeeperSession*> both{&ahead, &waiter};
    const std::string parent = by_exists ? "/bench-c26-exists" : "/bench-c26-data";
    ahead.create(parent, Kind::persistent);
    const auto before = watches(bench);
    const std::size_t batch = 250, total = bench.options.pick<std::size_t>(250, 2500, 10000);
    for (std::size_t done = 0; done < total && !bench.stopped(); done += batch) {
        std::vector<std::string> paths;
        std::size_t answered = 0;
        const auto all = [&](const char* what) {
            turn_until(
                both, [&] { return answered == batch; }, milliseconds(10000), what);
            answered = 0;
        };
        for (std::size_t i = 0; i < batch; ++i)
            ahead.create(parent + "/lock-", Kind::sequential, [&](const ZooKeeperAnswer& a) {
                paths.push_back(a.path);
                ++answered;
            });
        all("nodes ahead");
        if (waiter.children(parent).names.size() != batch)
            throw SelfCheck("c26: a node is missing");
        const auto count = [&](const ZooKeeperAnswer&) { ++answered; };
        for (const std::string& path : paths)
            ahead.remove(path, count);
        all("their deletion");
        const auto gone = [&](const ZooKeeperAnswer& a) {
            if (!a.no_node()) throw SelfCheck("c26: the node ahead was to be gone");
            ++answered;
        };
        for (const std::string& path : paths)
            by_exists ? waiter.exists(path, Watch::yes, gone) : waiter.get(path, Watch::yes, gone);
        all("the waiter's answers");
    }
    Row row;
    row.scenario = id;
    row.backend = "zookeeper";
    row.variant = by_exists ? "doc: exists watch" : "data watch";
    row.metric = metric;
    row.n = total;
    row.note = "mntr, the session still there; the node ahead was gone when the watch was set";
    bench.add_value(row, static_cast<double>(watches(bench) - before));
}

/// Holdfast's waiters, cancelled in the middle of hand-offs.
void run_holdfast(Bench& bench, const Deployment& d) {
    constexpr std::size_t waiters = 100;
    const int rounds = bench.options.pick(1, 5, 30);
    const auto before = watches_of_holdfast(bench);
    Watches left;
    for (int i = 0; i < rounds && !bench.stopped(); ++i) {
        Crowd crowd(d, waiters, "bench-c26");
        crowd.run_for(0.3);
        if (watches_of_holdfast(bench).on_waiters <= before.on_waiters)
            throw SelfCheck("c26: those who wait watch nothing");
        crowd.end();
        Watches now;
        (void)lab::reached(
            [&] {
                now = watches_of_holdfast(bench);
                return now.on_waiters <= before.on_waiters;
            },
            std::chrono::seconds(1));
        left.on_waiters += now.on_waiters - before.on_waiters;
        left.on_names += now.on_names - before.on_names;
    }
    Row row = row_of(id, d);
    row.metric = metric;
    row.n = waiters * static_cast<std::size_t>(rounds);
    row.note = "wchp, the clients still there";
    bench.add_value(row, static_cast<double>(left.on_waiters));
    row.metric = "watches kept on the name itself";
    row.note = fmt::format(
        "wchp; one for each client and name in use, whatever the number of waits, so that an "
        "acquisition need not list; {} clients",
        rounds * static_cast<int>(clients_for(waiters)));
    bench.add_value(row, static_cast<double>(left.on_names));
}

std::vector<Step> plan(const Options&, const Site& site) {
    const auto* d = site.find("zookeeper");
    if (d == nullptr) return {};
    return {{"abandoned waits, exists watch", [](Bench& bench) { run_bare(bench, true); }},
            {"abandoned waits, data watch", [](Bench& bench) { run_bare(bench, false); }},
            {"abandoned waits, zookeeper", [d = *d](Bench& bench) { run_holdfast(bench, d); }}};
}

}  // namespace

Scenario c26_exists_watch() {
    return {id, "watches left behind by abandoned waits",
            "A bare waiter lists, the nodes ahead go away, it sets its watch on each and gives up: "
            "by exists, and by reading the data. Holdfast's waiters are cancelled 100 at a time. "
            "Counted by the server (mntr, and wchp by paths), before any session ends.",
            false, plan};
}

}  // namespace holdfast::bench
