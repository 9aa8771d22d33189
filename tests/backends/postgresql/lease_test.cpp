// What the rows say: previous holders, clean-up, growth of the table, what others put into it.
#include <array>
#include <future>
#include <iostream>
#include <thread>

#include "backend.hpp"
#include "direct.hpp"
#include "errors.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

namespace {

std::string row(const std::string& columns, const std::string& name) {
    return server().value("SELECT " + columns + " FROM holdfast_lease WHERE name = '" + name + "'");
}

bool granted(const pg::Step& s) {
    return std::holds_alternative<hf::spi::Attempt::Granted>(s.outcome);
}

}  // namespace

TEST_CASE("one owner asks twice: the same grant; a withdrawn owner's late request gets nothing") {
    const auto name = fresh("ghost");
    Direct direct(server().url());
    auto first = direct.step(pg::Step::Kind::attempt, name, "BBBBBBBBBBBBBBBBBBBBBB.h.1");
    auto again = first;
    REQUIRE(granted(direct.run(first)));
    REQUIRE(granted(direct.run(again)));
    const auto token = std::get<hf::spi::Attempt::Granted>(first.outcome).token;
    CHECK(std::get<hf::spi::Attempt::Granted>(again.outcome).token == token);
    // It leaves while a request of its own is unanswered.
    auto leave = direct.step(pg::Step::Kind::withdraw, name, first.owner);
    leave.ghost = direct.shared->server_us(boot_clock::now() + 5s);
    direct.run(leave);
    CHECK(leave.freed);
    auto late = direct.step(pg::Step::Kind::attempt, name, first.owner);
    CHECK_FALSE(granted(direct.run(late)));
    CHECK(row("owner IS NULL", name) == "t");
    // Others may.
    auto other = direct.step(pg::Step::Kind::attempt, name, "CCCCCCCCCCCCCCCCCCCCCC.h.1");
    CHECK(granted(direct.run(other)));
    // What is past is forgotten at the next such leave.
    auto past = direct.step(pg::Step::Kind::withdraw, name, "DDDDDDDDDDDDDDDDDDDDDD.h.1");
    past.ghost = direct.shared->server_us(boot_clock::now() + 1s);
    direct.run(past);
    CHECK(server().value("SELECT count(*) FROM holdfast_lease, jsonb_object_keys(gone) WHERE name "
                         "= '" +
                         name + "'") == "2");
    CHECK(row("owner IS NOT NULL", name) == "t");
}

TEST_CASE("a request that arrives after its deadline takes nothing") {
    const auto name = fresh("late");
    Direct direct(server().url());
    auto warm = direct.step(pg::Step::Kind::attempt, name, "EEEEEEEEEEEEEEEEEEEEEE.h.1");
    REQUIRE(granted(direct.run(warm)));
    auto out = direct.step(pg::Step::Kind::withdraw, name, warm.owner);
    direct.run(out);
    const auto late = std::to_string(direct.shared->server_us(boot_clock::now() - 10ms));
    const auto said = direct.connection->run(
        pg::Sql::grant, {name, warm.owner, "10000", late, "", "-1"}, boot_clock::now() + 5s);
    CHECK_FALSE(said.failed);
    CHECK(said.rows.empty());
    CHECK(row("owner IS NULL", name) == "t");
}

TEST_CASE("in a batch, too, a request that arrives after its deadline takes nothing") {
    const auto late = fresh("late"), timely = fresh("timely");
    Direct direct(server().url());
    for (const auto& name : {late, timely}) {
        auto warm = direct.step(pg::Step::Kind::attempt, name, "GGGGGGGGGGGGGGGGGGGGGG.h.1");
        REQUIRE(granted(direct.run(warm)));
        auto out = direct.step(pg::Step::Kind::withdraw, name, warm.owner);
        direct.run(out);
    }
    const auto us = [&](hf::milliseconds from_now) {
        return std::to_string(direct.shared->server_us(boot_clock::now() + from_now));
    };
    const auto said =
        direct.connection->run(pg::Sql::grant_many,
                               {"{" + late + "," + timely + "}", "{H.h.1,H.h.2}", "{10000,10000}",
                                "{" + us(-10ms) + "," + us(5s) + "}", "", "{-1,-1}"},
                               boot_clock::now() + 5s);
    CHECK_FALSE(said.failed);
    REQUIRE(said.rows.size() == 1);
    CHECK(said.rows[0][0].c_str() == timely);
    CHECK(row("owner IS NULL", late) == "t");
}

TEST_CASE("an owner that leaves is marked for as long as its own request may act") {
    Direct direct(server().url());
    hf::spi::Attempt a;
    a.name = "N", a.owner = "IIIIIIIIIIIIIIIIIIIIII.h.1";
    a.deadline = boot_clock::now() + 2s;
    REQUIRE_FALSE(direct.connection->open(boot_clock::now() + 5s));
    const auto sent_with = direct.shared->server_us(a.deadline);
    // The clock is read again meanwhile, by an answer that took a second, or after a step back.
    direct.shared->heard_clock(direct.shared->server_us(boot_clock::now()) - 1'000'000);
    auto unanswered = pg::Step(pg::Step::Kind::attempt, "", a);
    unanswered.outcome = hf::spi::Attempt::NoAnswer{hf::make_error_code(errc::unavailable)};
    holdfast::sql::take(unanswered, *direct.shared, a);
    CHECK(pg::Step(pg::Step::Kind::withdraw, "", a).ghost >= sent_with);
}

TEST_CASE("what the engine gives up before it was asked for is never asked for, and so no doubt") {
    Direct direct(server().url());
    const auto name = fresh("given-up");
    auto late = direct.step(pg::Step::Kind::attempt, name, "JJJJJJJJJJJJJJJJJJJJJJ.h.1");
    auto timely = direct.step(pg::Step::Kind::attempt, fresh("timely"), late.owner);
    CHECK(direct.shared->call_off(late));
    const std::array<pg::Step*, 2> both{&late, &timely};
    pg::run_steps(*direct.connection, both);
    CHECK_FALSE(granted(late));
    CHECK(granted(timely));
    CHECK_FALSE(direct.shared->call_off(timely));
    CHECK(row("count(*) FILTER (WHERE owner IS NOT NULL)", name) == "0");
}

TEST_CASE("a session that forgets prepared statements, as behind an unknown pooler, still serves") {
    const auto name = fresh("forgetful");
    Direct direct(server().url());
    auto first = direct.step(pg::Step::Kind::attempt, name, "FFFFFFFFFFFFFFFFFFFFFF.h.1");
    REQUIRE(granted(direct.run(first)));
    CHECK_FALSE(direct.connection->pooled());
    CHECK_FALSE(direct.connection->run_text("DEALLOCATE ALL", boot_clock::now() + 5s).failed);
    auto again = direct.step(pg::Step::Kind::attempt, name, first.owner);
    CHECK(granted(direct.run(again)));
    CHECK(direct.connection->pooled());
}

TEST_CASE("sweep: old rows of clean releases go, all others stay, and tokens still grow") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url());
    hf::FencingToken last;
    for (const char* name : {"old-clean", "old-abandoned", "old-held", "young"}) {
        auto lease = hold(client, name);
        last = lease.fencing_token();
        lease.release(std::string(name) == "old-abandoned" ? hf::Outcome::abandoned
                                                           : hf::Outcome::done);
    }
    own.sql(
        "UPDATE holdfast_lease SET token = token - 90000000000::bigint, "
        "acquired = acquired - interval '25 hours' WHERE name LIKE 'old%'");
    own.sql(
        "UPDATE holdfast_lease SET owner = 'somebody', expires = clock_timestamp() + "
        "interval '1 hour' WHERE name = 'old-held'");
    own.sql(
        "INSERT INTO holdfast_lease(name, meta, acquired) VALUES ('old-kind', 'semaphore', "
        "'epoch')");
    Direct direct(own.url());
    std::string cursor;
    pg::sweep(*direct.connection, boot_clock::now() + 5s, cursor);
    std::string left;
    for (const auto& r : own.sql("SELECT name FROM holdfast_lease ORDER BY name"))
        left += r[0] + " ";
    CHECK(left == "old-abandoned old-held old-kind young ");
    CHECK(hold(client, "old-clean").fencing_token() > last);
    // 2,500 rows take three looks.
    own.sql(
        "INSERT INTO holdfast_lease(name, acquired) SELECT 'many/' || n, 'epoch' FROM "
        "generate_series(1, 2500) AS n");
    for (int i = 0; i < 3; ++i)
        pg::sweep(*direct.connection, boot_clock::now() + 5s, cursor);
    CHECK(own.value("SELECT count(*) FROM holdfast_lease WHERE name LIKE 'many%'") == "0");
}

TEST_CASE("the table does not grow with the number of cycles") {
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=60s");
    constexpr int names = 20, cycles = 3000;
    std::vector<std::unique_ptr<hf::Lock>> locks;
    for (int i = 0; i < names; ++i) {
        locks.push_back(lock_of(client, "bloat/" + std::to_string(i)));
        hold(*locks.back()).release();
    }
    const auto size = [&] {
        return std::stoll(own.value("SELECT pg_total_relation_size('holdfast_lease')"));
    };
    for (int i = 0; i < cycles; ++i) {
        auto lease = locks[static_cast<std::size_t>(i % names)]->try_acquire();
        REQUIRE(lease.has_value());
        lease->release();
    }
    std::cout << "postgresql: " << cycles << " cycles over " << names << " names: " << size()
              << " bytes\n";
    // Without reuse of row versions 6,000 of them would be some 800 kB.
    CHECK(size() < 200'000);
    lab::wait_until(
        [&] {
            return std::stoll(own.value("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = "
                                        "'holdfast_lease'")) >= 2 * cycles;
        },
        20s, "the server's statistics");
    const double hot = std::stod(
        own.value("SELECT n_tup_hot_upd::float8 / n_tup_upd FROM pg_stat_user_tables WHERE relname "
                  "= 'holdfast_lease'"));
    CHECK(hot > 0.95);
}

TEST_CASE("a row that somebody else has locked is passed over, not waited for") {
    test_support::Trial& trial = test_support::this_trial();
    const auto name = fresh("locked");
    const auto client = open_here("ttl=4500ms&request_timeout=1500ms");
    hold(client, name).release();
    // A foreign transaction that stays open on the row of the lock.
    const auto locker = [&](const std::string& action) {
        return std::thread([&, action] {
            server().sql("BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                         "' FOR UPDATE; SELECT pg_sleep(" + action + "); COMMIT");
        });
    };
    const auto is_locked = [&] {
        return server().value(
                   "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") != "0";
    };
    auto foreign = locker("3");
    lab::wait_until(is_locked, 5s, "the row is locked");
    const auto start = boot_clock::now();
    CHECK(lock_of(client, name)->try_acquire().error() == errc::contended);
    trial.within(boot_clock::now() - start, 1500ms, "the answer beside a locked row");
    foreign.join();
    // While it is held, renewals go round the foreign lock until it is gone.
    auto lease = hold(client, name);
    foreign = locker("3");
    lab::wait_until(is_locked, 5s, "the row is locked");
    const auto failed = client.stats().renewals_failed;
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals_failed > failed; }, 5s, "one fails");
    CHECK(lease.valid());
    foreign.join();
    lab::wait_until([&] { return client.stats().renewals > renewals; }, 5s, "one succeeds");
    CHECK(lease.valid());
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("a release that a foreign lock holds up costs no other lease anything") {
    const auto name = fresh("held up"), other = fresh("other");
    std::atomic<int> at_risk{0};
    const auto client =
        open(server().url(), "ttl=2s&request_timeout=1900ms", [&](const hf::Event& e) {
            if (e.kind == hf::Event::Kind::at_risk) ++at_risk;
        });
    auto lease = hold(client, name), kept = hold(client, other);
    std::thread foreign([&] {
        server().sql("BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                     "' FOR UPDATE; SELECT pg_sleep(3); COMMIT");
    });
    lab::wait_until(
        [&] {
            return server().value(
                       "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1";
        },
        5s, "the row is locked");
    const auto renewals = client.stats().renewals;
    std::promise<ReleaseResult> released;
    lease.async_release(hf::Outcome::done,
                        [&](hf::error_code, ReleaseResult r) { released.set_value(r); });
    CHECK(lab::stays_true([&] { return at_risk == 0 && kept.state() == hf::LeaseState::held; },
                          2500ms));
    CHECK(client.stats().renewals >= renewals + 2);
    foreign.join();
    CHECK(kept.valid());
    (void)released.get_future().get();
    require_free(name);
}

TEST_CASE("a row that somebody has locked costs the others of its statement nothing") {
    const auto name = fresh("locked");
    Direct direct(server().url());
    std::vector<pg::Step> steps;
    for (const char* end : {"/a", "/b", "/c"}) {
        auto s = direct.step(pg::Step::Kind::attempt, name + end, "LLLLLLLLLLLLLLLLLLLLLL.h.1");
        REQUIRE(granted(direct.run(s)));
        s.token =
            static_cast<std::int64_t>(std::get<hf::spi::Attempt::Granted>(s.outcome).token.value);
        steps.push_back(s);
    }
    std::promise<void> enough;
    std::thread foreign([&, until = enough.get_future()] {
        pqxx::connection c("host=127.0.0.1 user=holdfast dbname=holdfast port=" +
                           std::to_string(server().port()));
        pqxx::work tx(c);
        tx.exec("SELECT 1 FROM holdfast_lease WHERE name = '" + name + "/b' FOR UPDATE");
        until.wait();
    });
    lab::wait_until(
        [&] {
            return server().value(
                       "SELECT count(*) FROM (SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                       "/b' FOR UPDATE SKIP LOCKED) AS free") == "0";
        },
        5s, "the row is locked");
    const auto kind = GENERATE(pg::Step::Kind::release, pg::Step::Kind::withdraw);
    std::vector<pg::Step*> all;
    for (pg::Step& s : steps) {
        s.kind = kind;
        s.done = false;
        s.deadline = boot_clock::now() + 20s;
        all.push_back(&s);
    }
    pg::run_steps(*direct.connection, all);
    CHECK(steps[0].freed);
    CHECK(steps[1].error == errc::unavailable);
    CHECK_FALSE(steps[1].freed);
    CHECK(steps[2].freed);
    CHECK_FALSE(steps[2].error);
    enough.set_value();
    foreign.join();
}

TEST_CASE("what is not ours is refused and left alone") {
    const auto name = fresh("foreign");
    const auto client = open_here();
    hold(client, fresh("warm")).release();
    SECTION("a row of another kind") {
        server().sql("INSERT INTO holdfast_lease(name, meta) VALUES ('" + name + "', 'semaphore')");
        CHECK_THAT(refused(client, name, errc::kind_mismatch), ContainsSubstring("another kind"));
        CHECK(client.break_lock(name).error() == errc::kind_mismatch);
        CHECK(row("meta", name) == "semaphore");
    }
    SECTION("a row that a person made is a holder, also one that never expires") {
        server().sql("INSERT INTO holdfast_lease(name, owner, expires) VALUES ('" + name +
                     "', 'somebody', 'infinity')");
        (void)refused(client, name, errc::contended);
        const auto seen = client.inspect(name);
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].foreign);
        CHECK(client.break_lock(name, {.now = true}).has_value());
        CHECK(hold(client, name).valid());
    }
    SECTION("a table of that name without our mark, and those of other versions") {
        auto own = lab::PostgresServer::start();
        const auto stranger = open(own.url());
        own.sql(
            "CREATE TABLE holdfast_lease(id int); GRANT ALL ON holdfast_lease TO PUBLIC; "
            "ALTER TABLE holdfast_lease OWNER TO holdfast");
        CHECK_THAT(refused(stranger, name, errc::kind_mismatch),
                   ContainsSubstring("holdfast schema postgresql"));
        own.sql("COMMENT ON TABLE holdfast_lease IS 'Holdfast leases, format 3'");
        CHECK_THAT(refused(stranger, name, errc::bad_config), ContainsSubstring("newer version"));
        own.sql("COMMENT ON TABLE holdfast_lease IS 'Holdfast leases, format 1'");
        CHECK_THAT(refused(stranger, name, errc::bad_config), ContainsSubstring("drop it"));
        own.sql("DROP TABLE holdfast_lease");
        CHECK(hold(stranger, name).valid());
        // And under an open connection.
        own.sql("DROP TABLE holdfast_lease");
        CHECK(hold(stranger, name).valid());
    }
}
