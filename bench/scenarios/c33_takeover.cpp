// C33: a primary dies under waiters, and another server takes over: how long nobody is granted the
// lock, and whether two clients hold it then.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <holdfast/lab/postgres_servers.hpp>
#include <holdfast/lab/redis_cluster.hpp>
#include <holdfast/lab/redis_set.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "checker/check.hpp"
#include "checker/diary.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C33";
constexpr const char* name_wanted = "wanted";
constexpr std::size_t clients = 4, callers = 5;  // of each client
constexpr std::chrono::seconds cap{60};

/// Several servers, of which another one can be made the primary.
class Servers {
public:
    virtual ~Servers() = default;
    virtual std::string url() const = 0;
    /// When it returns, another server is the primary. `failed`: called right after the fault.
    virtual void replace(history::Recorder& kills, const std::function<void()>& failed) = 0;
    /// Brings the former primary back.
    virtual void mend() = 0;
};

class RedisServers final : public Servers {
public:
    explicit RedisServers(bool kills) : kills_(kills), set_(lab::RedisSet::start(options())) {}
    std::string url() const override { return set_.url() + "?ttl=3s&request_timeout=500ms"; }
    void replace(history::Recorder& kills, const std::function<void()>& failed) override {
        former_ = set_.primary();
        if (kills_) {
            const auto from = history::now();
            set_.server(former_).kill();
            kills.server_killed(from);
            failed();
        } else {
            failed();
            set_.fail_over();
        }
        set_.wait_replaced(former_, cap);
    }
    void mend() override {
        if (kills_) set_.server(former_).restart();
        set_.wait_settled(cap);
    }

private:
    static lab::RedisSetOptions options() {
        lab::RedisSetOptions o;
        o.down_after = milliseconds(500);
        o.failover_timeout = std::chrono::seconds(3);
        return o;
    }
    bool kills_;
    lab::RedisSet set_;
    std::size_t former_ = 0;
};

class RedisClusterServers final : public Servers {
public:
    std::string url() const override { return cluster_.url() + "?ttl=3s&request_timeout=500ms"; }
    void replace(history::Recorder& kills, const std::function<void()>& failed) override {
        former_ = cluster_.owner(slot_);
        const auto from = history::now();
        cluster_.server(former_).kill();
        kills.server_killed(from);
        failed();
        const std::size_t witness = (former_ + 1) % primaries;
        lab::wait_until([&] { return cluster_.owner(slot_, witness) != former_; }, cap,
                        "a replica to take over the slot");
    }
    void mend() override {
        lab::RedisServer& former = cluster_.server(former_);
        former.restart();
        cluster_.wait_settled(cap);
        lab::wait_until([&] { return former.info("replication")["master_link_status"] == "up"; },
                        cap, "a copy of what the primary has");
    }

private:
    static constexpr std::size_t primaries = 3;
    static lab::RedisClusterOptions options() {
        lab::RedisClusterOptions o;
        o.primaries = primaries;
        o.replicas = 1;
        o.node_timeout = milliseconds(500);
        return o;
    }
    lab::RedisCluster cluster_ = lab::RedisCluster::start(options());
    unsigned slot_ = cluster_.slot_of(name_wanted);
    std::size_t former_ = 0;
};

class PostgresqlServers final : public Servers {
public:
    std::string url() const override { return servers_.url() + "?ttl=3s"; }
    void replace(history::Recorder& kills, const std::function<void()>& failed) override {
        former_ = servers_.primary();
        const auto from = history::now();
        servers_.server(former_).kill();
        kills.server_killed(from);
        failed();
        servers_.promote_another();
    }
    void mend() override { servers_.server(former_).follow(servers_.server(servers_.primary())); }

private:
    lab::PostgresServers servers_ = lab::PostgresServers::start();
    std::size_t former_ = 0;
};

/// Callers that want one name, and hold it for a moment each.
class Crowd {
public:
    Crowd(const Deployment& d, const std::filesystem::path& folder) {
        for (std::size_t i = 0; i < clients; ++i)
            clients_.push_back(Bench::open(d));
        for (std::size_t i = 0; i < clients * callers; ++i)
            threads_.emplace_back([this, i, folder] { work(clients_[i / callers], i, folder); });
    }
    ~Crowd() { end(); }
    void end() {
        ending_ = true;
        for (auto& one : threads_)
            if (one.joinable()) one.join();
    }
    /// Returns when so many more were granted. Errors: LabError after a minute.
    void go_on(std::size_t by) {
        const auto until = granted_ + by;
        lab::wait_until([&] { return granted_ >= until; }, cap, "grants");
    }
    std::size_t granted() const { return granted_; }
    std::size_t failed() const { return failed_; }

private:
    void work(const Client& client, std::size_t number, const std::filesystem::path& folder) {
        const auto lock = client.make_lock(name_wanted).value();
        const auto promised = lock->capabilities();
        Diary diary(folder / fmt::format("{}.history", number), "caller");
        const auto name = diary.name(name_wanted, &promised);
        while (!ending_) {
            auto entry = diary.asked(name);
            auto lease = lock->acquire({.wait = cap});
            if (!lease) {
                diary.failed(entry, lease.error());
                ++failed_;
                continue;
            }
            diary.granted(entry, *lease);
            ++granted_;
            diary.hold(entry, *lease, milliseconds(5));
        }
    }

    std::vector<Client> clients_;
    std::atomic<bool> ending_{false};
    std::atomic<std::size_t> granted_{0}, failed_{0};
    std::vector<std::thread> threads_;
};

struct Case {
    const char* backend;
    const char* variant;
    bool safe;
    bool quick;  ///< with --quick, too
    const char* note;
    std::unique_ptr<Servers> (*start)();
};

const std::array cases{
    Case{"redis-sentinel", "primary killed", false, true, "Sentinels call it down after 500 ms",
         []() -> std::unique_ptr<Servers> { return std::make_unique<RedisServers>(true); }},
    Case{"redis-sentinel", "SENTINEL FAILOVER", false, false,
         "the primary goes on until it is told",
         []() -> std::unique_ptr<Servers> { return std::make_unique<RedisServers>(false); }},
    Case{"redis-cluster", "primary killed", false, false, "the others call it down after 500 ms",
         []() -> std::unique_ptr<Servers> { return std::make_unique<RedisClusterServers>(); }},
    Case{"postgresql", "synchronous standby", true, true,
         "killed, and a standby promoted at once; a release that it lacks lasts for the ttl, 3 s",
         []() -> std::unique_ptr<Servers> { return std::make_unique<PostgresqlServers>(); }},
};

history::Verdict judge(const std::filesystem::path& folder) {
    // A release is not waited for: neither on the disk nor at a standby.
    history::Limits limits;
    limits.unsynced_release = history::Nanos(2'000'000'000);
    return history::check_folder(folder, limits);
}

void run(Bench& bench, const Case& what) {
    const auto servers = what.start();
    const Deployment d = variant_of(what.backend, what.variant, servers->url());
    const lab::TempDir folder;
    std::vector<double> without, after;
    std::size_t granted = 0, failed = 0;
    {
        history::Recorder kills(folder / "servers.history", "servers");
        Crowd crowd(d, folder.path());
        const int times = bench.options.pick(1, 3, 10);
        for (int i = 0; i < times && !bench.stopped(); ++i) {
            crowd.go_on(20);
            Clock::time_point fault;
            servers->replace(kills, [&] { fault = Clock::now(); });
            const auto named = Clock::now();
            crowd.go_on(1);
            without.push_back(1e3 * seconds_since(fault));
            after.push_back(1e3 * seconds_since(named));
            servers->mend();
        }
        crowd.go_on(20);
        crowd.end();
        granted = crowd.granted();
        failed = crowd.failed();
    }
    const auto verdict = judge(folder.path());
    add_times(bench, id, d, "first grant after the new primary is named", after, what.note);
    add_times(bench, id, d, "first grant after the fault", without, what.note);
    Row row = row_of(id, d);
    row.n = without.size();
    const auto add = [&](const char* metric, double value) {
        row.metric = metric;
        bench.add_value(row, value);
    };
    add("grants", double(granted));
    add("acquisitions that failed", double(failed));
    const auto two =
        verdict.count(history::Trouble::overlap) + verdict.count(history::Trouble::within_validity);
    if (what.safe && two > 0) row.status = Status::violated;
    add("two holders", double(two));
}

std::vector<Step> plan(const Options& options, const Site& site) {
    std::vector<Step> steps;
    for (const Case& one : cases)
        if (site.find(one.backend) != nullptr && (options.effort != Effort::quick || one.quick))
            steps.push_back({fmt::format("{} {}", one.backend, one.variant),
                             [&one](Bench& bench) { run(bench, one); }});
    return steps;
}

}  // namespace

Scenario c33_takeover() {
    return {
        id, "a primary dies or is replaced under 20 waiters",
        "Servers of which one is the primary: Redis with three Sentinels, Redis Cluster, "
        "PostgreSQL "
        "with synchronous standbys. 20 callers in 4 clients want one lock for 5 ms each, again and "
        "again. The primary is killed, or replaced by SENTINEL FAILOVER, and comes back as a "
        "replica. The time to the next grant is measured, and every caller's record of what it "
        "believed is judged by the checker of histories.",
        false, plan};
}

}  // namespace holdfast::bench
