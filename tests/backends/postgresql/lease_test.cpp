// What the rows say: previous holders, clean-up, growth of the table, what others put into it.
#include <array>
#include <iostream>

#include "../sql/direct.hpp"
#include "backend.hpp"
#include "errors.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

TEST_CASE("an owner that has left is remembered until its requests are past") {
    const auto name = fresh("ghosts");
    Direct direct(server().url());
    auto holds = direct.step(pg::Step::Kind::attempt, name, owner('C'));
    REQUIRE(granted(direct.run(holds)));
    for (const char letter : {'B', 'D'}) {
        auto leave = direct.step(pg::Step::Kind::withdraw, name, owner(letter));
        leave.ghost = direct.shared->server_us(boot_clock::now() + 5s);
        direct.run(leave);
    }
    CHECK(server().value("SELECT count(*) FROM holdfast_lease, jsonb_object_keys(gone) WHERE name "
                         "= '" +
                         name + "'") == "2");
    CHECK(row("owner IS NOT NULL", name) == "t");
}

TEST_CASE("a request that arrives after its deadline takes nothing") {
    const auto name = fresh("late");
    Direct direct(server().url());
    auto warm = direct.step(pg::Step::Kind::attempt, name, owner('E'));
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
        auto warm = direct.step(pg::Step::Kind::attempt, name, owner('G'));
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
    const std::string ours = owner('I');
    a.name = "N", a.owner = ours;
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
    auto late = direct.step(pg::Step::Kind::attempt, name, owner('J'));
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
    auto first = direct.step(pg::Step::Kind::attempt, name, owner('F'));
    REQUIRE(granted(direct.run(first)));
    CHECK_FALSE(direct.connection->pooled());
    CHECK_FALSE(direct.connection->run_text("DEALLOCATE ALL", boot_clock::now() + 5s).failed);
    auto again = direct.step(pg::Step::Kind::attempt, name, first.owner);
    CHECK(granted(direct.run(again)));
    CHECK(direct.connection->pooled());
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
    const Foreign foreign(server(), lock_row(name));
    const auto start = boot_clock::now();
    CHECK(lock_of(client, name)->try_acquire().error() == errc::contended);
    trial.within(boot_clock::now() - start, 1500ms, "the answer beside a locked row");
}

TEST_CASE("a row that somebody has locked costs the others of its statement nothing") {
    const auto name = fresh("locked");
    Direct direct(server().url());
    std::vector<pg::Step> steps;
    for (const char* end : {"/a", "/b", "/c"}) {
        auto s = direct.step(pg::Step::Kind::attempt, name + end, owner('L'));
        REQUIRE(granted(direct.run(s)));
        s.token =
            static_cast<std::int64_t>(std::get<hf::spi::Attempt::Granted>(s.outcome).token.value);
        steps.push_back(s);
    }
    const Foreign foreign(server(), lock_row(name + "/b"));
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
}
