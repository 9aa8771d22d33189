// The README says exactly what is sent; here the server's own log is compared with it. And the
// position of its write-ahead log says which commits were synced to the disk.
#include <libpq-fe.h>

#include <algorithm>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <sstream>

#include "../sql/rig.hpp"
#include "readme.hpp"
#include "statements.hpp"

using namespace postgresql_tests;

namespace {

/// What the server executed since `from` bytes of its log.
std::vector<std::string> executed(const lab::PostgresServer& s, std::size_t from) {
    std::vector<std::string> out;
    std::stringstream lines(s.log().substr(from));
    for (std::string line; std::getline(lines, line);)
        for (const std::string before : {"execute holdfast_", "execute <unnamed>"})
            if (const auto at = line.find(before); at != line.npos)
                out.push_back(line.substr(line.find(": ", at) + 2));
    return out;
}

}  // namespace

TEST_CASE("requests: one acquire and release, exactly as the README has it") {
    const auto server = lab::PostgresServer::start({.config = {"log_statement = 'all'"}});
    auto expected = test_support::statements_of(POSTGRESQL_README, "acquire");
    for (const auto& more : test_support::statements_of(POSTGRESQL_README, "release"))
        expected.push_back(more);
    for (const bool by_lane : {true, false}) {
        INFO((by_lane ? "by lane" : "by the engine"));
        const auto client = open(server.url());
        const auto lock = lock_of(client, "N");
        cycle(*lock, by_lane);  // connects, and makes the table and the row
        const auto before = client.stats().requests;
        const auto from = server.log().size();
        cycle(*lock, by_lane);
        const auto requests = client.stats().requests - before;
        lab::wait_until([&] { return executed(server, from).size() >= requests; }, 5s,
                        "the server's log");
        // The clean-up, which is left to chance, may fall into it.
        auto seen = executed(server, from);
        const auto swept = std::erase_if(
            seen, [](const std::string& sql) { return sql.find("DELETE FROM") != sql.npos; });
        CHECK(seen == expected);
        CHECK(requests - swept == 2);
    }
}

TEST_CASE("requests: a lock that had to wait once takes the short way again") {
    const auto server = lab::PostgresServer::start(
        {.config = {"log_statement = 'all'", "log_line_prefix = 'by %p: '"}});
    const auto client = open(server.url()), other = open(server.url());
    const auto lock = lock_of(client, "N");
    // The server's process that ran the last grant: one for each connection.
    const auto cycle = [&] {
        const auto from = server.log().size();
        hold(*lock).release();
        std::string by;
        lab::wait_until(
            [&] {
                std::stringstream lines(server.log().substr(from));
                for (std::string line; std::getline(lines, line);)
                    if (line.find("FOR UPDATE SKIP LOCKED) UPDATE") != line.npos)
                        by = line.substr(0, line.find(':'));
                return !by.empty();
            },
            5s, "the grant in the server's log");
        return by;
    };
    cycle();
    const auto by_lane = cycle();
    REQUIRE(by_lane.starts_with("by "));
    auto theirs = hold(other, "N");
    auto waiting = std::async(std::launch::async, [&] { return lock->acquire({.wait = 30s}); });
    lab::wait_until(
        [&] { return server.value("SELECT line IS NOT NULL FROM holdfast_lease") == "t"; }, 10s,
        "it waits");
    theirs.release();
    auto mine = waiting.get();
    REQUIRE(mine.has_value());
    mine->release();
    cycle();
    CHECK(cycle() == by_lane);
}

TEST_CASE("requests: a hand-off is two, once a client knows that others wait") {
    const auto server = lab::PostgresServer::start({.config = {"log_statement = 'all'"}});
    const auto url = server.url();
    constexpr const char* patient = "ttl=60s&request_timeout=20s";
    const std::vector<hf::Client> clients{open(url, patient), open(url, patient),
                                          open(url, patient), open(url, patient)};
    const holdfast::postgresql::Statements statements("public");
    using holdfast::postgresql::Sql;
    // Without those by which waiters look, and keep their places in line, and the sweep that may
    // follow a release.
    const auto seen = [&](std::size_t from) {
        auto all = executed(server, from);
        std::erase_if(all, [&](const std::string& sql) {
            return sql == statements.text(Sql::read) || sql == statements.text(Sql::stand) ||
                   sql == statements.text(Sql::sweep);
        });
        return all;
    };
    std::optional<hf::Lease> lease = hold(clients[0], "N");
    std::deque<std::future<hf::result<hf::Lease>>> waiting;
    for (std::size_t i = 1; i < clients.size(); ++i) {
        waiting.push_back(std::async(std::launch::async, [&, i] {
            return lock_of(clients[i], "N")->acquire({.wait = 60s});
        }));
        lab::wait_until(
            [&] {
                return server.value(
                           "SELECT (SELECT count(*) FROM jsonb_object_keys(line)) "
                           "FROM holdfast_lease") == std::to_string(i);
            },
            cap(10s), "it stands in line");
    }
    const auto hand_off = [&] {
        const auto from = server.log().size();
        CHECK(lease->release() == ReleaseResult::released);
        auto next = waiting.front().get();
        waiting.pop_front();
        REQUIRE(next.has_value());
        lease = std::move(*next);
        const auto& grant = statements.text(Sql::grant);
        lab::wait_until(
            [&] {
                const auto all = seen(from);
                return std::find(all.begin(), all.end(), grant) != all.end();
            },
            cap(5s), "the server's log");
        return seen(from);
    };
    const auto &release = statements.text(Sql::release), &tell = statements.text(Sql::tell),
               &hand_on = statements.text(Sql::hand_on), &grant = statements.text(Sql::grant);
    // They came after its grant.
    CHECK(hand_off() == std::vector{release, tell, grant});
    // The grant has told that others wait.
    CHECK(hand_off() == std::vector{hand_on, grant});
    CHECK(hand_off() == std::vector{hand_on, grant});
    const auto from = server.log().size();
    lease->release();
    lab::wait_until([&] { return !seen(from).empty(); }, cap(5s), "the server's log");
    CHECK(seen(from) == std::vector{release});
}

TEST_CASE("requests: the only holder of permits releases them and notifies all in one") {
    const auto server = lab::PostgresServer::start({.config = {"log_statement = 'all'"}});
    constexpr const char* patient = "ttl=60s&request_timeout=20s";
    const auto holder = open(server.url(), patient), other = open(server.url(), patient);
    const holdfast::postgresql::Statements statements("public");
    using holdfast::postgresql::Sql;
    const hf::LockOptions one{.kind = hf::Kind::semaphore, .limit = 1};
    int alone = 0;
    // One that has waited for a second leaves a mark: the row is read and written then.
    for (int round = 0; round < 20 && alone < 3; ++round) {
        auto lease = hold(*lock_of(holder, "P", one));
        auto waiting = std::async(std::launch::async,
                                  [&] { return lock_of(other, "P", one)->acquire({.wait = 60s}); });
        lab::wait_until(
            [&] { return server.value("SELECT line IS NOT NULL FROM holdfast_lease") == "t"; },
            cap(10s), "it stands in line");
        const auto from = server.log().size();
        CHECK(lease.release() == ReleaseResult::released);
        auto next = waiting.get();
        REQUIRE(next.has_value());
        next->release();
        auto all = executed(server, from);
        std::erase(all, statements.text(Sql::stand));
        REQUIRE(all.size() >= 2);
        if (all[0] != statements.text(Sql::release_alone)) continue;
        ++alone;
        CHECK(all[1] != statements.text(Sql::tell_all));
    }
    CHECK(alone > 0);
}

TEST_CASE("durability: a grant and a renewal are synced whatever is configured, a release is not") {
    lab::PostgresOptions options;
    options.fsync = true;
    // Nothing else may write meanwhile.
    options.config = {"autovacuum = off", "wal_writer_delay = '10s'", "bgwriter_delay = '10s'",
                      "checkpoint_timeout = '1h'"};
    const auto server = lab::PostgresServer::start(options);
    server.sql("ALTER ROLE holdfast SET synchronous_commit = off");
    const auto client = open(server.url(), "ttl=1h");
    const auto lock = lock_of(client, "N");
    hold(*lock).release();
    const auto position = [&] { return server.value("SELECT pg_current_wal_insert_lsn()"); };
    const auto synced_beyond = [&](const std::string& lsn) {
        return server.value("SELECT pg_current_wal_flush_lsn() > '" + lsn + "'") == "t";
    };
    int later = 0;
    for (int i = 0; i < 8; ++i) {
        auto before = position();
        auto lease = hold(*lock);
        CHECK(synced_beyond(before));
        before = position();
        CHECK(lease.renew().has_value());
        CHECK(synced_beyond(before));
        before = position();
        CHECK(lease.release() == ReleaseResult::released);
        later += synced_beyond(before) ? 0 : 1;
    }
    CHECK(later >= 6);  // once in ten seconds the server syncs by itself
}

TEST_CASE("waiting costs one small write in seconds") {
    const auto name = fresh("idle");
    auto lease = hold(open_here("ttl=60s"), name);
    const auto before = row(dialect::version, name);
    CHECK(lock_of(open_here(), name)->acquire({.wait = 1500ms}).error() == errc::timed_out);
    CHECK(row(dialect::version, name) != before);  // somebody waits: the release shall tell
    lease.release();
}

TEST_CASE("a release is told by NOTIFY, long before anybody would look") {
    const auto name = fresh("told");
    const auto holder = open_here("ttl=60s");
    const auto waiter = open_here("ttl=60s");
    hold(waiter, name).release();
    std::vector<long long> late;
    for (int i = 0; i < 7; ++i) {
        auto lease = hold(holder, name);
        boot_clock::time_point granted;
        const auto looks = waiter.stats().requests;
        auto got = std::async(std::launch::async, [&] {
            auto l = lock_of(waiter, name)->acquire({.wait = 30s});
            granted = boot_clock::now();
            return l;
        });
        lab::wait_until([&] { return waiter.stats().requests >= looks + 2; }, 5s, "it has looked");
        lab::wait_until(
            [&] {
                return server().value(
                           "SELECT line IS NOT NULL FROM holdfast_lease "
                           "WHERE name = '" +
                           name + "'") == "t";
            },
            5s, "it said so");
        const auto released = boot_clock::now();
        CHECK(lease.release() == ReleaseResult::released);
        auto next = got.get();
        REQUIRE(next.has_value());
        late.push_back(std::chrono::duration_cast<hf::milliseconds>(granted - released).count());
        next->release();
    }
    std::sort(late.begin(), late.end());
    INFO("the middle one took " << late[3] << " ms");
    CHECK(late[3] < 150);  // a look alone would come 500 ms later on average
}

TEST_CASE("the server takes each statement, and says the columns that its answers are held to") {
    const auto url = server().url();
    hold(open_here(), fresh("table")).release();
    const std::unique_ptr<PGconn, decltype(&PQfinish)> c(PQconnectdb(url.c_str()), &PQfinish);
    REQUIRE(PQstatus(c.get()) == CONNECTION_OK);
    using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;
    const holdfast::postgresql::Statements statements({});
    for (std::size_t i = 0; i < static_cast<std::size_t>(holdfast::postgresql::Sql::count_); ++i) {
        const auto sql = static_cast<holdfast::postgresql::Sql>(i);
        const char* const name = statements.name(sql).c_str();
        INFO(statements.text(sql));
        const Result prepared(PQprepare(c.get(), name, statements.text(sql).c_str(), 0, nullptr),
                              &PQclear);
        INFO(PQerrorMessage(c.get()));
        REQUIRE(PQresultStatus(prepared.get()) == PGRES_COMMAND_OK);
        const Result described(PQdescribePrepared(c.get(), name), &PQclear);
        CHECK(PQnfields(described.get()) == holdfast::postgresql::Statements::columns(sql));
    }
}
