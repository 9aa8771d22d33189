// T23: what a PostgreSQL server, its administrator and what stands before it can do to a lock.
#include <sys/wait.h>

#include <fstream>
#include <future>
#include <iostream>
#include <thread>

#include "direct.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

namespace {

/// Both ways into the server: the caller's own connection, and the engine's.
hf::error_code acquire_on_engine(const hf::Client& c, const std::string& name,
                                 hf::milliseconds wait) {
    std::promise<hf::error_code> told;
    lock_of(c, name)->async_acquire({.wait = wait},
                                    [&](hf::error_code ec, hf::Lease) { told.set_value(ec); });
    return told.get_future().get();
}

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

TEST_CASE("T23: a server that hangs costs the request time-out, and its late work nothing") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=4s&request_timeout=1s");
    const auto name = fresh("hang");
    hold(client, name).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));
    const auto nobody = [&] {
        return own.value("SELECT owner IS NULL FROM holdfast_lease WHERE name = '" + name + "'") ==
               "t";
    };
    lab::wait_until(nobody, cap(10s), "it is released");
    auto lease = hold(client, fresh("kept"));
    own.pause();
    for (const bool by_lane : {true, false}) {
        INFO((by_lane ? "lane" : "engine"));
        const auto start = boot_clock::now();
        const auto ec = by_lane ? lock_of(client, name)->acquire({.wait = 1200ms}).error()
                                : acquire_on_engine(client, name, 1200ms);
        CHECK((ec == errc::unavailable || ec == errc::in_doubt));
        trial.within(std::chrono::milliseconds(ms_since(start)), std::chrono::milliseconds(1500),
                     "a wait of 1200 ms");
    }
    {
        const auto start = boot_clock::now();
        CHECK_FALSE(client.inspect(name).has_value());
        trial.within(std::chrono::milliseconds(ms_since(start)), std::chrono::milliseconds(1500),
                     "a wait of 1200 ms");
    }
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "lost() in spite of it");
    CHECK(lease.lost_reason() == errc::lost);
    own.resume();
    // The statements that were sent are executed now: past their deadline, or marked.
    lab::wait_until([&] { return client.inspect(name).has_value(); }, 10s, "it answers again");
    CHECK(lab::stays_true(nobody, 500ms));
    CHECK(hold(client, name).valid());
}

TEST_CASE("T23: a listening client is not held up, and closes in time, while the server hangs") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::PostgresServer::start();
    boot_clock::time_point start;
    std::thread waiting;
    {
        auto client = open(own.url(), "ttl=5s");
        auto lease = hold(client, "N");
        auto brief = hold(*lock_of(client, "brief", {.ttl = 2s}));
        waiting = std::thread([lock = lock_of(client, "N")] {
            CHECK(lock->acquire({.wait = 60s}).error() == errc::closed);
        });
        lab::wait_until(
            [&] {
                return own.value(
                           "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE "
                           "'listen%'") == "1";
            },
            5s, "it listens");
        own.pause();
        lab::wait_until([&] { return brief.lost().stop_requested(); }, 10s, "lost() comes");
        trial.within(std::chrono::milliseconds(ms_since(brief.valid_until())),
                     std::chrono::milliseconds(150), "lost(), from the lease's end");
        start = boot_clock::now();
        client.close();
    }
    waiting.join();
    trial.within(std::chrono::milliseconds(ms_since(start)), std::chrono::milliseconds(1800),
                 "a wait of 1500 ms");
    own.resume();
}

TEST_CASE("T23: killed and restarted: the lease goes on, waiters wait on, nobody is told wrong") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=6s");
    const auto name = fresh("restart");
    auto lease = hold(client, name);
    const auto waiter = open(own.url(), "ttl=6s");
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_of(waiter, name)->acquire({.wait = 60s}); });
    lab::wait_until([&] { return waiter.stats().waiting == 1 && waiter.stats().attempts >= 1; }, 5s,
                    "it waits");
    own.kill();
    REQUIRE_FALSE(own.alive());
    CHECK(lease.renew().error() == errc::unavailable);
    CHECK(lease.valid());
    own.restart();
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    CHECK(lease.state() == hf::LeaseState::held);
    CHECK(lease.release() == ReleaseResult::released);
    auto got = waiting.get();
    REQUIRE(got.has_value());
    CHECK(got->fencing_token() > lease.fencing_token());
    CHECK(got->previous_holder() == PreviousHolder::released);
}

TEST_CASE("a connection may take longer than the request that begins it, and no caller waits") {
    const auto name = fresh("slow-start");
    hold(open_here(), name).release();
    lab::Proxy proxy(server().port());
    const auto url =
        "postgresql://holdfast@127.0.0.1:" + std::to_string(proxy.port()) + "/holdfast";
    test_support::Trial& trial = test_support::this_trial();
    auto client = open(url, "ttl=60s&request_timeout=800ms");
    const bool by_lane = GENERATE(true, false);
    const auto acquire = [&](hf::milliseconds wait) {
        return by_lane ? lock_of(client, name)->acquire({.wait = wait}).error()
                       : acquire_on_engine(client, name, wait);
    };
    SECTION("the next request finds it") {
        // Three answers to begin with, and two to a first grant.
        proxy.delay(lab::Direction::to_client, 300ms);
        CHECK_FALSE(acquire(10s));
        CHECK(client.stats().attempts > 1);
    }
    SECTION("each caller has its own deadline") {
        proxy.delay(lab::Direction::to_client, 30s);
        auto start = boot_clock::now();
        const auto ec = acquire(300ms);
        trial.within(std::chrono::milliseconds(ms_since(start)), 600ms, "a wait of 300 ms");
        CHECK((ec == errc::unavailable || ec == errc::in_doubt));
        CHECK(proxy.counters().delayed > 0);
        start = boot_clock::now();
        client.close();
        trial.within(std::chrono::milliseconds(ms_since(start)), 1500ms, "close");
    }
}

TEST_CASE("an acquire that is cut by close() leaves nothing behind") {
    const auto name = fresh("closing");
    lab::Proxy proxy(server().port());
    const auto url =
        "postgresql://holdfast@127.0.0.1:" + std::to_string(proxy.port()) + "/holdfast";
    auto client = open(url, "ttl=60s&request_timeout=10s");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 3; ++i)
        hold(*lock).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));  // its connections are there
    require_free(name);
    const auto before = proxy.counters().delayed;
    proxy.delay(lab::Direction::to_client, 30s);
    const bool by_lane = GENERATE(true, false);
    auto asked = std::async(std::launch::async, [&] {
        return by_lane ? lock->acquire({.wait = 0ms}).error()
                       : acquire_on_engine(client, name, 0ms);
    });
    lab::wait_until([&] { return proxy.counters().delayed > before; }, 5s, "the answer waits");
    client.close();
    proxy.heal();
    CHECK(asked.get());
    require_free(name);
}

TEST_CASE("T23: an administrator ends our sessions under us") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=5s");
    const auto terminate = [&] {
        return own
            .sql(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename "
                "= 'holdfast'")
            .size();
    };
    for (int i = 0; i < 5; ++i) {
        auto lease = hold(client, "N");
        CHECK(terminate() > 0);
        CHECK(lease.renew().has_value());
        CHECK(terminate() > 0);
        CHECK(lease.release() == ReleaseResult::released);
    }
    // Nothing of ours connects again by itself and forgets where it was.
    auto lease = hold(client, "N");
    CHECK(terminate() > 0);
    CHECK(own.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'holdfast'") == "0");
    CHECK(lock_of(client, "N")->try_acquire().error() == errc::contended);
    CHECK(lease.valid());
}

TEST_CASE("T23: a renewal whose connection has just been used, and has ended since, is repeated") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=5s");
    auto lease = hold(client, "N");
    for (int i = 0; i < 5; ++i) {
        REQUIRE(lease.renew().has_value());
        // Without waiting for their end: what was used less than 100 ms ago is not looked at.
        own.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'holdfast'");
        CHECK(lease.renew().has_value());
    }
    CHECK(client.stats().renewals_failed == 0);
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

TEST_CASE("T23: too many connections: said; with one connection left everything still works") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url());
    own.sql("ALTER ROLE holdfast CONNECTION LIMIT 0");
    CHECK_THAT(refused(client, "N", errc::unavailable),
               ContainsSubstring("too many connections for role"));
    own.sql("ALTER ROLE holdfast CONNECTION LIMIT 2");
    const auto calm = open(own.url(), "ttl=30s");  // nothing here is about time
    std::vector<std::thread> threads;
    std::atomic<int> held{0}, wrong{0};
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const auto lock = calm.make_lock("many/" + std::to_string(t)).value();
            for (int i = 0; i < 5; ++i) {
                auto lease = lock->acquire({.wait = 60s});
                if (!lease || lease->release() != ReleaseResult::released) ++wrong;
                ++held;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(held == 30);
    CHECK(wrong == 0);
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
    lab::PostgresOptions options;
    options.password = "s3cret-w0rd";
    options.tls = true;
    auto own = lab::PostgresServer::start(options);
    const auto url = own.url();
    const auto tls = "sslmode=verify-full&sslrootcert=" + own.ca_file().string();
    lab::TempDir dir;
    std::ofstream(dir / "right") << options.password << "\n";
    std::ofstream(dir / "wrong") << "wr0ng-w0rd\n";
    const auto file = [&](const char* name) { return "&password_file=" + (dir / name).string(); };
    CHECK(hold(open(url, tls + file("right")), "N").valid());
    CHECK(own.value("SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) "
                    "WHERE a.usename = 'holdfast'") != "f");
    ::setenv("HOLDFAST_TEST_PASSWORD", options.password.c_str(), 1);
    CHECK(hold(open(url, tls + "&password_env=HOLDFAST_TEST_PASSWORD"), "N").valid());
    CHECK(hold(open(own.url_with_password(), tls), "N").valid());
    const auto client = open(url, tls + file("wrong"));
    const auto words = refused(client, "N", errc::denied);
    CHECK_THAT(words, ContainsSubstring("password authentication failed"));
    CHECK(words.find("w0rd") == std::string::npos);
    std::ofstream(dir / "wrong") << options.password << "\n";  // read again at the next connect
    CHECK(hold(client, "N").valid());
    CHECK(client.url().find("w0rd") == std::string::npos);
    // Without the certificate there is no way to know the server.
    const auto blind = refused(open(url, "sslmode=verify-full&sslrootcert=/etc/hostname" +
                                             file("right") + "&request_timeout=500ms"),
                               "N", errc::unavailable);
    CHECK(blind.find("w0rd") == std::string::npos);
    CHECK_FALSE(
        lock_of(open(url, "sslmode=disable" + file("right")), "N")->try_acquire().has_value());
    // pg_hba.conf asks for a password on the socket as well.
    const auto socket = "socket=" + own.socket_directory().string() + file("right");
    auto lease = hold(open(url, socket), "socket");
    CHECK(own.value("SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'holdfast' AND "
                    "client_addr IS NULL") == "t");
}

TEST_CASE("a name that cannot be looked up any more leads to the address that was reached last") {
    Direct direct("postgresql://holdfast@nowhere.invalid:" + std::to_string(server().port()) +
                  "/holdfast");
    direct.shared->hosts.reach({0, "127.0.0.1", {}}, direct.shared->hosts.generation());
    const auto failed = direct.connection->open(boot_clock::now() + 10s);
    INFO(failed.detail);
    CHECK_FALSE(failed);
}

TEST_CASE("host names are resolved, and one that has no address is named") {
    const auto port = std::to_string(server().port());
    const auto client = open("postgresql://holdfast@localhost:" + port + "/holdfast");
    for (int i = 0; i < 3; ++i)
        CHECK(hold(client, fresh("name")).valid());
    const auto lost =
        open("postgresql://holdfast@nowhere.invalid:" + port + "/holdfast", "request_timeout=1s");
    CHECK_THAT(refused(lost, "N", errc::unavailable), ContainsSubstring("nowhere.invalid"));
}
