// Several hosts in the URL: the primary is found, followed when another one takes over, and told
// from what it was before.
#include <future>

#include "../sql/direct.hpp"
#include "heard.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/postgres_servers.hpp"
#include "trial.hpp"

using namespace postgresql_tests;
using test_support::Heard;

namespace {

std::string url_of(const std::vector<std::uint16_t>& ports) {
    std::string hosts;
    for (const auto port : ports)
        hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
    return "postgresql://holdfast@" + hosts + "/holdfast";
}

std::size_t moves(const Heard& heard) {
    return heard.of(hf::Event::Kind::moved).size();
}

/// The words for what is not granted while a server is silent: such a call may be in doubt.
std::string refused_or_in_doubt(const hf::Client& c, const std::string& name) {
    hf::Diagnostics words;
    const auto lease = lock_of(c, name)->acquire({.wait = 0ms, .diagnostics = &words});
    CHECK_FALSE(lease.has_value());
    return words.text();
}

/// A silent server ends a new call after its request time-out: asks anew then.
hf::Lease hold_at_last(const hf::Client& c, const std::string& name) {
    hf::result<hf::Lease> lease = hf::Lease();
    lab::wait_until(
        [&] {
            lease = lock_of(c, name)->acquire({.wait = 10s});
            return lease.has_value();
        },
        cap(20s), "it is granted");
    return std::move(*lease);
}

hf::Finding finding(const hf::Examination& e, const std::string& id) {
    for (const hf::Finding& f : e.findings)
        if (f.id == id) return f;
    return {};
}

std::string timeline(const lab::PostgresServer& server) {
    return server.value("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)");
}

}  // namespace

TEST_CASE("hosts: the primary is found among dead hosts and standbys, and each is named") {
    auto servers = lab::PostgresServers::start({.count = 2});
    const auto nobody = lab::free_port();
    const std::vector<std::uint16_t> all{nobody.number(), servers.port(1), servers.port(0)};
    const auto client = open(url_of(all));
    auto lease = hold(client, "N");
    CHECK(lease.renew().has_value());
    const auto found = client.examine();
    REQUIRE(found.has_value());
    CHECK(finding(*found, "postgresql.host").found.find("refused") != std::string::npos);
    CHECK(finding(*found, "postgresql.primaries").found == "a standby");
    CHECK(finding(*found, "postgresql.standbys").verdict == hf::Verdict::sound);
    CHECK(servers.server(0).value("SELECT owner IS NOT NULL FROM holdfast_lease") == "t");
    // Without the primary: waited for, since a standby is there, and told.
    Heard heard;
    const auto stranded =
        open(url_of({nobody.number(), servers.port(1)}), "request_timeout=500ms", heard.sink());
    const auto words = refused(stranded, "N", errc::unavailable);
    CHECK_THAT(words, ContainsSubstring(std::to_string(servers.port(1)) + ": it is a standby"));
    CHECK_THAT(words, ContainsSubstring(std::to_string(nobody.number()) + ": "));
    CHECK_THAT(words, ContainsSubstring("refused"));
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_of(stranded, "N")->acquire({.wait = 30s}); });
    lab::wait_until([&] { return heard.says("it is a standby"); }, 5s, "the operator is told");
    lab::wait_until([&] { return stranded.stats().waiting == 1; }, 5s, "it waits");
    CHECK(lab::stays_true([&] { return stranded.stats().waiting == 1; }, 1s));
    servers.server(0).kill();
    servers.server(1).sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    servers.server(1).sql("SELECT pg_reload_conf()");
    servers.promote_another();
    // What was granted and renewed at the primary is there, and is renewed at once.
    lab::wait_until([&] { return lease.renew().has_value(); }, cap(10s), "renewed at the new one");
    CHECK(lease.release() == ReleaseResult::released);
    const auto next = waiting.get();
    REQUIRE(next.has_value());
    CHECK(next->previous_holder() == PreviousHolder::released);
    CHECK(next->fencing_token() > lease.fencing_token());
}

TEST_CASE("hosts: when another takes over, leases are renewed at once, and lost if it has none") {
    test_support::Trial& trial = test_support::this_trial();
    auto servers = lab::PostgresServers::start({.count = 2, .synchronous = false});
    Heard heard;
    const auto client = open(servers.url(), "ttl=30s", heard.sink());
    auto kept = hold(client, "kept");
    // A waiter listens at the old one; and a lease whose holder asks for nothing for long.
    const auto waiter = open(servers.url(), "ttl=30s");
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_of(waiter, "kept")->acquire({.wait = 60s}); });
    lab::wait_until(
        [&] { return servers.server(1).value("SELECT to_regclass('holdfast_lease')") != ""; },
        cap(10s), "the standby has the table");
    lab::wait_until(
        [&] {
            return servers.server(1).value(
                       "SELECT count(*) FROM holdfast_lease WHERE line IS NOT NULL") == "1";
        },
        cap(10s), "the standby knows that somebody waits");
    servers.hold_back();
    auto forgotten = hold(client, "forgotten");
    servers.server(0).kill();
    servers.promote_another();
    const auto promoted = boot_clock::now();
    // No renewal is due for ten seconds. One request finds the new primary; all is asked there.
    hold(client, "other").release();
    lab::wait_until([&] { return heard.says("timeline 2"); }, cap(5s), "the event");
    CHECK(moves(heard) == 1);
    lab::wait_until([&] { return forgotten.lost().stop_requested(); }, cap(5s), "it is lost");
    trial.within(std::chrono::milliseconds(ms_since(promoted)), 5000ms, "the loss");
    CHECK(forgotten.lost_reason() == errc::lost);
    CHECK_FALSE(forgotten.valid());
    CHECK(kept.valid());
    // The waiter stands in the new one's line, and is notified: nobody would look so soon.
    lab::wait_until(
        [&] {
            return servers.server(1).value(
                       "SELECT count(*) FROM pg_stat_activity WHERE query "
                       "ILIKE 'listen%'") == "1";
        },
        cap(5s), "it listens there");
    CHECK(kept.release() == ReleaseResult::released);
    auto next = waiting.get();
    REQUIRE(next.has_value());
    CHECK(next->fencing_token() > kept.fencing_token());
}

TEST_CASE("hosts: an old primary that is left running is not gone back to") {
    auto servers = lab::PostgresServers::start({.count = 2, .synchronous = false});
    Heard heard;
    const auto client = open(servers.url(), "ttl=6s&request_timeout=2s", heard.sink());
    hold(client, "N").release();
    servers.promote_another();  // and both take writes
    CHECK(timeline(servers.server(0)) == "00000001");
    CHECK(timeline(servers.server(1)) == "00000002");
    // Cut off from the first one for a moment, a client goes to the second.
    servers.server(0).pause();
    auto lease = hold_at_last(client, "N");
    lab::wait_until([&] { return moves(heard) > 0; }, cap(5s), "the event");
    CHECK(moves(heard) == 1);
    servers.server(0).resume();
    servers.server(1).pause();
    // Only the old one answers: the lease is lost in time, and nothing is granted.
    std::string words;
    for (int i = 0; i < 10 && words.find("timeline is 1") == std::string::npos; ++i)
        words = refused_or_in_doubt(client, "other");
    CHECK_THAT(words, ContainsSubstring("timeline is 1"));
    lab::wait_until([&] { return lease.lost().stop_requested(); }, cap(10s), "lost in time");
    CHECK(servers.server(0).value("SELECT count(*) FROM holdfast_lease WHERE name = 'other'") ==
          "0");
    servers.server(1).resume();
    CHECK(hold_at_last(client, "other").valid());
    CHECK(moves(heard) == 1);
    // An operator's question says which one has to be stopped.
    const auto found = client.examine();
    REQUIRE(found.has_value());
    const auto second = finding(*found, "postgresql.primaries");
    CHECK(second.where == "127.0.0.1:" + std::to_string(servers.port(0)));
    CHECK_THAT(second.found, ContainsSubstring("on timeline 1 beside 2"));
    CHECK(second.verdict == hf::Verdict::unsafe);
    CHECK(found->capabilities.safety == hf::SafetyClass::d);
}

TEST_CASE("hosts: another cluster, and an older timeline, are refused") {
    Direct direct(url_of({1, 2}));
    pg::Origin& seen = *direct.shared->origin;
    CHECK_FALSE(seen.judge("71", 3));
    CHECK_FALSE(seen.judge("71", 4));
    CHECK(seen.judge("71", 3).why == pg::make(pg::Error::old_primary));
    const auto other = seen.judge("72", 9);
    CHECK(other.why == pg::make(pg::Error::other_cluster));
    CHECK_THAT(other.detail, ContainsSubstring("name the hosts of one cluster"));
    // Nothing was learned from it. What does not say where it comes from is believed.
    CHECK_FALSE(seen.judge("71", 4));
    CHECK_FALSE(seen.judge("", {}));
    CHECK(seen.judge("71", 3).why == pg::make(pg::Error::old_primary));
}

TEST_CASE("hosts: a server may hide where it comes from, and a socket leads to one") {
    auto own = lab::PostgresServer::start();
    own.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
    Heard heard;
    const auto client = open(own.url(), {}, heard.sink());
    CHECK(hold(client, "N").valid());
    lab::wait_until([&] { return heard.says("does not say its timeline"); }, 5s, "it is told");
    hf::Diagnostics words;
    const auto both = url_of({1, 2}) + "?socket=/run";
    CHECK(hf::Client::open(both, {.diagnostics = &words}).error() == errc::bad_config);
    CHECK_THAT(words.text(), ContainsSubstring("names several hosts"));
}

TEST_CASE("hosts: a host that is silent costs its share of the time, and the next one serves") {
    test_support::Trial& trial = test_support::this_trial();
    auto servers = lab::PostgresServers::start({.count = 2, .synchronous = false});
    servers.server(1).pause();
    const auto client = open(url_of({servers.port(1), servers.port(0)}), "ttl=60s");
    const auto start = boot_clock::now();
    CHECK(hold(client, "N").valid());
    trial.within(std::chrono::milliseconds(ms_since(start)), 2000ms, "the first grant");
    servers.server(1).resume();
}
