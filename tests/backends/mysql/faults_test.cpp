// What MariaDB, its administrator and the network before it can do to a lock, beside what any
// server with SQL can.
#include "../sql/direct.hpp"
#include "trial.hpp"

using namespace mysql_tests;

TEST_CASE("an idle session that the server has ended is not used, with TLS and without") {
    const bool tls = GENERATE(false, true);
    auto own = lab::MariadbServer::start({.tls = tls});
    own.sql("SET GLOBAL wait_timeout = 1");
    const auto client =
        open(own.url(), tls ? "tls=on&tls_ca_file=" + own.ca_file().string() : std::string());
    for (int i = 0; i < 4; ++i) {
        const bool by_lane = i % 2 == 0;
        INFO((tls ? "TLS, " : "") << (by_lane ? "lane" : "engine") << ", time " << i / 2 + 1);
        const auto before = client.stats().attempts;
        CHECK_FALSE(acquire_by(by_lane, client, "N", 0ms));
        // Used, it would leave a doubt, and a second attempt.
        CHECK(client.stats().attempts - before == 1);
        lab::wait_until([&] { return is_free("N", own); }, cap(5s), "it is released");
        // With a farewell under TLS, which looks like something to read.
        lab::wait_until([&] { return sessions(own) == 0; }, cap(10s), "they have ended");
    }
}

TEST_CASE("a grant whose answer is lost is in doubt, and is taken back") {
    const auto name = fresh("swallowed");
    lab::Proxy proxy(server().port());
    auto client = open(url_through(proxy.port()), "ttl=60s&request_timeout=1s");
    warm_up(client, name);
    const bool by_lane = GENERATE(true, false);
    INFO((by_lane ? "lane" : "engine"));
    const auto granted = row("token", name);
    proxy.swallow(lab::Direction::to_client);
    const auto ec = acquire_by(by_lane, client, name, 0ms);
    CHECK((ec == errc::in_doubt || ec == errc::unavailable));
    proxy.wait_fired();
    CHECK(row("token", name) != granted);  // the server had granted it
    proxy.heal();
    require_free(name);
    CHECK(hold(client, name).valid());
}

TEST_CASE("a row that somebody else has locked is said in time, and is not taken later") {
    test_support::Trial& trial = test_support::this_trial();
    const auto name = fresh("locked");
    const auto client = open_here("ttl=6s&request_timeout=1500ms");
    hold(client, name).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));
    require_free(name);
    {
        Foreign other(server(), lock_row(name));
        for (const bool by_lane : {true, false}) {
            INFO((by_lane ? "lane" : "engine"));
            const auto start = boot_clock::now();
            const auto ec = acquire_by(by_lane, client, name, 0ms);
            CHECK((ec == errc::unavailable || ec == errc::in_doubt || ec == errc::contended));
            trial.within(boot_clock::now() - start, 3200ms, "two requests beside a locked row");
        }
        other.go();
    }
    // What waited for the row is past its deadline now, or marked.
    CHECK(lab::stays_true([&] { return is_free(name); }, 500ms));
}

TEST_CASE("a table that another session has locked is said in time, and leaves no sessions") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url(), "ttl=60s&request_timeout=1s");
    hold(client, "N").release();
    Foreign other(own, "LOCK TABLES holdfast_lease WRITE", 60s);
    const auto asked = [&](const auto& ask) {
        const auto start = boot_clock::now();
        const hf::error_code ec = ask();
        CHECK((ec == errc::unavailable || ec == errc::in_doubt || ec == errc::contended));
        trial.within(boot_clock::now() - start, 2500ms, "one request");
    };
    for (int i = 0; i < 2; ++i) {
        asked([&] { return lock_of(client, "N")->acquire({.wait = 0ms}).error(); });
        asked([&] { return acquire_on_engine(client, "N", 0ms); });
    }
    // Their statements would wait for a day; what is tried meanwhile waits for a second.
    const auto waiting = [&] {
        return std::stoi(
            own.value("SELECT COUNT(*) FROM information_schema.processlist WHERE "
                      "user = 'holdfast' AND state LIKE 'Waiting for%'"));
    };
    CHECK(lab::reached([&] { return waiting() <= 2; }, 5s));
    other.go();
    CHECK(lab::reached([&] { return is_free("N", own); }, 2s));
    CHECK(hold(client, "N").valid());
}

TEST_CASE("a commit that waits for a replica is no grant, and leaves nothing") {
    test_support::Trial& trial = test_support::this_trial();
    auto own =
        lab::MariadbServer::start({.binary_log = true,
                                   .config = {"rpl_semi_sync_master_timeout = 60000",
                                              "rpl_semi_sync_master_wait_point = AFTER_SYNC"}});
    const auto client = open(own.url(), "ttl=60s&request_timeout=1s");
    hold(client, "N").release();
    auto lease = hold(client, "kept");
    CHECK(lease.renew().has_value());
    own.sql("SET GLOBAL rpl_semi_sync_master_enabled = 1");
    const auto waiting = [&] {
        return std::stoi(
            own.value("SELECT COUNT(*) FROM information_schema.processlist WHERE state "
                      "LIKE '%semi-sync%'"));
    };
    while_commits_wait(trial, own, client, lease, waiting,
                       [&] { own.sql("SET GLOBAL rpl_semi_sync_master_enabled = 0"); });
}

TEST_CASE("a server that only reads is refused with its reason; a replica, promoted, serves") {
    auto primary = lab::MariadbServer::start({.binary_log = true});
    const auto client = open(primary.url());
    auto lease = hold(client, "N");
    auto replica = primary.replica();
    const auto mistaken = open(replica.url());
    CHECK_THAT(refused(mistaken, "N", errc::unavailable), ContainsSubstring("read_only"));
    hf::Diagnostics words;
    CHECK_FALSE(mistaken.probe(&words).has_value());
    CHECK_THAT(words.text(), ContainsSubstring("primary"));
    // Under open connections.
    primary.sql("SET GLOBAL read_only = 1");
    CHECK_THAT(refused(client, "M", errc::unavailable), ContainsSubstring("read"));
    CHECK(lease.renew().error() == errc::unavailable);
    CHECK(lease.valid());
    primary.sql("SET GLOBAL read_only = 0");
    CHECK(lease.renew().has_value());
    CHECK(lease.release() == ReleaseResult::released);
    const auto last = lease.fencing_token();
    primary.kill();
    replica.promote();
    CHECK(hold(mistaken, "N").fencing_token() > last);
}

TEST_CASE("a session at a server that takes no writes any more is not used again") {
    auto own = lab::MariadbServer::start();
    Direct d(own.url());
    auto taken = d.step(my::Step::Kind::attempt, "N", owner('A'));
    REQUIRE(granted(d.run(taken)));
    const auto renew = [&] {
        auto s = d.step(my::Step::Kind::renew, "N", owner('A'));
        s.token = static_cast<std::int64_t>(
            std::get<hf::spi::Attempt::Granted>(taken.outcome).token.value);
        return d.run(s);
    };
    for (int i = 0; i < 3; ++i)  // as text, and by a statement that was prepared
        CHECK(renew().renewal == hf::spi::Held::Renewal::renewed);
    REQUIRE(sessions(own) == 1);
    own.sql("SET GLOBAL read_only = 1");
    const auto refused_now = renew();
    CHECK(refused_now.renewal == hf::spi::Held::Renewal::unknown);
    CHECK(refused_now.error == my::make(my::Error::read_only));
    // The next one connects, and so finds what the URL leads to then.
    CHECK(lab::reached([&] { return sessions(own) == 0; }, cap(5s)));
    CHECK(renew().error == my::make(my::Error::read_only));
    own.sql("SET GLOBAL read_only = 0");
    CHECK(renew().renewal == hf::spi::Held::Renewal::renewed);
}
