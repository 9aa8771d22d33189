// What the rows say: previous holders, clean-up, growth of the table, what others put into it.
#include <iostream>
#include <random>
#include <thread>

#include "connection.hpp"
#include "errors.hpp"
#include "holdfast/config.hpp"
#include "rig.hpp"
#include "steps.hpp"

using namespace postgresql_tests;
namespace pg = holdfast::postgresql;

namespace {

std::string row(const std::string& columns, const std::string& name) {
    return server().value("SELECT " + columns + " FROM holdfast_lease WHERE name = '" + name + "'");
}

/// The backend's own connection, without core.
struct Direct {
    explicit Direct(const std::string& url) {
        hf::Diagnostics words;
        auto chosen = hf::parse_url(url, hf::spi::Registry::linked(), words);
        INFO(words.text());
        REQUIRE(chosen.has_value());
        shared = std::make_shared<pg::Shared>(chosen->settings, io.get_executor());
        connection = std::make_unique<pg::Connection>(shared, pg::Connection::Resolve::yes);
    }
    ~Direct() {
        connection.reset();
        shared->watchdog->close();
    }
    pg::Step step(pg::Step::Kind kind, const std::string& key, const std::string& owner) const {
        pg::Step s;
        s.kind = kind;
        s.key = key;
        s.owner = owner;
        s.deadline = boot_clock::now() + 5s;
        s.ttl = 10s;
        return s;
    }
    pg::Step& run(pg::Step& s) {
        pg::Step* const one = &s;
        pg::run_steps(*connection, {&one, 1});
        return s;
    }
    boost::asio::io_context io;
    std::shared_ptr<pg::Shared> shared;
    std::unique_ptr<pg::Connection> connection;
};

bool granted(const pg::Step& s) {
    return std::holds_alternative<hf::spi::Attempt::Granted>(s.outcome);
}

}  // namespace

TEST_CASE("previous_holder: crashed after the ttl, and a withdrawn grant hands it on") {
    const auto name = fresh("previous");
    const auto client = open_here();
    {
        auto dead = hold(*lock_of(client, name, {.ttl = 1s, .renew = false}));
        lab::wait_until([&] { return !dead.valid(); }, 5s, "it runs out");
        // Its process is gone before the release that core sends: nothing of it arrives.
        server().sql(
            "UPDATE holdfast_lease SET owner = 'gone', expires = clock_timestamp() WHERE "
            "name = '" +
            name + "'");
    }
    Direct direct(server().url());
    auto taken = direct.step(pg::Step::Kind::attempt, name, "AAAAAAAAAAAAAAAAAAAAAA.h.1");
    REQUIRE(granted(direct.run(taken)));
    CHECK(std::get<hf::spi::Attempt::Granted>(taken.outcome).previous == PreviousHolder::crashed);
    auto back = direct.step(pg::Step::Kind::withdraw, name, taken.owner);
    direct.run(back);
    CHECK(back.freed);
    auto next = hold(client, name);
    CHECK(next.previous_holder() == PreviousHolder::crashed);
    CHECK(next.release() == ReleaseResult::released);
    CHECK(hold(client, name).previous_holder() == PreviousHolder::released);
}

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
    CHECK_FALSE(said.error);
    CHECK(said.rows.empty());
    CHECK(row("owner IS NULL", name) == "t");
}

TEST_CASE("a session that forgets prepared statements, as behind an unknown pooler, still serves") {
    const auto name = fresh("forgetful");
    Direct direct(server().url());
    auto first = direct.step(pg::Step::Kind::attempt, name, "FFFFFFFFFFFFFFFFFFFFFF.h.1");
    REQUIRE(granted(direct.run(first)));
    CHECK_FALSE(direct.connection->pooled());
    CHECK_FALSE(direct.connection->run_text("DEALLOCATE ALL", boot_clock::now() + 5s).error);
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
    CHECK(ms_since(start) < 1500);
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
        CHECK(client.break_lock(name, {}, true).has_value());
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

TEST_CASE("batches of several clients over the same names never deadlock") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    const auto prefix = fresh("crossing") + "/";
    std::atomic<int> done{0}, failed{0}, overlaps{0};
    std::array<std::atomic<int>, 12> inside{};
    std::vector<hf::Client> clients;
    for (int c = 0; c < 3; ++c)
        clients.push_back(open_here("ttl=6s"));
    const auto before = server().value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = "
        "'holdfast'");
    constexpr int rounds = 400;
    std::mt19937 random(seed);
    for (int i = 0; i < rounds; ++i) {
        const auto which = random() % inside.size();
        const auto name = prefix + std::to_string(which);
        lock_of(clients[random() % clients.size()], name)
            ->async_acquire({.wait = 60s}, [&, which](hf::error_code ec, hf::Lease lease) {
                if (ec) ++failed;
                if (++inside[which] != 1) ++overlaps;
                --inside[which];
                lease.async_release(hf::Outcome::done,
                                    [&](hf::error_code, ReleaseResult) { ++done; });
            });
    }
    lab::wait_until([&] { return done == rounds; }, patience * 30s, "all had their turn");
    CHECK(failed == 0);
    CHECK(overlaps == 0);
    CHECK(server().value("SELECT deadlocks FROM pg_stat_database WHERE datname = 'holdfast'") ==
          before);
}
