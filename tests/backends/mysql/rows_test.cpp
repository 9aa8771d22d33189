// What the rows say, and what late and repeated statements do to them.
#include <future>
#include <random>
#include <vector>

#include "../sql/direct.hpp"

using namespace mysql_tests;

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
        Foreign other(server(), lock_row(name));
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
        CHECK(holders_of(client, names[i]) == 1);
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
    CHECK(client.list(at).value().size() == 6);
    CHECK(client.list(at + "/a%").value().size() == 1);
    CHECK(client.list(at + "/a_").value().size() == 1);
    CHECK(client.list(at + "/a").value().size() == 3);
    CHECK(client.list(at + "\\").value().size() == 1);
    CHECK(client.list(at + "'").value().size() == 1);
}

TEST_CASE("waiters ask at a bounded rate") {
    const auto name = fresh("idle");
    auto lease = hold(open_here("ttl=60s"), name);
    const auto other = open_here("ttl=60s");
    CHECK(lock_of(other, name)->try_acquire().error() == errc::contended);
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
