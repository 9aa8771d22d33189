// C3, second half: half of those who wait for one lock are killed at once while somebody holds it.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <deque>

#include "measure/loop.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/zookeeper_herd.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C3";
/// The holder's ttl outlasts a machine that stands still while the others get into line.
constexpr milliseconds held_for{30'000};

/// What the survivors of one burst saw.
struct Burst {
    std::vector<double> served_ms;  ///< each, from the kill
    std::uint64_t requests = 0;     ///< of all of them, from the kill
};

/// Waiters in processes of their own, which are killed all at once.
class Victims {
public:
    Victims(const Bench& bench, const std::string& name, WorkerOptions how)
        : store_(bench.site.folder() / (name + ".sock")),
          how_(std::move(how)),
          log_(bench.site.folder() / "workers.log") {
        store_.reset(0, 1);
        how_.store = store_.address();
    }
    void add() { all_.push_back(start_worker(how_, log_)); }
    const Store& store() const { return store_; }
    /// Returns when all of them are gone. Errors: SelfCheck when one had been before.
    void kill() {
        for (auto& victim : all_)
            if (!victim.alive()) throw SelfCheck("a waiter ended: " + victim.log_tail(3));
        for (auto& victim : all_)
            victim.signal(SIGKILL);
        for (auto& victim : all_)
            victim.kill();
    }

private:
    Store store_;
    WorkerOptions how_;
    std::filesystem::path log_;
    std::vector<lab::Process> all_;
};

/// Survivors with a client each; every second one in line is a process that will be killed.
class Line {
public:
    Line(const Bench& bench, const Deployment& d, const std::string& name, milliseconds ttl,
         Victims& victims, std::size_t survivors)
        : holder_(bench, d, name, with(held_for)), held_(holder_.must(lab::default_cap)) {
        for (std::size_t i = 0; i < survivors; ++i) {
            victims.add();
            wait_in_line(d.prefix + name, 2 * i + 1);
            const Client& client = clients_.emplace_back(bench.open(d, loop_.get_executor()));
            One& one = all_.emplace_back();
            one.lock = bench.lock(client, d, name, with(ttl));
            one.lock->async_acquire({}, [this, &one](error_code ec, Lease lease) {
                served(one, ec, std::move(lease));
            });
            wait_in_line(d.prefix + name, 2 * i + 2);
        }
    }
    ~Line() {
        all_.clear();
        for (Client& client : clients_)
            client.close();
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    Burst play(Victims& victims) {
        const auto before = requests();
        killed_ = Clock::now();
        victims.kill();
        if (held_.release() != ReleaseResult::released)
            throw SelfCheck("the holder's release was not answered");
        run_until(loop_, Clock::now() + std::chrono::seconds(30),
                  [&] { return failure_ || released_ == all_.size(); });
        check(failure_, "burst");
        if (released_ < all_.size()) throw SelfCheck("a survivor was not served within 30 s");
        burst_.requests = requests() - before;
        return burst_;
    }

private:
    struct One {
        std::unique_ptr<Lock> lock;
        Lease lease;
    };
    static LockOptions with(milliseconds ttl) {
        LockOptions how;
        how.ttl = ttl;
        return how;
    }
    void wait_in_line(const std::string& name, std::size_t n) {
        const auto reached = [&] {
            const auto found = holder_.client.inspect(name);
            return found && found->waiters.size() == n;
        };
        lab::wait_until(reached, lab::default_cap, std::to_string(n) + " waiters");
    }
    void served(One& one, error_code ec, Lease lease) {
        if (ec) {
            failure_ = ec;
            return;
        }
        burst_.served_ms.push_back(millis_since(killed_));
        one.lease = std::move(lease);
        one.lease.async_release(Outcome::done, [this](error_code, ReleaseResult) { ++released_; });
    }
    std::uint64_t requests() const {
        std::uint64_t sum = 0;
        for (const Client& client : clients_)
            sum += client.stats().requests;
        return sum;
    }

    asio::io_context loop_;
    Party holder_;
    Lease held_;
    std::vector<Client> clients_;
    std::deque<One> all_;
    Clock::time_point killed_{};
    std::size_t released_ = 0;
    Burst burst_;
    error_code failure_;
};

Burst play_holdfast(Bench& bench, const Deployment& whose, const std::string& name,
                    milliseconds ttl, std::size_t survivors) {
    const Deployment d = leaves_after(whose, ttl);
    WorkerOptions how;
    how.job = "hold";
    how.guard = "holdfast";
    how.url = d.open;
    how.name = d.prefix + name;
    how.ttl_ms = static_cast<int>(ttl.count());
    Victims victims(bench, name, how);
    Line line(bench, d, name, ttl, victims, survivors);
    return line.play(victims);
}

Burst play_herd(Bench& bench, const std::string& name, std::size_t survivors) {
    WorkerOptions how;
    how.job = "watch";
    how.guard = "none";
    how.url = bench.site.zookeeper()->connect_string();
    how.name = "/" + name;
    Victims victims(bench, name, how);
    HerdBurst herd(how.url, how.name, survivors);
    for (std::size_t i = 0; i < survivors; ++i)
        victims.add();
    lab::wait_until(
        [&] {
            herd.turn();
            return victims.store().events().size() == survivors;
        },
        lab::default_cap, "the herd's other half");
    const auto killed = Clock::now();
    victims.kill();
    const auto seen = herd.play(killed);
    return {seen.served_ms, seen.requests};
}

struct SetUp {
    Deployment deployment;
    bool herd = false;
    std::vector<double> all, half, requests;
};

void add_rows(Bench& bench, const SetUp& seen, std::size_t waiters, milliseconds ttl) {
    if (seen.all.empty()) return;
    Row row = row_of(id, seen.deployment, static_cast<double>(waiters));
    row.n = seen.all.size();
    row.unit = "ms";
    row.note = "from SIGKILL to half of the waiters" +
               (seen.herd ? std::string()
                          : ", every second in line; ttl " + std::to_string(ttl.count()) + " ms");
    row.metric = "burst: time until all survivors were served";
    bench.add(row, spread_of(seen.all));
    row.metric = "burst: time until half of the survivors were served";
    bench.add(row, spread_of(seen.half));
    row.metric = "burst: requests per survivor";
    row.unit = "";
    row.note = "from the kill to everybody's release, by the clients' own count";
    bench.add(row, spread_of(seen.requests));
}

void run(Bench& bench, std::vector<SetUp> set_ups) {
    const auto survivors = static_cast<std::size_t>(bench.options.pick(4, 10, 25));
    const milliseconds ttl(bench.options.pick(500, 1000, 1000));
    for (int i = 0; i < bench.options.pick(1, 3, 5) && !bench.stopped(); ++i) {
        std::vector<std::function<void()>> jobs;
        for (SetUp& set_up : set_ups)
            jobs.emplace_back([&, i] {
                const auto number = std::to_string(&set_up - set_ups.data());
                const auto name = "bench-burst-" + number + "-" + std::to_string(i);
                Burst seen = set_up.herd
                                 ? play_herd(bench, name, survivors)
                                 : play_holdfast(bench, set_up.deployment, name, ttl, survivors);
                std::sort(seen.served_ms.begin(), seen.served_ms.end());
                set_up.all.push_back(seen.served_ms.back());
                set_up.half.push_back(seen.served_ms[(survivors - 1) / 2]);
                set_up.requests.push_back(static_cast<double>(seen.requests) /
                                          static_cast<double>(survivors));
            });
        side_by_side(jobs);
    }
    for (const SetUp& set_up : set_ups)
        add_rows(bench, set_up, 2 * survivors, ttl);
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<SetUp> set_ups;
    for (const char* backend : {"redis", "zookeeper", "etcd"})
        if (const auto* d = site.find(backend)) set_ups.push_back({*d, false, {}, {}, {}});
    if (site.find("zookeeper") != nullptr)
        set_ups.push_back(
            {variant_of("zookeeper", "doc: one node, all watch", ""), true, {}, {}, {}});
    if (set_ups.empty()) return {};
    return {
        {"half of the waiters killed at once", [set_ups](Bench& bench) { run(bench, set_ups); }}};
}

}  // namespace

Scenario c3_burst() {
    return {id, "half of the waiters of one lock are killed at once",
            "Somebody holds, 20 wait (8 with --quick, 50 with --full); every second one in line is "
            "a process that is killed (SIGKILL), all at once, and then the holder releases. Each "
            "survivor releases as soon as it is granted. Holdfast's survivors have a client each, "
            "those of the node that all watch a bare session each.",
            false, plan};
}

}  // namespace holdfast::bench
