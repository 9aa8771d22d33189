// What a server, its administrator and the network before it can do to a lock.
#include <filesystem>
#include <future>
#include <vector>

#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace mysql_tests;

TEST_CASE("a server that hangs costs the request time-out, and its late work nothing") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url(), "ttl=4s&request_timeout=1s");
    const auto name = fresh("hang");
    hold(client, name).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));
    lab::wait_until([&] { return is_free(name, own); }, cap(10s), "it is released");
    auto lease = hold(client, fresh("kept"));
    own.pause();
    for (const bool by_lane : {true, false}) {
        INFO((by_lane ? "lane" : "engine"));
        const auto start = boot_clock::now();
        const auto ec = by_lane ? lock_of(client, name)->acquire({.wait = 1200ms}).error()
                                : acquire_on_engine(client, name, 1200ms);
        CHECK((ec == errc::unavailable || ec == errc::in_doubt));
        trial.within(std::chrono::milliseconds(ms_since(start)), 1500ms, "a wait of 1200 ms");
    }
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "lost() in spite of it");
    CHECK(lease.lost_reason() == errc::lost);
    own.resume();
    // The statements that were sent are executed now: past their deadline, or marked.
    lab::wait_until([&] { return client.inspect(name).has_value(); }, 10s, "it answers again");
    CHECK(lab::stays_true([&] { return is_free(name, own); }, 500ms));
    CHECK(hold(client, name).valid());
}

TEST_CASE("a client closes in time while the server hangs, and lost() comes in time") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::MariadbServer::start();
    auto client = open(own.url(), "ttl=5s");
    auto lease = hold(client, "N");
    auto brief = hold(*lock_of(client, "brief", {.ttl = 2s}));
    std::thread waiting([lock = lock_of(client, "N")] {
        CHECK(lock->acquire({.wait = 60s}).error() == errc::closed);
    });
    lab::wait_until([&] { return client.stats().waiting == 1; }, 5s, "it waits");
    own.pause();
    lab::wait_until([&] { return brief.lost().stop_requested(); }, 10s, "lost() comes");
    trial.within(std::chrono::milliseconds(ms_since(brief.valid_until())), 150ms,
                 "lost(), from the lease's end");
    const auto start = boot_clock::now();
    client.close();
    waiting.join();
    trial.within(std::chrono::milliseconds(ms_since(start)), 1800ms, "close");
    own.resume();
}

TEST_CASE("killed and restarted: the lease goes on, waiters wait on, nobody is told wrong") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url(), "ttl=6s"), waiter = open(own.url(), "ttl=6s");
    const auto name = fresh("restart");
    auto lease = hold(client, name);
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

TEST_CASE("tokens never go back when the server is killed right after a grant") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url(), "ttl=1s&request_timeout=2s");
    hf::FencingToken last;
    for (int i = 0; i < 3; ++i) {
        auto lease = hold(client, "N");
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        own.kill();
        REQUIRE_FALSE(own.alive());
        own.restart();
        lab::wait_until([&] { return !lease.valid() || lease.renew().has_value(); }, 10s,
                        "the lease goes on or is lost");
        if (lease.valid()) CHECK(lease.release() == ReleaseResult::released);
    }
}

TEST_CASE("an administrator ends our sessions under us") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url(), "ttl=5s");
    const auto sessions = [&] {
        return own.value(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE user = "
            "'holdfast'");
    };
    const auto end_all = [&] {
        CHECK(sessions() != "0");
        own.sql("KILL USER holdfast");
        lab::wait_until([&] { return sessions() == "0"; }, 5s, "they have ended");
    };
    for (int i = 0; i < 5; ++i) {
        auto lease = hold(client, "N");
        end_all();
        CHECK(lease.renew().has_value());
        end_all();
        CHECK(lease.release() == ReleaseResult::released);
    }
    auto lease = hold(client, "N");
    end_all();
    CHECK(lock_of(client, "N")->try_acquire().error() == errc::contended);
    CHECK(lease.valid());
    for (int i = 0; i < 5; ++i) {
        REQUIRE(lease.renew().has_value());
        // What has just been used is not looked at; here it may end before the next request or
        // after.
        own.sql("KILL USER holdfast");
        CHECK(lease.renew().has_value());
    }
    CHECK(client.stats().renewals_failed == 0);
}

TEST_CASE("an idle session that the server has ended is not used, with TLS and without") {
    const bool tls = GENERATE(false, true);
    lab::MariadbOptions options;
    options.tls = tls;
    auto own = lab::MariadbServer::start(options);
    own.sql("SET GLOBAL wait_timeout = 1");
    const auto client =
        open(own.url(), tls ? "tls=on&tls_ca_file=" + own.ca_file().string() : std::string());
    for (int i = 0; i < 4; ++i) {
        const bool by_lane = i % 2 == 0;
        INFO((tls ? "TLS, " : "") << (by_lane ? "lane" : "engine") << ", time " << i / 2 + 1);
        const auto before = client.stats().attempts;
        const auto ec = by_lane ? lock_of(client, "N")->acquire({.wait = 0ms}).error()
                                : acquire_on_engine(client, "N", 0ms);
        CHECK_FALSE(ec);
        // Used, it would leave a doubt, and a second attempt.
        CHECK(client.stats().attempts - before == 1);
        lab::wait_until([&] { return is_free("N", own); }, cap(5s), "it is released");
        // With a farewell under TLS, which looks like something to read.
        lab::wait_until(
            [&] {
                return own.value(
                           "SELECT COUNT(*) FROM information_schema.processlist WHERE user = "
                           "'holdfast'") == "0";
            },
            cap(10s), "they have ended");
    }
}

namespace {

/// Its connections are there, and a further grant is one request.
void warm_up(const hf::Client& client, const std::string& name) {
    for (int i = 0; i < 2; ++i) {
        hold(client, name).release();
        CHECK_FALSE(acquire_on_engine(client, name, 5s));
        require_free(name);
    }
}

}  // namespace

TEST_CASE("a grant whose answer is lost is in doubt, and is taken back") {
    const auto name = fresh("swallowed");
    lab::Proxy proxy(server().port());
    auto client = open(url_of(server(), "holdfast", proxy.port()), "ttl=60s&request_timeout=1s");
    warm_up(client, name);
    const bool by_lane = GENERATE(true, false);
    INFO((by_lane ? "lane" : "engine"));
    const auto granted = row("token", name);
    proxy.swallow(lab::Direction::to_client);
    const auto ec = by_lane ? lock_of(client, name)->acquire({.wait = 0ms}).error()
                            : acquire_on_engine(client, name, 0ms);
    CHECK((ec == errc::in_doubt || ec == errc::unavailable));
    proxy.wait_fired();
    CHECK(row("token", name) != granted);  // the server had granted it
    proxy.heal();
    require_free(name);
    CHECK(hold(client, name).valid());
}

TEST_CASE("an acquire that is cut by close() leaves nothing behind") {
    const auto name = fresh("closing");
    lab::Proxy proxy(server().port());
    auto client = open(url_of(server(), "holdfast", proxy.port()), "ttl=60s&request_timeout=10s");
    warm_up(client, name);
    const auto before = proxy.counters().delayed;
    proxy.delay(lab::Direction::to_client, 30s);
    const bool by_lane = GENERATE(true, false);
    auto asked = std::async(std::launch::async, [&] {
        return by_lane ? lock_of(client, name)->acquire({.wait = 0ms}).error()
                       : acquire_on_engine(client, name, 0ms);
    });
    lab::wait_until([&] { return proxy.counters().delayed > before; }, 5s, "the answer waits");
    client.close();
    proxy.heal();
    CHECK(asked.get());
    require_free(name);
}

TEST_CASE("a row that somebody else has locked is said in time, and is not taken later") {
    test_support::Trial& trial = test_support::this_trial();
    const auto name = fresh("locked");
    const auto client = open_here("ttl=6s&request_timeout=1500ms");
    hold(client, name).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));
    require_free(name);
    const auto lock_row =
        "BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name + "' FOR UPDATE";
    const auto before = row("ver", name);
    {
        Foreign other(server(), lock_row, 20s);
        for (const bool by_lane : {true, false}) {
            INFO((by_lane ? "lane" : "engine"));
            const auto start = boot_clock::now();
            const auto ec = by_lane ? lock_of(client, name)->acquire({.wait = 0ms}).error()
                                    : acquire_on_engine(client, name, 0ms);
            CHECK((ec == errc::unavailable || ec == errc::in_doubt || ec == errc::contended));
            trial.within(std::chrono::milliseconds(ms_since(start)), 3200ms,
                         "two requests beside a locked row");
        }
        other.go();
    }
    // What waited for the row is past its deadline now, or marked.
    CHECK(lab::stays_true([&] { return is_free(name); }, 500ms));
    INFO("version before it: " << before);
    // While it is held, renewals go on until the foreign lock is gone.
    auto lease = hold(client, name);
    const auto failed = client.stats().renewals_failed;
    {
        const Foreign other(server(), lock_row, 20s);
        lab::wait_until([&] { return client.stats().renewals_failed > failed; }, 5s, "one fails");
        CHECK(lease.valid());
    }
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals > renewals; }, 5s, "one succeeds");
    CHECK(lease.valid());
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("a release that a foreign lock holds up costs no other lease anything") {
    const auto name = fresh("held-up"), other = fresh("other");
    std::atomic<int> at_risk{0};
    const auto client =
        open(server().url(), "ttl=2s&request_timeout=1900ms", [&](const hf::Event& e) {
            if (e.kind == hf::Event::Kind::at_risk) ++at_risk;
        });
    auto lease = hold(client, name), kept = hold(client, other);
    Foreign foreign(server(),
                    "BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name + "' FOR UPDATE",
                    20s);
    const auto renewals = client.stats().renewals;
    std::promise<ReleaseResult> released;
    lease.async_release(hf::Outcome::done,
                        [&](hf::error_code, ReleaseResult r) { released.set_value(r); });
    CHECK(lab::stays_true([&] { return at_risk == 0 && kept.state() == hf::LeaseState::held; },
                          2500ms));
    CHECK(client.stats().renewals >= renewals + 2);
    foreign.go();
    CHECK(kept.valid());
    (void)released.get_future().get();
    require_free(name);
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
        trial.within(std::chrono::milliseconds(ms_since(start)), 2500ms, "one request");
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
    lab::MariadbOptions options;
    options.binary_log = true;
    options.config = {"rpl_semi_sync_master_timeout = 60000",
                      "rpl_semi_sync_master_wait_point = AFTER_SYNC"};
    auto own = lab::MariadbServer::start(options);
    const auto client = open(own.url(), "ttl=60s&request_timeout=1s");
    hold(client, "N").release();
    auto lease = hold(client, "kept");
    CHECK(lease.renew().has_value());
    own.sql("SET GLOBAL rpl_semi_sync_master_enabled = 1");
    const auto start = boot_clock::now();
    const auto got = lock_of(client, "N")->acquire({.wait = 1200ms});
    const auto took = ms_since(start);
    // It took effect.
    const auto waits = own.value(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE state "
        "LIKE '%semi-sync%'");
    const auto renewed = lease.renew();
    own.sql("SET GLOBAL rpl_semi_sync_master_enabled = 0");
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    CHECK((got.error() == errc::unavailable || got.error() == errc::in_doubt));
    trial.within(std::chrono::milliseconds(took), 2200ms, "a wait of 1200 ms");
    CHECK(waits != "0");
    CHECK_FALSE(renewed.has_value());
    CHECK(lease.valid());
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    // The commit came about in the end; it is taken back long before its ttl.
    lab::wait_until([&] { return is_free("N", own); }, cap(10s), "nothing is left");
    CHECK(hold(client, "N").valid());
}

TEST_CASE("no connection left: said; with two left everything still works") {
    auto own = lab::MariadbServer::start();
    const auto limit = [&](const std::string& n) {
        own.sql("ALTER USER holdfast WITH MAX_USER_CONNECTIONS " + n);
    };
    const auto client = open(own.url());
    limit("-1");
    CHECK_THAT(refused(client, "N", errc::unavailable), ContainsSubstring("max_user_connections"));
    limit("2");
    const auto calm = open(own.url(), "ttl=30s");  // nothing here is about time
    std::vector<std::future<std::string>> all;
    for (int t = 0; t < 6; ++t)
        all.push_back(std::async(std::launch::async, [&, t]() -> std::string {
            const auto lock = calm.make_lock("many/" + std::to_string(t)).value();
            for (int i = 0; i < 5; ++i) {
                hf::Diagnostics words;
                auto lease = lock->acquire({.wait = 60s, .note = {}, .diagnostics = &words});
                if (!lease) return lease.error().message() + ": " + words.text();
                const auto result = lease->release();
                if (result != ReleaseResult::released) return std::string(hf::to_string(result));
            }
            return {};
        }));
    for (auto& one : all)
        CHECK(one.get() == "");
}

TEST_CASE("a server that only reads is refused with its reason; a replica, promoted, serves") {
    lab::MariadbOptions options;
    options.binary_log = true;
    auto primary = lab::MariadbServer::start(options);
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

TEST_CASE("the server's clock jumps: an early end is a loss, and the token grows") {
    lab::TempDir dir;
    // The server is another user, who has to find the file.
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
    lab::WallClock clock(dir / "offset");
    clock.set(0ms);
    lab::MariadbOptions options;
    options.environment = clock.environment();
    auto own = lab::MariadbServer::start(options);
    const auto jump = [&](hf::milliseconds by) {
        clock.set(by);
        const auto ahead = std::stod(own.value("SELECT UNIX_TIMESTAMP(SYSDATE(6))")) -
                           static_cast<double>(std::time(nullptr));
        REQUIRE(std::abs(ahead - static_cast<double>(by.count()) / 1000) < 30);
    };
    // Both have connected, and know the server's clock as it was.
    const auto first = open(own.url()), second = open(own.url());
    auto lease = hold(*lock_of(first, "N", {.ttl = 20s, .renew = false}));
    hold(second, "warm").release();
    SECTION("ahead") {
        jump(60s);
        auto next = hold(second, "N");
        CHECK(next.fencing_token() > lease.fencing_token());
        CHECK(lease.renew().error() == errc::lost);
        CHECK_FALSE(lease.valid());
        CHECK(lease.release() != ReleaseResult::released);
        CHECK(next.renew().has_value());
        CHECK(next.release() == ReleaseResult::released);
    }
    SECTION("back") {
        jump(-1h);
        CHECK(lock_of(second, "N")->try_acquire().error() == errc::contended);
        CHECK(lease.renew().has_value());
        // The renewal has put its end right.
        CHECK(row("expires < (UNIX_TIMESTAMP(SYSDATE(6)) + 21) * 1000000", "N", own) == "1");
        CHECK(lease.release() == ReleaseResult::released);
        auto next = hold(second, "N");
        CHECK(next.fencing_token() > lease.fencing_token());
        // What a dead holder left stays for an hour; an operator frees it.
        jump(-2h);
        CHECK(lock_of(first, "N")->try_acquire().error() == errc::contended);
        CHECK(first.break_lock("N", {.now = true}).has_value());
        CHECK(hold(first, "N").fencing_token() > next.fencing_token());
    }
}
