// C18b: a PostgreSQL primary with a standby to switch to, asynchronous and synchronous.
#include <thread>

#include "faults/holder.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C18b";

struct Case {
    const char* variant;
    bool synchronous;
    bool cut;  ///< replication, before the grant
    bool safe;
    const char* note;
};

constexpr Case cases[] = {
    {"asynchronous, cut", false, true, false, "the standby has not heard of the grant"},
    {"synchronous, cut", true, true, true, "a grant waits for the standby, so there is none"},
    {"synchronous, whole", true, false, true, "the standby has the grant before its holder has"},
};

SetUp of(const Case& what) {
    return {id, "postgresql", what.variant, what.safe, what.note};
}

Deployment at(const lab::PostgresServer& server) {
    return {"postgresql", "default", server.url(), {}, {}, {}};
}

bool streams(const lab::PostgresServer& primary) {
    return primary.value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") ==
           "1";
}

void make_synchronous(const lab::PostgresServer& primary) {
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.sql("SELECT pg_reload_conf()");
    lab::wait_until(
        [&] {
            return primary.value(
                       "SELECT count(*) FROM pg_stat_replication "
                       "WHERE sync_state = 'sync'") == "1";
        },
        lab::default_cap, "a synchronous standby");
}

/// The standby forgets where its primary is: what it has received stays, nothing more comes.
void cut(const lab::PostgresServer& primary, const lab::PostgresServer& standby) {
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
    standby.sql("SELECT pg_reload_conf()");
    lab::wait_until([&] { return !streams(primary); }, lab::default_cap, "replication to end");
}

void play(const Bench& bench, const Case& what, int number, int ttl_ms, Tally& tally) {
    auto primary = lab::PostgresServer::start();
    const std::string name = "bench/standby/" + std::to_string(number);
    const SetUp set_up = of(what);
    Holder first(bench, at(primary), name, {.ttl = milliseconds(ttl_ms)},
                 history_of(bench, set_up, at(primary), "A"));
    {
        Holder table(bench, at(primary), name + "/table",
                     {.ttl = milliseconds(ttl_ms)});  // made before the standby is
        table.must_acquire(lab::default_cap);
    }
    auto standby = primary.standby();
    lab::wait_until([&] { return streams(primary); }, lab::default_cap, "the standby to stream");
    if (what.synchronous) make_synchronous(primary);
    if (what.cut) cut(primary, standby);

    const auto refused = first.acquire(milliseconds(ttl_ms / 2));
    if (refused && !(what.synchronous && what.cut))
        throw SelfCheck("the primary: " + refused.message() + ": " + first.words());
    if (what.cut &&
        standby.value("SELECT pg_last_wal_receive_lsn() < '" +
                      primary.value("SELECT pg_current_wal_lsn()") + "'::pg_lsn") != "t")
        throw SelfCheck("replication was not cut: the standby has received everything");
    primary.kill();
    standby.promote();
    Holder second(bench, at(standby), name, {.ttl = milliseconds(ttl_ms)},
                  history_of(bench, set_up, at(standby), "B"));
    second.must_acquire(milliseconds(3 * ttl_ms) + lab::default_cap);
    tally.add(refused ? Overlap{} : watch(first, second, milliseconds(2 * ttl_ms)));
    if (!refused) tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
}

void run(Bench& bench) {
    constexpr int ttl_ms = 3000;  // a standby has to be promoted well within it
    const int rounds = bench.options.pick(1, 1, 10);
    std::vector<Tally> tallies(std::size(cases));
    std::vector<std::string> failures(std::size(cases));
    {
        std::vector<std::jthread> all;  // side by side: each mostly waits
        for (std::size_t c = 0; c < std::size(cases); ++c)
            all.emplace_back([&, c] {
                try {
                    for (int i = 0; i < rounds && !bench.stopped(); ++i)
                        play(bench, cases[c], static_cast<int>(c) * 1000 + i, ttl_ms, tallies[c]);
                } catch (const std::exception& error) {
                    failures[c] = error.what();
                }
            });
    }
    for (std::size_t c = 0; c < std::size(cases); ++c) {
        const Case& what = cases[c];
        report(bench, of(what), tallies[c]);
        if (failures[c].empty()) continue;
        Row row;
        row.scenario = id;
        row.backend = "postgresql";
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
        id, "a PostgreSQL primary dies, its standby takes over",
        "A primary and a hot standby, asynchronous or synchronous. To cut the replication the "
        "standby is told to forget its primary (pg_stat_replication and the positions in the log "
        "prove it). The primary is killed, the standby promoted, and another client asks there. "
        "Both leases are looked at at the same moments.",
        false, [](const Options&, const Site& site) {
            std::vector<Step> steps;
            if (site.find("postgresql") != nullptr)
                steps.push_back({"postgresql, primary killed, standby promoted", run});
            return steps;
        }};
}

}  // namespace holdfast::bench
