// Kinds of locks in a row: what a mutex sees of them, that the row is written only as it was read,
// whoever is faster, and what it costs.
#include <array>
#include <atomic>
#include <future>
#include <random>

#include "../sql/direct.hpp"

using namespace postgresql_tests;

namespace {

const hf::LockOptions shared_mutex{.kind = hf::Kind::shared_mutex};

pg::Step reads(const Direct& d, const std::string& name, char letter) {
    auto s = d.step(pg::Step::Kind::attempt, name, owner(letter));
    s.units = reader;
    return s;
}

/// What a reader would write into the row as it is now.
struct Prepared {
    Prepared(Direct& d, const std::string& name, char letter) {
        CHECK_FALSE(pg::read(*d.connection, {name}, boot_clock::now() + 5s, rows).failed);
        const pg::TableRow& found = rows[name];
        auto state = found.state();
        REQUIRE(state.has_value());
        auto s = reads(d, name, letter);
        s.run(*state);
        REQUIRE(granted(s));
        change = {name, &found, holdfast::sql::columns_of(*state, found.columns),
                  boot_clock::now() + 5s, true};
    }
    bool write(Direct& d, hf::error_code& why) const {
        std::map<std::string, bool, std::less<>> done;
        why = pg::Table(*d.connection).write({change}, done, 100ms).failed.why;
        return !done.empty();
    }
    pg::TableRows rows;
    pg::Change change;
};

}  // namespace

TEST_CASE("kinds: what another one is about to commit is waited for, and counts") {
    // PostgreSQL's trap: a statement that waits for a row's lock goes on with a snapshot from
    // before.
    const auto name = fresh("snapshot");
    Direct d(server().url()), other(server().url());
    auto warm = reads(d, name, 'W');
    REQUIRE(granted(d.run(warm)));
    for (int i = 0; i < 20; ++i) {
        const Prepared late(d, name, static_cast<char>('A' + i));
        const auto soon = boot_clock::now() + 10s;
        REQUIRE_FALSE(other.connection
                          ->run_text("BEGIN; UPDATE holdfast_lease SET token = token + 1 WHERE "
                                     "name = '" +
                                         name + "'",
                                     soon)
                          .failed);
        hf::error_code why;
        auto written = std::async(std::launch::async, [&] { return late.write(d, why); });
        lab::wait_until(
            [&] {
                return written.wait_for(0s) == std::future_status::ready ||
                       server().value("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0";
            },
            10s, "it waits for the row");
        REQUIRE_FALSE(other.connection->run_text("COMMIT", soon).failed);
        CHECK_FALSE(written.get());
        if (!why) return;  // it was not the time that ended it
    }
    FAIL("it never waited");
}

TEST_CASE("kinds: a mark that others were ahead of is none, and is tried again soon") {
    const auto name = fresh("first-mark");
    Direct holder(server().url()), d(server().url());
    auto holds = holder.step(pg::Step::Kind::attempt, name, owner('H'));
    REQUIRE(granted(holder.run(holds)));
    const auto attempt = [&](char letter) {
        auto s = reads(d, name, letter);
        s.queue = true;
        s.came = boot_clock::now() - 2s;
        return d.run(s);
    };
    CHECK(attempt('A').marked);
    CHECK(row("meta LIKE '%" + owner('A') + "%'", name) == "t");
    // Each write finds the row as one that has changed: it does nothing.
    struct Ahead {
        explicit Ahead(const std::string& name) {
            server().sql(
                "CREATE FUNCTION ahead() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; "
                "END'");
            server().sql(
                "CREATE TRIGGER ahead BEFORE UPDATE ON holdfast_lease FOR EACH ROW "
                "WHEN (OLD.name = '" +
                name + "') EXECUTE FUNCTION ahead()");
        }
        ~Ahead() { server().sql("DROP FUNCTION ahead CASCADE"); }
    };
    const auto missed = [&] {
        const Ahead others(name);
        return attempt('B');
    }();
    const auto* busy = std::get_if<hf::spi::Attempt::Busy>(&missed.outcome);
    REQUIRE(busy != nullptr);
    CHECK_FALSE(missed.marked);
    CHECK(missed.misses > 1);  // at once, before it waits
    CHECK(busy->polling);
    CHECK(row("meta LIKE '%" + owner('B') + "%'", name) == "f");
}

TEST_CASE(
    "kinds: a reader that leaves while a request of its own is unanswered is not let in by it") {
    const auto name = fresh("kinds-late");
    Direct d(server().url());
    auto warm = reads(d, name, 'W');
    REQUIRE(granted(d.run(warm)));
    const Prepared late(d, name, 'L');
    auto leave = d.step(pg::Step::Kind::withdraw, name, owner('L'));
    leave.units = reader;
    leave.ghost = d.shared->server_us(boot_clock::now() + 5s);
    d.run(leave);
    CHECK_FALSE(leave.error);
    hf::error_code why;
    CHECK_FALSE(late.write(d, why));
    // And what had got in is out.
    auto second = reads(d, name, 'S');
    REQUIRE(granted(d.run(second)));
    leave = d.step(pg::Step::Kind::withdraw, name, owner('S'));
    leave.units = reader;
    d.run(leave);
    CHECK(leave.freed);
    CHECK(row("meta NOT LIKE '%" + owner('S') + "%'", name) == "t");
}

TEST_CASE("kinds: a late statement for a free row takes nothing") {
    const auto name = fresh("kinds-late-alone");
    Direct d(server().url());
    auto warm = reads(d, name, 'W');
    REQUIRE(granted(d.run(warm)));
    auto leave = d.step(pg::Step::Kind::withdraw, name, owner('W'));
    leave.units = reader;
    d.run(leave);
    const auto grants = [&](char letter, boot_clock::time_point deadline) {
        return d.connection
            ->run(pg::Sql::grant_free,
                  {name, owner(letter), "10000000", std::to_string(d.shared->server_us(deadline)),
                   "1", std::to_string(hf::spi::Units::all), "t"},
                  boot_clock::now() + 5s)
            .rows.size();
    };
    leave.owner = owner('L');
    leave.ghost = d.shared->server_us(boot_clock::now() + 5s);
    leave.done = false;
    d.run(leave);
    CHECK(grants('L', boot_clock::now() + 5s) == 0);
    CHECK(grants('M', boot_clock::now() - 1s) == 0);
    CHECK(row("owner IS NULL", name) == "t");
    CHECK(grants('M', boot_clock::now() + 5s) == 1);
}

TEST_CASE("kinds: after its deadline a request writes nothing") {
    const auto name = fresh("kinds-deadline");
    Direct d(server().url());
    auto warm = reads(d, name, 'W');
    REQUIRE(granted(d.run(warm)));
    Prepared late(d, name, 'L');
    late.change.deadline = boot_clock::now() + 5s;
    // As the server sees it.
    d.shared->heard_clock(d.shared->server_us(boot_clock::now()) - 60'000'000);
    hf::error_code why;
    CHECK_FALSE(late.write(d, why));
    CHECK_FALSE(why);
}

TEST_CASE("kinds: behind a pooler, too, readers are beside each other, and permits are counted") {
    auto own = lab::PostgresServer::start();
    const lab::PgBouncer pooler(own);
    const auto one = open(pooler.url(), "ttl=3s"), two = open(own.url(), "ttl=3s");
    auto a = lock_of(one, "N", shared_mutex)->acquire_shared().value(),
         b = lock_of(two, "N", shared_mutex)->acquire_shared().value();
    CHECK(a.renew().has_value());
    CHECK(lock_of(one, "N")->try_acquire().error() == errc::contended);
    CHECK(b.release() == ReleaseResult::released);
    CHECK(a.release() == ReleaseResult::released);
    auto w = hold(one, "N");
    CHECK(w.downgrade().has_value());
    auto c = lock_of(two, "N", shared_mutex)->acquire_shared();
    REQUIRE(c.has_value());
    CHECK(w.release() == ReleaseResult::released);
    CHECK(c->release() == ReleaseResult::released);
    const hf::LockOptions three{.kind = hf::Kind::semaphore, .limit = 3};
    auto p = lock_of(one, "N", three)->acquire({.permits = 2}).value();
    CHECK(lock_of(two, "N", three)->acquire({.wait = 0ms, .permits = 2}).error() ==
          errc::contended);
    CHECK(lock_of(two, "N")->try_acquire().error() == errc::kind_mismatch);
    CHECK(p.release() == ReleaseResult::released);
}

TEST_CASE("kinds: batches of several clients over the same names neither overlap nor deadlock") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    const auto prefix = fresh("kinds-crossing") + "/";
    constexpr int alone = 1000, rounds = 300;
    std::atomic<int> done{0}, failed{0}, overlaps{0};
    std::array<std::atomic<int>, 6> inside{};
    std::vector<hf::Client> clients;
    for (int c = 0; c < 3; ++c)
        clients.push_back(open_here("ttl=6s"));
    const auto deadlocks = [] {
        return server().value("SELECT deadlocks FROM pg_stat_database WHERE datname = 'holdfast'");
    };
    const auto before = deadlocks();
    std::mt19937 random(seed);
    for (int i = 0; i < rounds; ++i) {
        const auto which = random() % inside.size();
        const bool reads = random() % 2 == 0;
        const int units = reads ? 1 : alone;
        const auto& kind = reads || random() % 2 == 0 ? shared_mutex : hf::LockOptions();
        lock_of(clients[random() % clients.size()], prefix + std::to_string(which), kind)
            ->async_acquire({.wait = 60s, .mode = reads ? hf::Mode::shared : hf::Mode::exclusive},
                            [&, which, units](hf::error_code ec, hf::Lease lease) {
                                if (ec) ++failed;
                                if ((inside[which] += units) > alone) ++overlaps;
                                inside[which] -= units;
                                lease.async_release(hf::Outcome::done,
                                                    [&](hf::error_code, ReleaseResult) { ++done; });
                            });
    }
    lab::wait_until([&] { return done == rounds; }, cap(60s), "all had their turn");
    CHECK(failed == 0);
    CHECK(overlaps == 0);
    CHECK(deadlocks() == before);
}

TEST_CASE("kinds: a connection that is cut leaves nothing of a reader, nor of a downgrade") {
    lab::Proxy proxy(server().port());
    const auto url =
        "postgresql://holdfast@127.0.0.1:" + std::to_string(proxy.port()) + "/holdfast";
    const auto name = fresh("kinds-cut");
    const auto client = open(url, "ttl=60s&request_timeout=1s"), other = open_here();
    const auto lock = lock_of(client, name, shared_mutex);
    lock->acquire_shared()->release();
    for (const auto direction : {lab::Direction::to_client, lab::Direction::to_server})
        for (std::uint64_t bytes = 0; bytes < 2400; bytes += 170) {
            INFO("after " << bytes << " bytes, " << (direction == lab::Direction::to_client));
            const auto cut = proxy.counters().connections_cut;
            proxy.cut_after(direction, bytes);
            const bool reads = bytes / 170 % 2 == 0;
            if (auto lease = reads ? lock->try_acquire_shared() : lock->try_acquire()) {
                if (!reads) (void)lease->downgrade();
                CHECK(lease->mode() == hf::Mode::shared);
                (void)lease->renew();
                CHECK(lease->valid());
                (void)lease->release();
            }
            const bool was_cut = proxy.counters().connections_cut > cut;
            proxy.heal();
            // Far sooner than the ttl.
            auto writer = hold(other, name, 20s);
            CHECK(writer.release() == ReleaseResult::released);
            CHECK((was_cut || bytes > 1000));
        }
    require_free(name);
    CHECK(row("meta IS NULL", name) == "t");
}

TEST_CASE("kinds: requests of a reader's cycle, and of a mutex's before and after") {
    const auto name = fresh("kinds-cost");
    const auto client = open_here();
    const auto lock = lock_of(client, name, shared_mutex), mutex = lock_of(client, name);
    const auto cost = [&](auto&& what) {
        const auto before = client.stats().requests;
        what();
        return client.stats().requests - before;
    };
    const auto mutex_cycle = [&] { hold(*mutex).release(); };
    const auto read_cycle = [&] {
        auto lease = lock->acquire_shared();
        REQUIRE(lease.has_value());
        CHECK(lease->renew().has_value());
        CHECK(lease->release() == ReleaseResult::released);
    };
    mutex_cycle();
    read_cycle();
    // The clean-up, which is left to chance, may fall into one of them.
    const auto least = [&](auto&& what) {
        auto lowest = cost(what);
        for (int i = 0; i < 3; ++i)
            lowest = std::min(lowest, cost(what));
        return lowest;
    };
    CHECK(least(mutex_cycle) == 2);
    CHECK(least(read_cycle) == 4);  // granted by one, renewed by two, released by one
    CHECK(least(mutex_cycle) == 2);
}

TEST_CASE("kinds: of many readers and writers in many clients each has its turns") {
    // Whoever waits stands before others by its mark, so each hand-over has to reach that one.
    const auto own = lab::PostgresServer::start({.config = {"max_connections = 300"}});
    constexpr std::size_t clients = 8, callers = 8;
    constexpr int turns = 3;
    std::vector<hf::Client> all;
    for (std::size_t i = 0; i < clients; ++i)
        all.push_back(open(own.url()));
    std::array<std::atomic<int>, clients * callers> had{};
    std::atomic<bool> over{false};
    std::vector<std::future<void>> threads;
    for (std::size_t i = 0; i < had.size(); ++i)
        threads.push_back(std::async(std::launch::async, [&, i] {
            const auto lock = lock_of(all[i % clients], "many", shared_mutex);
            const auto mode = i / clients % 2 == 0 ? hf::Mode::shared : hf::Mode::exclusive;
            while (!over)
                if (auto lease = lock->acquire({.wait = 20s, .mode = mode})) ++had[i];
        }));
    const bool each = lab::reached(
        [&] { return std::all_of(had.begin(), had.end(), [](int n) { return n >= turns; }); },
        cap(30s));
    over = true;
    for (auto& one : threads)
        one.get();
    INFO("turns of all: " << std::accumulate(had.begin(), had.end(), 0));
    CHECK(each);
}

TEST_CASE("rows that somebody else has locked cost the leases of other rows nothing") {
    using Step = pg::Step;
    Direct d(server().url()), application(server().url());
    const std::pair<const char*, hf::spi::Units> kinds[] = {
        {"mutexes", {}}, {"readers", reader}, {"permits", {1, 3, hf::Mode::exclusive}}};
    for (const auto& [what, units] : kinds) {
        INFO(what);
        const auto space = fresh("locked-rows");
        constexpr int n = 60, locked = 40;  // more than anybody has the time to wait for
        std::vector<Step> steps;
        for (int i = 0; i < n; ++i) {
            steps.push_back(
                d.step(Step::Kind::attempt, space + "/" + std::to_string(100 + i), owner('A')));
            steps.back().units = units;
        }
        const auto run = [&](Step::Kind kind) {
            std::vector<Step*> all;
            for (Step& s : steps) {
                const auto* granted = std::get_if<hf::spi::Attempt::Granted>(&s.outcome);
                if (granted != nullptr) s.token = static_cast<std::int64_t>(granted->token.value);
                s.kind = kind;
                s.done = false;
                s.error = {};
                s.renewal = hf::spi::Held::Renewal::unknown;
                s.released = ReleaseResult::unreachable;
                s.deadline = boot_clock::now() + 5s;
                all.push_back(&s);
            }
            pg::run_steps(*d.connection, all);
        };
        run(Step::Kind::attempt);
        for (const Step& s : steps)
            REQUIRE(granted(s));
        const auto soon = boot_clock::now() + 20s;
        REQUIRE_FALSE(application.connection
                          ->run_text("BEGIN; SELECT 1 FROM holdfast_lease WHERE name LIKE '" +
                                         space + "/%' AND name < '" + space + "/" +
                                         std::to_string(100 + locked) + "' FOR UPDATE",
                                     soon)
                          .failed);
        run(Step::Kind::renew);
        for (int i = 0; i < n; ++i)
            CHECK((steps[static_cast<std::size_t>(i)].renewal == hf::spi::Held::Renewal::renewed) ==
                  (i >= locked));
        run(Step::Kind::release);
        for (int i = 0; i < n; ++i)
            CHECK(steps[static_cast<std::size_t>(i)].released ==
                  (i >= locked ? ReleaseResult::released : ReleaseResult::unreachable));
        REQUIRE_FALSE(application.connection->run_text("COMMIT", soon).failed);
        run(Step::Kind::release);
        for (const Step& s : steps)
            CHECK(s.released == (units.permits() && &s - steps.data() >= locked
                                     ? ReleaseResult::already_expired
                                     : ReleaseResult::released));
    }
}
