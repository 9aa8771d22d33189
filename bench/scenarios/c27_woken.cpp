// C27: a waiter in the middle of the queue dies. The one behind it is woken: granted, or to look
// again?
#include <algorithm>

#include "faults/holder.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C27";
using Kind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;

/// Three sessions in line; the middle one ends without a word. Whether the last one believes to
/// hold while the first one does.
bool bare(Bench& bench, const std::string& parent, bool woken_means_granted, milliseconds timeout) {
    const std::string servers = bench.site.zookeeper()->connect_string();
    ZooKeeperSession first(servers, milliseconds(2000)), middle(servers, timeout),
        last(servers, milliseconds(2000));
    const std::vector<ZooKeeperSession*> alive{&first, &last};
    first.create(parent, Kind::persistent);
    const std::string held = first.create(parent + "/lock-", Kind::sequential).path;
    const std::string between = middle.create(parent + "/lock-", Kind::sequential).path;
    const std::string own = last.create(parent + "/lock-", Kind::sequential).path;
    if (!middle.get(held, Watch::yes).ok() || !last.get(between, Watch::yes).ok())
        throw SelfCheck("c27: the line is not as it was made");
    bool woken = false;
    last.on_event = [&](const std::string&) { woken = true; };
    middle.leave();
    turn_until(
        alive, [&] { return woken; }, milliseconds(10000), "the end of a session");

    const auto mine_is_first = [&] {
        auto names = last.children(parent).names;
        std::sort(names.begin(), names.end());
        return !names.empty() && parent + "/" + names.front() == own;
    };
    const bool believes = woken_means_granted || mine_is_first();
    const bool two = believes && first.get(held).ok();
    if (believes) return two;
    // It looked again: it is next, and is granted when the holder goes.
    woken = false;
    if (!last.get(held, Watch::yes).ok()) throw SelfCheck("c27: the holder is gone");
    first.remove(held);
    turn_until(
        alive, [&] { return woken; }, milliseconds(10000), "the holder's release");
    if (!mine_is_first()) throw SelfCheck("c27: woken by the holder, and yet not first");
    return false;
}

std::size_t waiters(const Client& client, const std::string& name) {
    const auto found = client.inspect(name);
    return found ? found->waiters.size() : 0;
}

bool holdfast_trial(Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl) {
    const Client onlooker = bench.open(d);
    Holder first(bench, d, name, {.ttl = ttl}, bench.history(d, "C27-first"));
    Holder last(bench, d, name, {.ttl = ttl}, bench.history(d, "C27-last"));
    first.must_acquire(lab::default_cap);
    // In line, for as long as the first one holds.
    HoldingProcess middle(bench, d, name, ttl, bench.history(d, "C27-middle"));
    const auto in_line = [&](std::size_t n) {
        lab::wait_until([&] { return waiters(onlooker, name) == n; }, lab::default_cap,
                        std::to_string(n) + " waiters");
    };
    in_line(1);
    last.queue(lab::default_cap);
    in_line(2);
    middle.process().kill();
    in_line(1);  // the server has noticed
    const bool two = lab::reached([&] { return last.granted(); }, ttl) && first.believes();
    first.release();
    if (last.answer()) throw SelfCheck("c27: the last in line was never granted: " + last.words());
    return two;
}

void run(Bench& bench) {
    const auto ttl = roomy_ttl(bench, milliseconds(bench.options.pick(300, 500, 1000)));
    const Deployment granted = variant_of("zookeeper", "doc: woken means granted", "");
    const Deployment looks = variant_of("zookeeper", "bare: woken means look again", "");
    std::vector<Deployment> own;
    for (const char* backend : {"zookeeper", "redis", "etcd"})
        if (const auto* d = bench.site.find(backend)) own.push_back(leaves_after(*d, ttl));
    Count by_granted, by_looks;
    std::vector<Count> by_own(own.size());
    for (int i = 0; i < trials(bench.options) && !bench.stopped(); ++i) {
        const std::string name = "bench-c27-" + std::to_string(i);
        std::vector<std::function<void()>> jobs{
            [&] { by_granted.add(bare(bench, "/" + name + "-granted", true, ttl)); },
            [&] { by_looks.add(bare(bench, "/" + name + "-looks", false, ttl)); }};
        for (std::size_t k = 0; k < own.size(); ++k)
            jobs.emplace_back([&, k] {
                by_own[k].add(holdfast_trial(bench, own[k], name + "-" + own[k].backend, ttl));
            });
        side_by_side(jobs);
    }
    const char* metric = "two holders after a waiter's death";
    add_tally(bench, id, granted, metric, by_granted, false);
    add_tally(bench, id, looks, metric, by_looks, false);
    for (std::size_t k = 0; k < own.size(); ++k)
        add_tally(bench, id, own[k], metric, by_own[k], true, "the waiter's process is killed");
}

std::vector<Step> plan(const Options&, const Site& site) {
    if (site.find("zookeeper") == nullptr) return {};
    return {{"a waiter dies in the middle of the queue", run}};
}

}  // namespace

Scenario c27_woken() {
    return {id, "a waiter in the middle of the queue dies",
            "Holder, waiter, waiter; the middle one's connection ends without a word and its "
            "session runs out. The last one is woken: believes, or lists again. With Holdfast the "
            "middle one is a process that is killed.",
            false, plan};
}

}  // namespace holdfast::bench
