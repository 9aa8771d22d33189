// The rows of the lease table: grants, tokens, verdicts, releases, breaking, names.
#include <limits>
#include <thread>

#include "fixture.hpp"
#include "questions.hpp"

namespace holdfast::sqlite::test {
namespace {

std::int64_t shift_us = 0;
std::int64_t shifted_wall() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000 + shift_us;
}

/// The wall clock of this process, moved while it lives.
struct WallClock {
    WallClock() { wall_us = shifted_wall; }
    ~WallClock() {
        shift_us = 0;
        wall_us = before;
    }
    std::int64_t (*before)() noexcept = wall_us;
};

bool expired(Table& t, const std::string& name) {
    TableRow row;
    return look(t.connection, name, row) == SQLITE_OK && row.state()->ended.has_value();
}

TEST_CASE("tokens grow over release, expiry, row deletion and a wall clock that jumps") {
    const File file;
    Table t(file);
    const WallClock clock;
    FencingToken last{};
    const auto next = [&](const std::string& how, milliseconds ttl = 20ms) {
        const auto g = t.grant("a", how, ttl);
        INFO(how);
        CHECK(g.token > last);
        last = g.token;
    };
    next("first", 10s);
    REQUIRE(t.release("a", "first", last) == ReleaseResult::released);
    next("released");
    REQUIRE(lab::reached([&] { return expired(t, "a"); }));
    next("expired");
    file.sql("DELETE FROM holdfast_lease");
    next("deleted");
    shift_us = -3'600'000'000;
    REQUIRE(lab::reached([&] { return expired(t, "a"); }));
    next("an hour back");
    file.sql("DELETE FROM holdfast_lease");
    next("deleted while back");
    shift_us = 3'600'000'000;
    REQUIRE(lab::reached([&] { return expired(t, "a"); }));
    next("an hour ahead");
    shift_us = 0;
    REQUIRE(lab::reached([&] { return expired(t, "a"); }));
    next("right again");
}

TEST_CASE("tokens of one transaction are different ones, also while the wall clock stands") {
    const File file;
    Table t(file);
    const WallClock clock;
    wall_us = []() noexcept { return std::int64_t{1000}; };
    std::vector<Step> steps;
    for (const char* name : {"a", "b", "c"})
        steps.push_back(t.step(Step::Kind::attempt, name, "one"));
    std::vector<Step*> all;
    for (Step& s : steps)
        all.push_back(&s);
    run_steps(t.connection, all);
    std::uint64_t last = 0;
    for (const Step& s : steps) {
        const auto* g = std::get_if<spi::Attempt::Granted>(&s.outcome);
        REQUIRE(g != nullptr);
        CHECK(g->token.value > last);
        last = g->token.value;
    }
    CHECK(file.sql("SELECT last FROM holdfast_format") == std::to_string(last));
    CHECK(t.grant("d", "one").token.value > last);
}

TEST_CASE("the wall clock decides nothing about who holds") {
    const File file;
    Table t(file);
    const WallClock clock;
    const auto held = t.grant("a", "one");
    for (const std::int64_t jump : {-7'200'000'000, 7'200'000'000}) {
        shift_us = jump;
        CHECK(t.busy("a", "two"));
        CHECK(t.renew("a", "one", held.token).renewal == spi::Held::Renewal::renewed);
    }
}

TEST_CASE("a lease from before a restart of the machine keeps others out for its ttl at most") {
    const File file;
    Table t(file);
    const auto soon = boot_clock::now() + 10s;
    t.grant("a", "one", 10s);
    // The clock began again at 0, so such a row ends at any time of the clock of now.
    const auto ends_in = [&](std::chrono::microseconds left) {
        file.sql("UPDATE holdfast_lease SET boot_id = 'another', expires = " +
                 std::to_string(boot_us() + left.count()));
    };
    const auto listed = [&] { return Questions::list(t.connection, "", 10, soon)->size(); };
    SECTION("it ended long ago, or will in a long time") {
        ends_in(GENERATE(-1h, 1h));
        CHECK(listed() == 0);
        CHECK(Questions::survey(t.connection, "a", soon)->holders.empty());
        CHECK(t.grant("a", "two").previous == PreviousHolder::crashed);
    }
    SECTION("it may be somebody's of now, with a boot id of his own") {
        ends_in(9s);
        CHECK(listed() == 1);
        CHECK(t.busy("a", "two"));
        ends_in(50ms);
        CHECK(lab::reached([&] { return !t.busy("a", "two"); }, 1s));
    }
}

TEST_CASE("forged times hold nothing for longer than the longest ttl") {
    constexpr std::int64_t day = 86'400'000'000, now = 5'000'000;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    CHECK(left_us(now + day, day, now) == day);
    CHECK(left_us(now + 3 * day, 3 * day, now) == 0);  // a ttl and a lock delay of a day
    CHECK(left_us(most, most, now) == 0);
    CHECK(left_us(least, most, now) == 0);
    CHECK(left_us(now + 1, least, now) == 0);
}

TEST_CASE("a renewal writes the ttl that its end was counted from") {
    const File file;
    Table t(file);
    const auto held = t.grant("a", "one", 1s);
    CHECK(t.renew("a", "one", held.token, 60s).renewal == spi::Held::Renewal::renewed);
    CHECK(t.busy("a", "two"));
    CHECK(file.sql("SELECT ttl FROM holdfast_lease") == "60000000");
}

/// What an older version left: a row without ttl, of this boot or of another one.
void layout_1(const File& file, const std::string& boot, std::int64_t acquired,
              std::int64_t expires) {
    file.sql(
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE holdfast_format("
        " id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, last INTEGER NOT NULL,"
        " swept TEXT NOT NULL DEFAULT '');"
        "CREATE TABLE holdfast_lease("
        " name TEXT NOT NULL, slot INTEGER NOT NULL DEFAULT 0, owner TEXT, token INTEGER NOT NULL,"
        " expires INTEGER NOT NULL, boot_id TEXT NOT NULL, acquired INTEGER NOT NULL,"
        " mark INTEGER NOT NULL DEFAULT 0, previous INTEGER NOT NULL DEFAULT 0,"
        " revoked INTEGER NOT NULL DEFAULT 0, meta TEXT, PRIMARY KEY (name, slot)) WITHOUT ROWID;"
        "INSERT INTO holdfast_format(id, format, last) VALUES (1, 1, 77);"
        "INSERT INTO holdfast_lease(name, owner, token, expires, boot_id, acquired) "
        "VALUES ('a', 'old', 77, " +
        std::to_string(expires) + ", '" + boot + "', " + std::to_string(acquired) + ")");
}

TEST_CASE("tables of layout 1 are taken over, and cost nobody a lease") {
    const File file;
    const auto now = boot_us();
    const std::int64_t second = 1'000'000;
    SECTION("a lease of this boot: wait until it ends, as its holder could not renew it") {
        layout_1(file, boot_id(), now - second, now + second / 2);
        Table t(file);
        const Step s = t.attempt("b", "one");
        const auto* f = std::get_if<spi::Attempt::Failed>(&s.outcome);
        REQUIRE(f != nullptr);
        CHECK(f->why == errc::unavailable);
        CHECK(f->server_alive);
        CHECK_THAT(s.detail, ContainsSubstring("older Holdfast"));
        CHECK(file.sql("SELECT format FROM holdfast_format") == "1");
        CHECK(lab::reached([&] { return !t.refused("b", "one"); }, 2s));
        CHECK(file.sql("SELECT format FROM holdfast_format") == "2");
        CHECK(t.grant("a", "two").previous == PreviousHolder::crashed);
    }
    SECTION("another boot's, which may be somebody's of now") {
        layout_1(file, "another", now - second, now + 5 * second);
        Table t(file);
        CHECK(t.busy("a", "two"));
        CHECK(t.grant("b", "two").token.value > 77);
    }
    SECTION("another boot's, which cannot be") {
        layout_1(file, "another", now + second, now + 5 * second);
        Table t(file);
        CHECK(t.grant("a", "two").token.value > 77);
    }
    SECTION("two at once") {
        layout_1(file, boot_id(), now - 2 * second, now - second);
        Table t(file), u(file);
        std::thread other([&] { CHECK(u.grant("b", "one").token.value > 77); });
        CHECK(t.grant("a", "two").token.value > 77);
        other.join();
    }
}

TEST_CASE("a prefix is no pattern, and an owner that is not Holdfast's is shown as foreign") {
    const File file;
    Table t(file);
    for (const char* name : {"100%", "100_", "a%", "a_", "A", "a"})
        t.grant(name, "one");
    const auto soon = boot_clock::now() + 2s;
    CHECK(*Questions::list(t.connection, "100%", 10, soon) == std::vector<std::string>{"100%"});
    CHECK(*Questions::list(t.connection, "a%", 10, soon) == std::vector<std::string>{"a%"});
    CHECK(Questions::list(t.connection, "", 3, soon)->size() == 3);
    CHECK(Questions::list(t.connection, "zzz", 3, soon)->empty());
    const auto found = Questions::survey(t.connection, "a%", soon);
    REQUIRE(found.has_value());
    REQUIRE(found->holders.size() == 1);
    CHECK(found->holders[0].holder.owner == "one");
    CHECK(found->holders[0].holder.foreign);
}

TEST_CASE("rows and tables of another kind are left alone") {
    const File file;
    SECTION("a row of another kind of lock") {
        Table t(file);
        const auto g = t.grant("a", "one");
        REQUIRE(t.release("a", "one", g.token) == ReleaseResult::released);
        file.sql("UPDATE holdfast_lease SET meta = 'limit 3'");
        CHECK(t.refused("a", "two") == errc::kind_mismatch);
        CHECK(file.sql("SELECT owner IS NULL FROM holdfast_lease") == "1");
    }
    SECTION("somebody else's table of that name") {
        file.sql("CREATE TABLE holdfast_lease(x)");
        Table t(file);
        CHECK(t.refused("a", "one") == errc::kind_mismatch);
        CHECK(file.sql("SELECT count(*) FROM sqlite_master") == "1");
    }
    SECTION("tables with other columns") {
        file.sql(
            "CREATE TABLE holdfast_lease(name, slot, x);"
            "CREATE TABLE holdfast_format(id, format, last, swept);"
            "INSERT INTO holdfast_format VALUES (1, " +
            std::to_string(GENERATE(1, 2)) + ", 0, '')");
        Table t(file);
        CHECK(t.refused("a", "one") == errc::kind_mismatch);
    }
    SECTION("a newer layout") {
        { Table(file).grant("a", "one"); }
        file.sql("UPDATE holdfast_format SET format = 3");
        Table t(file);
        CHECK(t.refused("b", "one") == errc::bad_config);
        CHECK_THAT(t.detail, ContainsSubstring("newer Holdfast"));
    }
    SECTION("a layout that becomes newer under an open connection") {
        Table t(file);
        t.grant("a", "one");
        file.sql("UPDATE holdfast_format SET format = 3");
        CHECK(t.refused("b", "one") == errc::bad_config);
    }
}

TEST_CASE("the sweeper deletes what is free, clean and a day old, and nothing else") {
    const File file;
    Table t(file);
    const WallClock clock;
    shift_us = -90'000'000'000;
    const auto old_clean = t.grant("old clean", "one");
    const auto old_abandoned = t.grant("old abandoned", "one");
    t.grant("old crashed", "one", 1ms);
    REQUIRE(t.release("old clean", "one", old_clean.token) == ReleaseResult::released);
    REQUIRE(t.release("old abandoned", "one", old_abandoned.token, Outcome::abandoned) ==
            ReleaseResult::released);
    shift_us = 0;
    const auto fresh = t.grant("fresh clean", "one");
    REQUIRE(t.release("fresh clean", "one", fresh.token) == ReleaseResult::released);
    t.grant("held", "one");
    sweep(t.connection, boot_clock::now() + 2s);
    CHECK(file.sql("SELECT group_concat(name) FROM (SELECT name FROM holdfast_lease ORDER BY 1)") ==
          "fresh clean,held,old abandoned,old crashed");
    CHECK(t.grant("old clean", "two").token > old_clean.token);
}

TEST_CASE("a sweep takes a bounded window and goes on where it ended") {
    const File file;
    Table t(file);
    t.grant("first", "one");
    file.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) "
        "INSERT INTO holdfast_lease(name, token, expires, boot_id, acquired, mark) "
        "SELECT printf('gone%04d', i), 1, 0, '', 0, 1 FROM n");
    const auto rows = [&] { return std::stoi(file.sql("SELECT count(*) FROM holdfast_lease")); };
    const auto soon = boot_clock::now() + 5s;
    sweep(t.connection, soon);
    CHECK(rows() == 601 - 255);
    sweep(t.connection, soon);
    sweep(t.connection, soon);
    CHECK(rows() == 1);
    CHECK(t.busy("first", "two"));
}

}  // namespace
}  // namespace holdfast::sqlite::test
