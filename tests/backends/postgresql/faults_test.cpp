// T23: what a PostgreSQL server, its administrator and what stands before it can do to a lock,
// beside what any server with SQL can.
#include <thread>

#include "../sql/rig.hpp"
#include "holdfast/lab/proxy.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

namespace {

/// For tests that are about words: a busy machine needs time to say them.
const std::string slow = "ttl=60s&request_timeout=20s";

/// The words for an acquire that the server refuses again and again. Core's last try may have too
/// little time left to hear why.
std::string told_sooner_or_later(const hf::Client& c, const std::string& name) {
    hf::Diagnostics words;
    for (int i = 0; i < 10 && words.text().find("_timeout") == std::string::npos; ++i) {
        words = {};
        const auto lease =
            lock_of(c, name)->acquire({.wait = 0ms, .note = {}, .diagnostics = &words});
        CHECK_FALSE(lease.has_value());
        CHECK((lease.error() == errc::unavailable || lease.error() == errc::in_doubt));
    }
    return words.text();
}

}  // namespace

TEST_CASE("a connection may take longer than the request that begins it, and no caller waits") {
    const auto name = fresh("slow-start");
    hold(open_here(), name).release();
    lab::Proxy proxy(server().port());
    test_support::Trial& trial = test_support::this_trial();
    auto client = open(url_through(proxy.port()), "ttl=60s&request_timeout=800ms");
    const bool by_lane = GENERATE(true, false);
    SECTION("the next request finds it") {
        // Three answers to begin with, and two to a first grant.
        proxy.delay(lab::Direction::to_client, 300ms);
        CHECK_FALSE(acquire_by(by_lane, client, name, 10s));
        CHECK(client.stats().attempts > 1);
    }
    SECTION("each caller has its own deadline") {
        proxy.delay(lab::Direction::to_client, 30s);
        auto start = boot_clock::now();
        const auto ec = acquire_by(by_lane, client, name, 300ms);
        trial.within(boot_clock::now() - start, 600ms, "a wait of 300 ms");
        CHECK((ec == errc::unavailable || ec == errc::in_doubt));
        CHECK(proxy.counters().delayed > 0);
        start = boot_clock::now();
        client.close();
        trial.within(boot_clock::now() - start, 1500ms, "close");
    }
}

TEST_CASE("a connection that a slow server never makes in the usual time is made in the end") {
    const auto name = fresh("slower-start");
    hold(open_here(), name).release();
    lab::Proxy proxy(server().port());
    auto client = open(url_through(proxy.port()), "ttl=60s&request_timeout=2s");
    const auto lock = lock_of(client, name);
    // Three answers to begin with, which the first connect has two seconds for; and two to a grant.
    proxy.delay(lab::Direction::to_client, 800ms);
    CHECK(lab::reached([&] { return lock->acquire({.wait = 10s}).has_value(); }, cap(30s)));
}

TEST_CASE("T23: a standby given by mistake is refused with its reason; promoted, it serves") {
    auto primary = lab::PostgresServer::start();
    hf::FencingToken last;
    {
        const auto client = open(primary.url());
        auto lease = hold(client, "N");
        last = lease.fencing_token();
    }
    auto standby = primary.standby();
    const auto mistaken = open(standby.url());
    CHECK_THAT(refused(mistaken, "N", errc::unavailable), ContainsSubstring("it is a standby"));
    hf::Diagnostics words;
    CHECK_FALSE(mistaken.probe(&words).has_value());
    CHECK_THAT(words.text(), ContainsSubstring("connect to the primary"));
    primary.kill();
    standby.promote();
    auto lease = hold(mistaken, "N");
    CHECK(lease.fencing_token() > last);
}

TEST_CASE("T23: a role whose transactions are read-only") {
    auto own = lab::PostgresServer::start();
    hold(open(own.url(), slow), "N").release();
    own.sql("ALTER ROLE holdfast SET default_transaction_read_only = on");
    CHECK_THAT(refused(open(own.url(), slow), "N", errc::unavailable),
               ContainsSubstring("default_transaction_read_only"));
}

TEST_CASE("T23: serialisable by default, and time-outs of the administrator's") {
    auto own = lab::PostgresServer::start();
    hold(open(own.url()), "warm").release();
    SECTION("default_transaction_isolation = serializable, contended") {
        own.sql("ALTER ROLE holdfast SET default_transaction_isolation = 'serializable'");
        std::atomic<int> inside{0}, overlaps{0}, wrong{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                const auto client = hf::Client::open(own.url()).value();
                const auto lock = client.make_lock("N").value();
                for (int i = 0; i < 25; ++i) {
                    auto lease = lock->acquire({.wait = 60s});
                    if (!lease) {
                        ++wrong;
                        continue;
                    }
                    if (++inside != 1) ++overlaps;
                    --inside;
                    lease->release();
                }
            });
        for (auto& t : threads)
            t.join();
        CHECK(wrong == 0);
        CHECK(overlaps == 0);
    }
    SECTION("time-outs while somebody has locked the whole table") {
        const std::string setting = GENERATE("statement_timeout", "lock_timeout");
        own.sql("ALTER ROLE holdfast SET " + setting + " = '100ms'");
        const auto client = open(own.url(), "request_timeout=1s");
        hold(client, "warm").release();
        std::thread foreign([&] {
            CHECK_THROWS_WITH(own.sql("BEGIN; LOCK TABLE holdfast_lease IN ACCESS EXCLUSIVE MODE; "
                                      "SELECT pg_sleep(60); COMMIT"),
                              ContainsSubstring("canceling"));
        });
        lab::wait_until(
            [&] {
                return own.value(
                           "SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
                           "'PgSleep'") != "0";
            },
            5s, "the table is locked");
        CHECK_THAT(told_sooner_or_later(client, "warm"),
                   ContainsSubstring(setting == "lock_timeout" ? "pg_locks shows it"
                                                               : "see statement_timeout"));
        own.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
        foreign.join();
        CHECK(hold(client, "warm").valid());
    }
}

TEST_CASE("T23: rights that are missing are named, with the remedy") {
    auto own = lab::PostgresServer::start();
    own.sql("CREATE ROLE guest LOGIN; GRANT CONNECT ON DATABASE holdfast TO guest");
    const auto url = "postgresql://guest@127.0.0.1:" + std::to_string(own.port()) + "/holdfast";
    SECTION("no table, and no right to make it") {
        const auto words = refused(open(url), "N", errc::denied);
        CHECK_THAT(words, ContainsSubstring("holdfast schema postgresql"));
        CHECK_THAT(words, ContainsSubstring("GRANT SELECT, INSERT, UPDATE, DELETE"));
    }
    SECTION("the table is there, and others may not use it") {
        hold(open(own.url()), "N").release();
        CHECK_THAT(refused(open(url), "N", errc::denied),
                   ContainsSubstring("GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease"));
        own.sql("GRANT SELECT, INSERT, UPDATE ON holdfast_lease TO guest");
        CHECK(hold(open(url), "N").valid());  // DELETE is for the sweeper alone
    }
    SECTION("a schema of its own") {
        own.sql("CREATE SCHEMA \"lock \"\"s\" AUTHORIZATION guest");
        const auto client = open(url, "schema=lock%20%22s");
        CHECK(hold(client, "N").valid());
        CHECK(own.value("SELECT count(*) FROM \"lock \"\"s\".holdfast_lease") == "1");
        CHECK_THAT(refused(open(url, "schema=nowhere"), "N", errc::denied),
                   ContainsSubstring("nowhere"));
    }
    SECTION("database, user") {
        const auto host = "127.0.0.1:" + std::to_string(own.port());
        CHECK_THAT(
            refused(open("postgresql://holdfast@" + host + "/nowhere"), "N", errc::bad_config),
            ContainsSubstring("nowhere"));
        CHECK_THAT(refused(open("postgresql://nobody@" + host + "/holdfast"), "N", errc::denied),
                   ContainsSubstring("nobody"));
    }
}

TEST_CASE("a Unix socket needs no host, and libpq's ways to name one are answered with ours") {
    CHECK(hf::Client::open("postgresql:///app?socket=/nowhere").has_value());
    for (const char* url : {"postgresql:///app?host=/nowhere", "postgresql://%2Fnowhere/app"}) {
        INFO(url);
        hf::Diagnostics words;
        const auto client = hf::Client::open(url, {.diagnostics = &words});
        CHECK(client.error() == errc::bad_config);
        CHECK_THAT(words.text(), ContainsSubstring("postgresql:///app?socket=/DIRECTORY"));
    }
}

TEST_CASE("passwords by file and environment, TLS, Unix sockets; never printed") {
    auto own = lab::PostgresServer::start({.password = "s3cret-w0rd", .tls = true});
    const auto url = own.url();
    const auto tls = "sslmode=verify-full&sslrootcert=" + own.ca_file().string();
    const lab::TempDir dir;
    let_in_by_password(own, tls, dir);
    const auto password = "&password_file=" + (dir / "right").string();
    const auto sure = open(url, tls + password);
    CHECK(hold(sure, "N").valid());
    CHECK(own.value("SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) "
                    "WHERE a.usename = 'holdfast'") == "t");
    // Without the certificate there is no way to know the server.
    const auto blind = refused(open(url, "sslmode=verify-full&sslrootcert=/etc/hostname" +
                                             password + "&request_timeout=500ms"),
                               "N", errc::unavailable);
    CHECK(blind.find("w0rd") == std::string::npos);
    // pg_hba.conf asks for a password on the socket as well.
    auto lease = hold(open(url, "socket=" + own.socket_directory().string() + password), "socket");
    CHECK(own.value("SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'holdfast' AND "
                    "client_addr IS NULL") == "t");
}
