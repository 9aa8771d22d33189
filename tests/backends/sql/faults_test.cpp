// What a server with SQL, its administrator and the network before it can do to a lock.
#include <cmath>
#include <ctime>
#include <filesystem>
#include <future>
#include <vector>

#include "direct.hpp"
#include "heard.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "trial.hpp"
#include "waiter.hpp"

using namespace sql_tests;

TEST_CASE("a server that hangs costs the request time-out, and its late work nothing") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = Server::start();
    const auto client = open(own.url(), "ttl=4s&request_timeout=1s");
    const auto name = fresh("hang");
    hold(client, name).release();
    CHECK_FALSE(acquire_on_engine(client, name, 5s));
    const auto nobody = [&] { return row("owner IS NULL", name, own) == dialect::yes; };
    lab::wait_until(nobody, cap(10s), "it is released");
    auto lease = hold(client, fresh("kept"));
    own.pause();
    for (const bool by_lane : {true, false}) {
        INFO((by_lane ? "lane" : "engine"));
        const auto start = boot_clock::now();
        const auto ec = acquire_by(by_lane, client, name, 1200ms);
        CHECK((ec == errc::unavailable || ec == errc::in_doubt));
        trial.within(boot_clock::now() - start, 1500ms, "a wait of 1200 ms");
    }
    {
        const auto start = boot_clock::now();
        CHECK_FALSE(client.inspect(name).has_value());
        trial.within(boot_clock::now() - start, 1500ms, "a question");
    }
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "lost() in spite of it");
    CHECK(lease.lost_reason() == errc::lost);
    own.resume();
    // The statements that were sent are executed now: past their deadline, or marked.
    lab::wait_until([&] { return client.inspect(name).has_value(); }, 10s, "it answers again");
    CHECK(lab::stays_true(nobody, 500ms));
    CHECK(hold(client, name).valid());
}

TEST_CASE("a client that waits closes in time while the server hangs, and lost() comes in time") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = Server::start();
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
                return client.stats().waiting == 1 && own.value(dialect::one_waits) == dialect::yes;
            },
            5s, "it waits");
        own.pause();
        lab::wait_until([&] { return brief.lost().stop_requested(); }, 10s, "lost() comes");
        trial.within(boot_clock::now() - brief.valid_until(), 150ms, "lost(), from its end");
        start = boot_clock::now();
        client.close();
    }
    waiting.join();
    trial.within(boot_clock::now() - start, 1800ms, "close");
    own.resume();
}

TEST_CASE("killed and restarted: the lease goes on, waiters wait on, nobody is told wrong") {
    auto own = Server::start();
    test_support::Heard heard;
    const auto client = open(own.url(), "ttl=6s"), waiter = open(own.url(), "ttl=6s", heard.sink());
    const auto name = fresh("restart");
    auto lease = hold(client, name);
    auto waiting = std::async(std::launch::async,
                              [&] { return lock_of(waiter, name)->acquire({.wait = 60s}); });
    lab::wait_until([&] { return heard.waits(); }, cap(5s), "it waits, and was told so");
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
    auto own = Server::start();
    const auto client = open(own.url(), "ttl=1s&request_timeout=2s");
    own.sql(dialect::sync_nothing);
    hf::FencingToken last;
    for (int i = 0; i < 5; ++i) {
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
    auto own = Server::start();
    const auto client = open(own.url(), "ttl=5s");
    const auto end_all = [&] {
        CHECK(sessions(own) > 0);
        own.sql(dialect::end_sessions);
        lab::wait_until([&] { return sessions(own) == 0; }, 5s, "they have ended");
    };
    for (int i = 0; i < 5; ++i) {
        auto lease = hold(client, "N");
        end_all();
        CHECK(lease.renew().has_value());
        end_all();
        CHECK(lease.release() == ReleaseResult::released);
    }
    // Nothing of ours connects again by itself and forgets where it was.
    auto lease = hold(client, "N");
    end_all();
    CHECK(lock_of(client, "N")->try_acquire().error() == errc::contended);
    CHECK(lease.valid());
    for (int i = 0; i < 5; ++i) {
        REQUIRE(lease.renew().has_value());
        // Without waiting for their end: what has just been used is not looked at.
        own.sql(dialect::end_sessions);
        CHECK(lease.renew().has_value());
    }
    CHECK(client.stats().renewals_failed == 0);
}

TEST_CASE("an acquire that is cut by close() leaves nothing behind") {
    const auto name = fresh("closing");
    lab::Proxy proxy(server().port());
    auto client = open(url_through(proxy.port()), "ttl=60s&request_timeout=10s");
    warm_up(client, name);
    const auto before = proxy.counters().delayed;
    proxy.delay(lab::Direction::to_client, 30s);
    const bool by_lane = GENERATE(true, false);
    auto asked =
        std::async(std::launch::async, [&] { return acquire_by(by_lane, client, name, 0ms); });
    lab::wait_until([&] { return proxy.counters().delayed > before; }, 5s, "the answer waits");
    client.close();
    proxy.heal();
    CHECK(asked.get());
    require_free(name);
}

TEST_CASE("a release that a foreign lock holds up costs no other lease anything") {
    const auto name = fresh("held up"), other = fresh("other");
    std::atomic<int> at_risk{0};
    const auto client =
        open(server().url(), "ttl=2s&request_timeout=1900ms", [&](const hf::Event& e) {
            if (e.kind == hf::Event::Kind::at_risk) ++at_risk;
        });
    auto lease = hold(client, name), kept = hold(client, other);
    Foreign foreign(server(), lock_row(name));
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

TEST_CASE("no connection left: said; with two left everything still works") {
    auto own = Server::start();
    const auto client = open(own.url());
    own.sql(dialect::limit_sessions(0));
    CHECK_THAT(refused(client, "N", errc::unavailable),
               ContainsSubstring(dialect::too_many_sessions));
    own.sql(dialect::limit_sessions(2));
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

TEST_CASE("clients that find no table at the same moment all get one") {
    auto own = Server::start();
    const auto lock_once = [&](int i) {
        return open(own.url(), "request_timeout=10s")
            .make_lock("N" + std::to_string(i))
            .value()
            ->acquire()
            .has_value();
    };
    for (int round = 0; round < 10; ++round) {
        own.sql("DROP TABLE IF EXISTS holdfast_lease");
        std::vector<std::future<bool>> all;
        for (int i = 0; i < 8; ++i)
            all.push_back(std::async(std::launch::async, lock_once, i));
        for (auto& one : all)
            CHECK(one.get());
    }
}

TEST_CASE("the server's clock jumps: an early end is a loss, and the token grows") {
    lab::TempDir dir;
    // The server is another user, who has to find the file.
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
    lab::WallClock clock(dir / "offset");
    clock.set(0ms);
    auto own = Server::start({.environment = clock.environment()});
    const auto jump = [&](hf::milliseconds by) {
        clock.set(by);
        const auto ahead = std::stod(own.value(std::string("SELECT ") + dialect::unix_time)) -
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
        CHECK(row("expires < " + dialect::in_seconds(21), "N", own) == dialect::yes);
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

TEST_CASE("host names are resolved, and one that has no address is named") {
    const auto at = [](const std::string& host) {
        return std::string(dialect::scheme) + "://holdfast@" + host + ":" +
               std::to_string(server().port()) + "/holdfast";
    };
    const auto client = open(at("localhost"));
    for (int i = 0; i < 3; ++i)
        CHECK(hold(client, fresh("name")).valid());
    const auto lost = open(at("nowhere.invalid"), "request_timeout=1s");
    CHECK_THAT(refused(lost, "N", errc::unavailable), ContainsSubstring("nowhere.invalid"));
    // One that cannot be looked up any more leads to the address that was reached last.
    Direct direct(at("nowhere.invalid"));
    direct.shared->hosts.reach({0, "127.0.0.1", {}}, direct.shared->hosts.generation());
    const auto failed = direct.connection->open(boot_clock::now() + 10s);
    INFO(failed.detail);
    CHECK_FALSE(failed);
}

TEST_CASE("what a server answers after its client has found another one is in doubt") {
    const auto name = fresh("overtaken");
    lab::Proxy proxy(server().port());
    Direct d(url_through(proxy.port()));
    const auto step = [&](db::Step::Kind kind, char letter) {
        return d.step(kind, name, owner(letter));
    };
    auto held = step(db::Step::Kind::attempt, 'A');
    REQUIRE(granted(d.run(held)));
    const auto steps = {step(db::Step::Kind::renew, 'A'), step(db::Step::Kind::release, 'A'),
                        step(db::Step::Kind::attempt, 'B')};
    for (db::Step late : steps) {
        INFO("verb " << static_cast<int>(late.kind));
        late.deadline = boot_clock::now() + 20s;
        late.token = static_cast<std::int64_t>(
            std::get<hf::spi::Attempt::Granted>(held.outcome).token.value);
        REQUIRE_FALSE(d.connection->open(late.deadline));
        const auto before = proxy.counters().delayed;
        proxy.delay(lab::Direction::to_client, 30s);
        auto running = std::async(std::launch::async, [&] { d.run(late); });
        lab::wait_until([&] { return proxy.counters().delayed > before; }, cap(5s), "it waits");
        d.shared->hosts.reach({0, "another", {}}, d.shared->hosts.generation());
        proxy.heal();
        running.get();
        CHECK(late.renewal == hf::spi::Held::Renewal::unknown);
        CHECK(late.released == ReleaseResult::unreachable);
        CHECK_FALSE(granted(late));
        if (late.kind == db::Step::Kind::attempt)
            CHECK(std::holds_alternative<hf::spi::Attempt::NoAnswer>(late.outcome));
        else
            CHECK(late.error == db::make(db::Error::no_answer));
    }
    // Each was executed; what was granted is taken back on a new connection.
    CHECK_FALSE(is_free(name));
    auto leave = step(db::Step::Kind::withdraw, 'B');
    CHECK(d.run(leave).freed);
    CHECK(is_free(name));
}

TEST_CASE("a mark is taken back though the last attempts of its waiter were never sent") {
    const auto name = fresh("marked");
    const auto reads = lock_of(open_here("ttl=600s"), name, {.kind = hf::Kind::shared_mutex});
    auto holder = reads->acquire_shared();
    REQUIRE(holder.has_value());
    const auto marked = [&] { return row("meta LIKE '%wait %'", name) == dialect::yes; };
    lab::Proxy proxy(server().port());
    test_support::Heard heard;
    const auto client =
        open(url_through(proxy.port()), "ttl=60s&request_timeout=300ms", heard.sink());
    test_support::Waiter waiter(*lock_of(client, name), {});
    lab::wait_until(marked, cap(10s), "it has waited for long");
    // To connect anew takes longer than an attempt, which waits for that.
    proxy.black_hole();
    proxy.cut_all();
    lab::wait_until([&] { return !heard.of(hf::Event::Kind::unreachable).empty(); }, cap(10s),
                    "attempts have ended without an answer");
    waiter.cancel();
    CHECK(waiter.why() == errc::cancelled);
    proxy.heal();
    CHECK(lab::reached([&] { return !marked(); }, cap(20s)));
    CHECK(holder->release() == ReleaseResult::released);
}

TEST_CASE("renewals go on beside a row that somebody else has locked, until it is free") {
    const auto name = fresh("locked");
    const auto client = open_here("ttl=6s&request_timeout=1500ms");
    auto lease = hold(client, name);
    const auto failed = client.stats().renewals_failed;
    {
        const Foreign other(server(), lock_row(name));
        lab::wait_until([&] { return client.stats().renewals_failed > failed; }, 5s, "one fails");
        CHECK(lease.valid());
    }
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals > renewals; }, 5s, "one succeeds");
    CHECK(lease.valid());
    CHECK(lease.release() == ReleaseResult::released);
}
