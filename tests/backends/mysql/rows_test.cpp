// What the rows say, and what late and repeated statements do to them.
#include <future>
#include <random>
#include <vector>

#include "direct.hpp"
#include "trial.hpp"

using namespace mysql_tests;

namespace {

const hf::spi::Units reader{1, hf::spi::Units::all, hf::Mode::shared};

std::string owner(char letter) {
    return std::string(22, letter) + ".h.1";
}

}  // namespace

TEST_CASE("one owner asks twice: the same grant; a withdrawn owner's late request gets nothing") {
    const auto name = fresh("ghost");
    Direct d(server().url());
    const bool reads = GENERATE(false, true);
    const auto step = [&](my::Step::Kind kind, char letter) {
        auto s = d.step(kind, name, owner(letter));
        if (reads) s.units = reader;
        return s;
    };
    auto first = step(my::Step::Kind::attempt, 'B'), again = first;
    REQUIRE(granted(d.run(first)));
    REQUIRE(granted(d.run(again)));
    CHECK(std::get<hf::spi::Attempt::Granted>(again.outcome).token ==
          std::get<hf::spi::Attempt::Granted>(first.outcome).token);
    // It leaves while a request of its own is unanswered.
    auto leave = step(my::Step::Kind::withdraw, 'B');
    leave.ghost = d.shared->server_us(boot_clock::now() + 5s);
    CHECK(d.run(leave).freed);
    auto late = step(my::Step::Kind::attempt, 'B');
    CHECK_FALSE(granted(d.run(late)));
    CHECK(is_free(name));
    auto other = step(my::Step::Kind::attempt, 'C');
    CHECK(granted(d.run(other)));
}

TEST_CASE("owners that have left are forgotten when their requests are past") {
    const auto name = fresh("ghosts");
    Direct d(server().url());
    auto warm = d.step(my::Step::Kind::attempt, name, owner('W'));
    REQUIRE(granted(d.run(warm)));
    for (int i = 0; i < 300; ++i) {
        auto leave = d.step(my::Step::Kind::withdraw, name,
                            std::to_string(i) + std::string(19, 'x') + ".h.1");
        leave.ghost = d.shared->server_us(boot_clock::now() + (i < 299 ? 1ms : 5s));
        CHECK_FALSE(d.run(leave).error);
    }
    CHECK(row("LENGTH(gone) < 4300 AND LOCATE('299xxx', gone) > 0", name) == "1");
    CHECK(row("owner IS NOT NULL", name) == "1");
}

TEST_CASE("a statement that is executed after its deadline takes nothing, alone and in a packet") {
    const auto late = fresh("late"), timely = fresh("timely");
    Direct d(server().url());
    for (const auto& name : {late, timely}) {
        auto warm = d.step(my::Step::Kind::attempt, name, owner('E'));
        REQUIRE(granted(d.run(warm)));
        auto out = d.step(my::Step::Kind::withdraw, name, owner('E'));
        d.run(out);
    }
    const auto grant = [&](my::Packet& p, const std::string& name, hf::milliseconds from_now) {
        const auto o = owner('F');
        p.add(my::Sql::grant,
              {o, 10'000'000, name, o, o, d.shared->server_us(boot_clock::now() + from_now)});
    };
    my::Packet alone;
    grant(alone, late, -10ms);
    auto said = d.connection->run(alone, boot_clock::now() + 5s);
    REQUIRE_FALSE(said.failed);
    CHECK(said.results[0].affected == 0);
    my::Packet both(my::Sql::begin);
    grant(both, late, -10ms);
    grant(both, timely, 5s);
    both.add(my::Sql::commit);
    said = d.connection->run(both, boot_clock::now() + 5s);
    REQUIRE_FALSE(said.failed);
    CHECK(said.results[1].affected == 0);
    CHECK(said.results[2].affected == 1);
    CHECK(is_free(late));
}

TEST_CASE("a statement that waited for a row's lock beyond its deadline takes nothing") {
    const auto name = fresh("waited");
    Direct d(server().url());
    auto warm = d.step(my::Step::Kind::attempt, name, owner('G'));
    REQUIRE(granted(d.run(warm)));
    auto out = d.step(my::Step::Kind::withdraw, name, owner('G'));
    d.run(out);
    const auto o = owner('H');
    const auto changes = [&](hf::milliseconds time_left) {
        Foreign other(server(),
                      "BEGIN; SELECT 1 FROM holdfast_lease WHERE name = '" + name + "' FOR UPDATE",
                      20s);
        const my::Packet grant(
            my::Sql::grant,
            {o, 10'000'000, name, o, o, d.shared->server_us(boot_clock::now() + time_left)});
        // In a session that waits for locks; ours do not, where the server lets them.
        auto running = std::async(std::launch::async, [&] {
            return server().value(grant.text() + "; SELECT ROW_COUNT()");
        });
        const auto later = boot_clock::now() + 300ms;
        lab::wait_until([&] { return boot_clock::now() > later; }, 5s, "it is past");
        other.go();
        return running.get();
    };
    CHECK(changes(200ms) == "0");
    CHECK(is_free(name));
    CHECK(changes(20s) == "1");
}

TEST_CASE("what was changed since it was read is not written") {
    const auto name = fresh("version");
    Direct d(server().url());
    auto warm = d.step(my::Step::Kind::attempt, name, owner('W'));
    warm.units = reader;
    REQUIRE(granted(d.run(warm)));
    // Two readers by what they have both read.
    my::Table table(*d.connection);
    const auto deadline = boot_clock::now() + 5s;
    holdfast::sql::TableRows rows[2];
    std::vector<holdfast::sql::Change> changes;
    for (auto& read : rows) {
        REQUIRE_FALSE(table.read({name}, deadline, read).failed);
        auto& found = read[name];
        auto state = found.state();
        REQUIRE(state.has_value());
        auto s = d.step(my::Step::Kind::attempt, name, owner(changes.empty() ? 'A' : 'B'));
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
    CHECK(row("LOCATE('" + owner('A') + "', meta) > 0 AND LOCATE('" + owner('B') + "', meta) = 0",
              name) == "1");
}

TEST_CASE("names differ in each of their bytes") {
    const auto client = open_here("ttl=60s");
    const std::vector<std::string> names = {"name",
                                            "Name",
                                            "NAME",
                                            "name ",
                                            "name  ",
                                            "n\xc3\xa4me",
                                            "na\xcc\x88me",
                                            "name\t",
                                            "it's",
                                            "it''s",
                                            "back\\slash",
                                            "back\\\\slash",
                                            "per%cent",
                                            "under_score",
                                            "quote\"s",
                                            "back`tick",
                                            "-- comment",
                                            "a;b",
                                            "\xf0\x9f\x94\x92",
                                            std::string(512, 'x'),
                                            std::string(511, 'x')};
    std::vector<hf::Lease> held;
    for (const auto& name : names) {
        INFO(name);
        held.push_back(hold(client, name));
        (void)refused(client, name, errc::contended);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        INFO(names[i]);
        CHECK(client.inspect(names[i])->holders.size() == 1);
        CHECK(held[i].renew().has_value());
        CHECK(held[i].release() == ReleaseResult::released);
        const auto again = lock_of(client, names[i])->try_acquire();
        CHECK(again.has_value());
    }
}

TEST_CASE("a list has what begins with its prefix, and no pattern counts") {
    const auto client = open_here("ttl=60s");
    const auto at = fresh("list");
    std::vector<hf::Lease> held;
    for (const char* end : {"/a%", "/a_", "/ab", "/A", "\\", "'"})
        held.push_back(hold(client, at + end));
    CHECK(client.list(at)->size() == 6);
    CHECK(client.list(at + "/a%")->size() == 1);
    CHECK(client.list(at + "/a_")->size() == 1);
    CHECK(client.list(at + "/a")->size() == 3);
    CHECK(client.list(at + "\\")->size() == 1);
    CHECK(client.list(at + "'")->size() == 1);
}

TEST_CASE("rows of others: another kind is refused, a person's is a holder") {
    const auto name = fresh("foreign");
    const auto client = open_here();
    hold(client, fresh("warm")).release();
    SECTION("another kind") {
        server().sql("INSERT INTO holdfast_lease (name, meta) VALUES ('" + name + "', 'x')");
        CHECK_THAT(refused(client, name, errc::kind_mismatch), ContainsSubstring("another kind"));
        CHECK(client.break_lock(name).error() == errc::kind_mismatch);
        CHECK(row("meta", name) == "x");
    }
    SECTION("one that never ends") {
        server().sql("INSERT INTO holdfast_lease (name, owner, expires) VALUES ('" + name +
                     "', 'somebody', 9223372036854775807)");
        (void)refused(client, name, errc::contended);
        const auto seen = client.inspect(name);
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].foreign);
        CHECK(client.break_lock(name, {.now = true}).has_value());
        CHECK(hold(client, name).valid());
    }
}

TEST_CASE("contended attempts write nothing, and waiters ask at a bounded rate") {
    const auto name = fresh("idle");
    auto lease = hold(open_here("ttl=60s"), name);
    const auto other = open_here("ttl=60s");
    const auto lock = lock_of(other, name);
    CHECK(lock->try_acquire().error() == errc::contended);
    const auto before = row("ver", name);
    for (int i = 0; i < 20; ++i)
        CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(row("ver", name) == before);
    // Ten waiters of one client: about a hundred a second, and a mark each second.
    const auto requests = other.stats().requests;
    std::vector<std::future<hf::error_code>> waiting;
    for (int i = 0; i < 10; ++i)
        waiting.push_back(std::async(std::launch::async, [&] {
            return lock_of(other, name)->acquire({.wait = 2s}).error();
        }));
    for (auto& one : waiting)
        CHECK(one.get() == errc::timed_out);
    CHECK(other.stats().requests - requests < 1000);
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("sweep: old rows of clean releases go, all others stay, and tokens still grow") {
    auto own = lab::MariadbServer::start();
    const auto client = open(own.url());
    hf::FencingToken last;
    for (const char* name : {"old-clean", "old-abandoned", "old-held", "young"}) {
        auto lease = hold(client, name);
        last = lease.fencing_token();
        lease.release(std::string(name) == "old-abandoned" ? hf::Outcome::abandoned
                                                           : hf::Outcome::done);
    }
    own.sql(
        "UPDATE holdfast_lease SET token = token - 90000000000, acquired = acquired - "
        "90000000000 WHERE name LIKE 'old%'");
    own.sql(
        "UPDATE holdfast_lease SET owner = 'somebody', expires = 9000000000000000 WHERE name "
        "= 'old-held'");
    own.sql("INSERT INTO holdfast_lease (name, meta) VALUES ('old-kind', 'semaphore')");
    Direct d(own.url());
    std::string cursor;
    my::sweep(*d.connection, boot_clock::now() + 5s, cursor);
    std::string left;
    for (const auto& r : own.sql("SELECT name FROM holdfast_lease ORDER BY name"))
        left += r[0] + " ";
    CHECK(left == "old-abandoned old-held old-kind young ");
    CHECK(hold(client, "old-clean").fencing_token() > last);
    // 2,500 rows take three looks.
    own.sql("INSERT INTO holdfast_lease (name) SELECT CONCAT('many/', seq) FROM seq_1_to_2500");
    for (int i = 0; i < 3; ++i)
        my::sweep(*d.connection, boot_clock::now() + 5s, cursor);
    CHECK(own.value("SELECT COUNT(*) FROM holdfast_lease WHERE name LIKE 'many%'") == "0");
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
    CHECK(client.list(prefix)->size() == n);
    CHECK(client.stats().requests - before < n);
    leases.clear();
    // By their releases, long before their ttl.
    lab::wait_until([&] { return client.list(prefix)->empty(); }, cap(10s), "all are free");
}

TEST_CASE("contended by many threads and clients of all kinds, nobody overlaps or is in error") {
    // Deadlocks are the server's to find, and ours to repeat.
    const auto prefix = fresh("crowd") + "/";
    std::atomic<int> inside[3]{}, overlaps{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const auto client = hf::Client::open(server().url() + "?ttl=30s").value();
            std::mt19937 random(static_cast<unsigned>(t));
            for (int i = 0; i < 20; ++i) {
                const auto n = random() % 3;
                const auto lock =
                    client.make_lock(prefix + std::to_string(n), {.kind = hf::Kind::shared_mutex})
                        .value();
                const bool reads = random() % 3 == 0;
                auto lease =
                    reads ? lock->acquire_shared({.wait = 60s}) : lock->acquire({.wait = 60s});
                if (!lease) {
                    ++wrong;
                    continue;
                }
                const int now = inside[n] += reads ? 1 : 1000;
                if (now > 1000 || (reads && now >= 1000)) ++overlaps;
                inside[n] -= reads ? 1 : 1000;
                if (lease->release() != ReleaseResult::released) ++wrong;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    CHECK(overlaps == 0);
}
