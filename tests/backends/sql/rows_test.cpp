// What the rows of a server with SQL say, and what late and repeated requests do to them.
#include <mutex>
#include <vector>

#include "direct.hpp"

using namespace sql_tests;

TEST_CASE("one owner asks twice: the same grant; a withdrawn owner's late request gets nothing") {
    const auto name = fresh("ghost");
    Direct d(server().url());
    const bool reads = GENERATE(false, true);
    // Else its late statements are kept out, and its client begins no others.
    if (reads && !dialect::reads_gone) return;
    const auto step = [&](db::Step::Kind kind, char letter) {
        auto s = d.step(kind, name, owner(letter));
        if (reads) s.units = reader;
        return s;
    };
    auto first = step(db::Step::Kind::attempt, 'B'), again = first;
    REQUIRE(granted(d.run(first)));
    REQUIRE(granted(d.run(again)));
    CHECK(std::get<hf::spi::Attempt::Granted>(again.outcome).token ==
          std::get<hf::spi::Attempt::Granted>(first.outcome).token);
    // It leaves while a request of its own is unanswered.
    auto leave = step(db::Step::Kind::withdraw, 'B');
    leave.ghost = d.shared->server_us(boot_clock::now() + 5s);
    CHECK(d.run(leave).freed);
    auto late = step(db::Step::Kind::attempt, 'B');
    CHECK_FALSE(granted(d.run(late)));
    CHECK(row("owner IS NULL", name) == dialect::yes);
    auto other = step(db::Step::Kind::attempt, 'C');
    CHECK(granted(d.run(other)));
}

TEST_CASE("an owner that leaves before its name has a row gets nothing once there is one") {
    const auto name = fresh("no-row"), other = fresh("no-row");
    Direct d(server().url());
    REQUIRE_FALSE(d.connection->open(boot_clock::now() + 20s));
    // Two owners of one name, and one of another.
    std::vector<db::Step> leaving{d.step(db::Step::Kind::withdraw, name, owner('A')),
                                  d.step(db::Step::Kind::withdraw, name, owner('B')),
                                  d.step(db::Step::Kind::withdraw, other, owner('C'))};
    std::vector<db::Step*> all;
    for (db::Step& s : leaving) {
        s.ghost = d.shared->server_us(boot_clock::now() + 20s);
        all.push_back(&s);
    }
    db::run_steps(*d.connection, all);
    for (const db::Step& s : leaving) {
        INFO(s.owner);
        CHECK(s.done);
        CHECK_FALSE(s.error);
        // Somebody else uses the name, and then the request arrives.
        auto next = d.step(db::Step::Kind::attempt, s.key, owner('D'));
        CHECK(granted(d.run(next)));
        auto leave = d.step(db::Step::Kind::withdraw, s.key, owner('D'));
        CHECK(d.run(leave).freed);
        auto late = d.step(db::Step::Kind::attempt, s.key, s.owner);
        CHECK_FALSE(granted(d.run(late)));
    }
}

TEST_CASE(
    "a release counts while an earlier request of its owner may still act, which gets nothing") {
    Direct d(server().url());
    const std::pair<const char*, hf::spi::Units> kinds[] = {
        {"a mutex", {}}, {"a reader", reader}, {"permits", {1, 3, hf::Mode::exclusive}}};
    for (const auto& [what, units] : kinds) {
        INFO(what);
        const auto name = fresh("released");
        auto take = d.step(db::Step::Kind::attempt, name, owner('R'));
        take.units = units;
        REQUIRE(granted(d.run(take)));
        auto leave = d.step(db::Step::Kind::release, name, owner('R'));
        leave.units = units;
        leave.token = static_cast<std::int64_t>(
            std::get<hf::spi::Attempt::Granted>(take.outcome).token.value);
        leave.ghost = d.shared->server_us(boot_clock::now() + 20s);
        d.run(leave);
        CHECK(leave.released == ReleaseResult::released);
        CHECK(leave.freed);
        CHECK_FALSE(leave.error);
        CHECK(is_free(name));
        auto late = d.step(db::Step::Kind::attempt, name, owner('R'));
        CHECK_FALSE(granted(d.run(late)));
        auto other = d.step(db::Step::Kind::attempt, name, owner('S'));
        CHECK(granted(d.run(other)));
    }
}

TEST_CASE("what was changed since it was read is not written") {
    const auto name = fresh("version");
    Direct d(server().url());
    auto warm = d.step(db::Step::Kind::attempt, name, owner('W'));
    warm.units = reader;
    REQUIRE(granted(d.run(warm)));
    // Two readers by what they have both read.
    db::Table table(*d.connection);
    const auto deadline = boot_clock::now() + 5s;
    holdfast::sql::TableRows rows[2];
    std::vector<holdfast::sql::Change> changes;
    for (auto& read : rows) {
        REQUIRE_FALSE(table.read({name}, deadline, read).failed);
        auto& found = read[name];
        auto state = found.state();
        REQUIRE(state.has_value());
        auto s = d.step(db::Step::Kind::attempt, name, owner(changes.empty() ? 'A' : 'B'));
        s.units = reader;
        s.run(*state);
        REQUIRE(granted(s));
        changes.push_back(
            {name, &found, holdfast::sql::columns_of(*state, found.columns), deadline, true});
    }
    holdfast::sql::Written first, second;
    CHECK_FALSE(table.write({changes[0]}, first, 100ms).failed);
    CHECK_FALSE(table.write({changes[1]}, second, 100ms).failed);
    CHECK(first.size() == 1);
    CHECK(second.empty());
    CHECK(row("meta LIKE '%" + owner('A') + "%' AND meta NOT LIKE '%" + owner('B') + "%'", name) ==
          dialect::yes);
}

TEST_CASE("rows of others: another kind is refused, a person's is a holder") {
    const auto name = fresh("foreign");
    const auto client = open_here();
    hold(client, fresh("warm")).release();
    SECTION("another kind") {
        server().sql("INSERT INTO holdfast_lease (name, meta) VALUES ('" + name +
                     "', 'semaphore')");
        CHECK_THAT(refused(client, name, errc::kind_mismatch), ContainsSubstring("another kind"));
        CHECK(client.break_lock(name).error() == errc::kind_mismatch);
        CHECK(row("meta", name) == "semaphore");
    }
    SECTION("one that never ends") {
        server().sql("INSERT INTO holdfast_lease (name, owner, expires) VALUES ('" + name +
                     "', 'somebody', " + dialect::never + ")");
        (void)refused(client, name, errc::contended);
        const auto seen = client.inspect(name);
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].foreign);
        CHECK(client.break_lock(name, {.now = true}).has_value());
        CHECK(hold(client, name).valid());
    }
}

TEST_CASE("contended attempts write nothing") {
    const auto name = fresh("idle");
    auto lease = hold(open_here("ttl=60s"), name);
    const auto lock = lock_of(open_here("ttl=60s"), name);
    CHECK(lock->try_acquire().error() == errc::contended);
    const auto before = row(dialect::version, name);
    for (int i = 0; i < 20; ++i)
        CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(row(dialect::version, name) == before);
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("sweep: old rows of clean releases go, all others stay, and tokens still grow") {
    auto own = Server::start();
    const auto client = open(own.url());
    hf::FencingToken last;
    for (const char* name : {"old-clean", "old-abandoned", "old-held", "young"}) {
        auto lease = hold(client, name);
        last = lease.fencing_token();
        lease.release(std::string(name) == "old-abandoned" ? hf::Outcome::abandoned
                                                           : hf::Outcome::done);
    }
    own.sql(std::string("UPDATE holdfast_lease SET token = token - 90000000000, "
                        "acquired = acquired - ") +
            dialect::more_than_a_day + ", expires = expires - " + dialect::more_than_a_day +
            " WHERE name LIKE 'old%'");
    own.sql("UPDATE holdfast_lease SET owner = 'somebody', expires = " + dialect::in_seconds(3600) +
            " WHERE name = 'old-held'");
    own.sql(std::string("INSERT INTO holdfast_lease (name, meta, acquired) VALUES "
                        "('old-kind', 'semaphore', ") +
            dialect::epoch + ")");
    // Free, and somebody waits in it still, or is still to hear something.
    own.sql(std::string("INSERT INTO holdfast_lease (name, meta, acquired, expires) VALUES "
                        "('old-noted', 'hf 1', ") +
            dialect::epoch + ", " + dialect::in_seconds(3) + ")");
    Direct d(own.url());
    std::string cursor;
    db::sweep(*d.connection, boot_clock::now() + 5s, cursor);
    std::string left;
    for (const auto& r : own.sql("SELECT name FROM holdfast_lease ORDER BY name"))
        left += r[0] + " ";
    CHECK(left == "old-abandoned old-held old-kind old-noted young ");
    CHECK(hold(client, "old-clean").fencing_token() > last);
    // 2,500 rows take three looks.
    own.sql(std::string("INSERT INTO holdfast_lease (name, acquired) SELECT concat('many/', n), ") +
            dialect::epoch + " FROM " + dialect::numbers_to(2500));
    for (int i = 0; i < 3; ++i)
        db::sweep(*d.connection, boot_clock::now() + 5s, cursor);
    CHECK(own.value("SELECT count(*) FROM holdfast_lease WHERE name LIKE 'many%'") == "0");
}

TEST_CASE("sweep: a row that keeps a request out stays until that is past") {
    Direct d(server().url());
    // Of one that holds, of one that does not, and of one that may have left a mark in the row.
    for (const std::string who : {"holder", "other", "marked"}) {
        INFO(who);
        const auto name = fresh("kept-out");
        auto holds = d.step(db::Step::Kind::attempt, name, owner('C'));
        REQUIRE(granted(d.run(holds)));
        const auto leave = [&](char c) {
            auto s = d.step(db::Step::Kind::withdraw, name, owner(c));
            s.ghost = d.shared->server_us(boot_clock::now() + 60s);
            s.marked = who == "marked";
            CHECK_FALSE(d.run(s).error);
        };
        const auto change = [&](const std::string& what) {
            server().sql("UPDATE holdfast_lease SET " + what + " WHERE name = '" + name + "'");
        };
        if (who != "holder") {
            auto out = d.step(db::Step::Kind::withdraw, name, owner('C'));
            d.run(out);
            change(std::string("expires = ") + dialect::epoch);
        }
        change(std::string("token = token - 90000000000, acquired = acquired - ") +
               dialect::more_than_a_day);
        leave(who == "holder" ? 'C' : 'D');
        const auto left_by_sweep = [&] {
            std::string cursor = name.substr(0, name.size() - 1);
            db::sweep(*d.connection, boot_clock::now() + 5s, cursor);
            return row("COUNT(*)", name);
        };
        CHECK(row(std::string("owner IS NULL AND ") + dialect::keeps_out, name) == dialect::yes);
        CHECK(left_by_sweep() == "1");
        change(dialect::kept_out_long_ago);
        CHECK(left_by_sweep() == "0");
    }
}

TEST_CASE("concurrent calls share statements") {
    const auto client = open_here("ttl=60s");
    hold(client, fresh("warm")).release();
    constexpr int n = 200;
    const auto before = client.stats().requests;
    std::atomic<int> granted_now{0}, failed{0};
    std::mutex mutex;
    std::vector<hf::Lease> leases;
    const auto prefix = fresh("shared") + "/";
    for (int i = 0; i < n; ++i)
        lock_of(client, prefix + std::to_string(i))
            ->async_acquire({}, [&](hf::error_code ec, hf::Lease lease) {
                const std::lock_guard hold_it(mutex);
                if (ec) ++failed;
                leases.push_back(std::move(lease));
                ++granted_now;
            });
    lab::wait_until([&] { return granted_now == n; }, cap(20s), "all are granted");
    CHECK(failed == 0);
    CHECK(client.list(prefix).value().size() == n);
    // One by one it would be several for each of these new names.
    CHECK(client.stats().requests - before < n);
    leases.clear();
    // By their releases, long before their ttl.
    lab::wait_until(
        [&] {
            const auto held = client.list(prefix);
            return held && held->empty();
        },
        cap(10s), "all are free");
}

TEST_CASE("a table that is not ours, or of another version, is refused and left alone") {
    auto own = Server::start();
    const auto client = open(own.url());
    own.sql(std::string("CREATE TABLE holdfast_lease (id INT PRIMARY KEY)") + dialect::give_away);
    CHECK_THAT(refused(client, "N", errc::kind_mismatch),
               ContainsSubstring(std::string("holdfast schema ") + dialect::scheme));
    own.sql(dialect::comment("Holdfast leases, format 99"));
    CHECK_THAT(refused(client, "N", errc::bad_config), ContainsSubstring("newer version"));
    own.sql(dialect::comment("Holdfast leases, format 0"));
    CHECK_THAT(refused(client, "N", errc::bad_config), ContainsSubstring("drop it"));
    CHECK(own.value("SELECT count(*) FROM information_schema.columns WHERE table_name = "
                    "'holdfast_lease'") == "1");
    own.sql("DROP TABLE holdfast_lease");
    CHECK(hold(client, "N").valid());
    // And under an open connection.
    own.sql("DROP TABLE holdfast_lease");
    CHECK(hold(client, "N").valid());
}
