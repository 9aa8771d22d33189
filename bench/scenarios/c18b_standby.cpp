// C18b: a PostgreSQL or MariaDB primary with a standby to switch to, asynchronous and synchronous.
#include <thread>

#include "faults/holder.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C18b";

enum class Commit { alone, waits, waits_a_moment };  ///< for the standby

struct Case {
    const char* backend;
    const char* variant;
    Commit commit;
    bool cut;  ///< replication, before the grant
    bool safe;
    const char* note;

    bool refuses() const { return commit == Commit::waits && cut; }
};

constexpr Case cases[] = {
    {"postgresql", "asynchronous, cut", Commit::alone, true, false,
     "the standby has not heard of the grant"},
    {"postgresql", "synchronous, cut", Commit::waits, true, true,
     "a grant waits for the standby, so there is none"},
    {"postgresql", "synchronous, whole", Commit::waits, false, true,
     "the standby has the grant before its holder has"},
    {"mysql", "asynchronous, cut", Commit::alone, true, false,
     "the replica has not heard of the grant"},
    {"mysql", "semi-synchronous, cut", Commit::waits_a_moment, true, false,
     "a grant waits for the replica for 300 ms, and then for nobody"},
};

SetUp of(const Case& what) {
    return {id, what.backend, what.variant, what.safe, what.note};
}

/// A primary, and what takes over from it.
class Pair {
public:
    virtual ~Pair() = default;
    /// URLs.
    virtual std::string primary() const = 0;
    virtual std::string standby() const = 0;
    /// Makes the standby.
    virtual void follow(Commit) = 0;
    /// The standby forgets where its primary is: what it has received stays, nothing more comes.
    virtual void cut() = 0;
    /// Whether the standby has not received everything.
    virtual bool behind() const = 0;
    /// The primary is killed, and the standby promoted.
    virtual void switch_over() = 0;
};

class PostgresPair final : public Pair {
public:
    std::string primary() const override { return primary_.url(); }
    std::string standby() const override { return standby_->url(); }
    void follow(Commit commit) override {
        standby_.emplace(primary_.standby());
        wait("the standby to stream", "state = 'streaming'", "1");
        if (commit == Commit::alone) return;
        primary_.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary_.sql("SELECT pg_reload_conf()");
        wait("a synchronous standby", "sync_state = 'sync'", "1");
    }
    void cut() override {
        standby_->sql("ALTER SYSTEM SET primary_conninfo = ''");
        standby_->sql("SELECT pg_reload_conf()");
        wait("replication to end", "state = 'streaming'", "0");
    }
    bool behind() const override {
        return standby_->value("SELECT pg_last_wal_receive_lsn() < '" +
                               primary_.value("SELECT pg_current_wal_lsn()") + "'::pg_lsn") == "t";
    }
    void switch_over() override {
        primary_.kill();
        standby_->promote();
    }

private:
    void wait(const char* what, const char* which, const char* many) const {
        lab::wait_until(
            [&] {
                return primary_.value("SELECT count(*) FROM pg_stat_replication WHERE " +
                                      std::string(which)) == many;
            },
            lab::default_cap, what);
    }

    lab::PostgresServer primary_ = lab::PostgresServer::start();
    std::optional<lab::PostgresServer> standby_;
};

class MariadbPair final : public Pair {
public:
    std::string primary() const override { return primary_.url(); }
    std::string standby() const override { return replica_->url(); }
    void follow(Commit commit) override {
        replica_.emplace(primary_.replica());
        if (commit == Commit::alone) return;
        primary_.sql(
            "SET GLOBAL rpl_semi_sync_master_timeout = 300, rpl_semi_sync_master_wait_point = "
            "AFTER_SYNC, rpl_semi_sync_master_enabled = 1");
        replica_->sql(
            "SET GLOBAL rpl_semi_sync_slave_enabled = 1; STOP SLAVE IO_THREAD; START SLAVE "
            "IO_THREAD");
        wait("a semi-synchronous replica", "Rpl_semi_sync_master_clients", "1");
    }
    void cut() override { replica_->sql("STOP SLAVE IO_THREAD"); }
    bool behind() const override {
        // It has applied all that it has received.
        return replica_->value("SELECT @@gtid_slave_pos") !=
               primary_.value("SELECT @@gtid_binlog_pos");
    }
    void switch_over() override {
        primary_.kill();
        replica_->promote();
    }

private:
    static lab::MariadbServer start() {
        lab::MariadbOptions options;
        options.binary_log = true;
        return lab::MariadbServer::start(options);
    }
    void wait(const char* what, const char* which, const char* many) const {
        lab::wait_until(
            [&] {
                return primary_.sql("SHOW GLOBAL STATUS LIKE '" + std::string(which) + "'")
                           .at(0)
                           .at(1) == many;
            },
            lab::default_cap, what);
    }

    lab::MariadbServer primary_ = start();
    std::optional<lab::MariadbServer> replica_;
};

void play(const Bench& bench, const Case& what, int number, int ttl_ms, Tally& tally) {
    std::unique_ptr<Pair> pair;
    if (what.backend == std::string_view("mysql"))
        pair = std::make_unique<MariadbPair>();
    else
        pair = std::make_unique<PostgresPair>();
    const auto at = [&](const std::string& url) {
        return Deployment{what.backend, "default", url, {}, {}, {}};
    };
    const Deployment primary = at(pair->primary());
    const std::string name = "bench/standby/" + std::to_string(number);
    const SetUp set_up = of(what);
    Holder first(bench, primary, name, {.ttl = milliseconds(ttl_ms)},
                 history_of(bench, set_up, primary, "A"));
    {
        Holder table(bench, primary, name + "/table",
                     {.ttl = milliseconds(ttl_ms)});  // made before the standby is
        table.must_acquire(lab::default_cap);
    }
    pair->follow(what.commit);
    if (what.cut) pair->cut();

    const auto refused = first.acquire(milliseconds(ttl_ms / 2));
    if (refused && !what.refuses())
        throw SelfCheck("the primary: " + refused.message() + ": " + first.words());
    if (what.cut && !pair->behind())
        throw SelfCheck("replication was not cut: the standby has received everything");
    pair->switch_over();
    const Deployment standby = at(pair->standby());
    Holder second(bench, standby, name, {.ttl = milliseconds(ttl_ms)},
                  history_of(bench, set_up, standby, "B"));
    second.must_acquire(milliseconds(3 * ttl_ms) + lab::default_cap);
    tally.add(refused ? Overlap{} : watch(first, second, milliseconds(2 * ttl_ms)));
    if (!refused) tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
}

void run(Bench& bench, std::string_view backend) {
    constexpr int ttl_ms = 3000;  // a standby has to be promoted well within it
    const int rounds = bench.options.pick(1, 1, 10);
    std::vector<Tally> tallies(std::size(cases));
    std::vector<std::string> failures(std::size(cases));
    {
        std::vector<std::jthread> all;  // side by side: each mostly waits
        for (std::size_t c = 0; c < std::size(cases); ++c)
            if (cases[c].backend == backend)
                all.emplace_back([&, c] {
                    try {
                        for (int i = 0; i < rounds && !bench.stopped(); ++i)
                            play(bench, cases[c], static_cast<int>(c) * 1000 + i, ttl_ms,
                                 tallies[c]);
                    } catch (const std::exception& error) {
                        failures[c] = error.what();
                    }
                });
    }
    for (std::size_t c = 0; c < std::size(cases); ++c) {
        const Case& what = cases[c];
        if (what.backend != backend) continue;
        report(bench, of(what), tallies[c]);
        if (failures[c].empty()) continue;
        Row row;
        row.scenario = id;
        row.backend = what.backend;
        row.variant = what.variant;
        row.metric = "failed";
        row.note = failures[c];
        row.status = Status::failed;
        bench.add(std::move(row));
    }
}

}  // namespace

Scenario c18b_standby() {
    return {
        id, "a database primary dies, its standby takes over",
        "A primary of PostgreSQL and a hot standby, asynchronous or synchronous; of MariaDB and a "
        "replica, asynchronous or semi-synchronous. To cut the replication the standby is told to "
        "forget its primary (pg_stat_replication and the positions in the logs prove it). The "
        "primary is killed, the standby promoted, and another client asks there. Both leases are "
        "looked at at the same moments.",
        false, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            for (const char* backend : {"postgresql", "mysql"})
                if (site.find(backend) != nullptr)
                    steps.push_back({std::string(backend) + ", primary killed, standby promoted",
                                     [backend](Bench& bench) { run(bench, backend); }});
            return steps;
        }};
}

}  // namespace holdfast::bench
