// The README says exactly what is sent; here the server's own log is compared with it.
#include <algorithm>
#include <cctype>

#include "../sql/rig.hpp"
#include "readme.hpp"
#include "waiter.hpp"

using namespace mysql_tests;

namespace {

/// What the server did for us since the last look: 'Query', 'Prepare' or 'Execute'.
std::vector<std::string> done(const lab::MariadbServer& s, const std::string& command) {
    std::vector<std::string> out;
    for (const auto& row : s.sql("SELECT argument FROM mysql.general_log WHERE command_type = '" +
                                 command + "' AND user_host LIKE 'holdfast%' ORDER BY event_time"))
        out.push_back(row[0]);
    return out;
}

long status(const lab::MariadbServer& s, const std::string& name) {
    return std::stol(s.sql("SHOW GLOBAL STATUS LIKE '" + name + "'").at(0).at(1));
}

/// Behind the number or text in quotes that begins at `at`; npos: there is none.
std::size_t behind_value(const std::string& sql, std::size_t at) {
    if (at < sql.size() && sql[at] == '\'') {
        const auto end = sql.find('\'', at + 1);
        return end == sql.npos ? end : end + 1;
    }
    auto end = at;
    while (end < sql.size() && std::isdigit(static_cast<unsigned char>(sql[end])) != 0)
        ++end;
    return end == at ? sql.npos : end;
}

/// Whether it is the statement, with a value in the place of each question mark.
bool is(const std::string& sql, const std::string& statement) {
    std::size_t at = 0;
    for (const char c : statement) {
        if (at == sql.npos || (c != '?' && (at >= sql.size() || sql[at] != c))) return false;
        at = c == '?' ? behind_value(sql, at) : at + 1;
    }
    return at == sql.size();
}

}  // namespace

TEST_CASE("requests: one acquire and release, exactly as the README has it") {
    const auto server = lab::MariadbServer::start();
    server.sql("SET GLOBAL log_output = 'TABLE', general_log = 1");
    auto expected = test_support::statements_of(MYSQL_README, "acquire");
    for (const auto& more : test_support::statements_of(MYSQL_README, "release"))
        expected.push_back(more);
    REQUIRE(expected.size() == 2);
    for (const bool by_lane : {true, false}) {
        INFO((by_lane ? "by lane" : "by the engine"));
        const auto client = open(server.url());
        const auto lock = lock_of(client, "N");
        const auto sent = [&](const char* command) {
            const auto before = client.stats().requests;
            server.sql("TRUNCATE TABLE mysql.general_log");
            cycle(*lock, by_lane);
            const auto requests = client.stats().requests - before;
            // The clean-up, which is left to chance, may fall into it.
            auto swept = done(server, "Query");
            std::erase_if(swept, [](const std::string& sql) {
                return !sql.starts_with("DELETE") && sql.find("window_of_rows") == sql.npos;
            });
            CHECK(requests - swept.size() == 2);
            auto seen = done(server, command);
            std::erase_if(seen, [&](const std::string& sql) {
                return std::find(swept.begin(), swept.end(), sql) != swept.end();
            });
            REQUIRE(seen.size() == 2);
            for (std::size_t i = 0; i < 2; ++i) {
                INFO(seen[i]);
                CHECK(is(seen[i], expected[i]));
                CHECK_FALSE(is(seen[i], expected[1 - i]));
            }
        };
        cycle(*lock, by_lane);  // connects, and makes the table and the row
        sent("Execute");
        CHECK(done(server, "Prepare") == expected);
        sent("Execute");
        CHECK(done(server, "Prepare").empty());
    }
}

TEST_CASE("requests: a session prepares three statements, and does without them") {
    const auto server = lab::MariadbServer::start();
    const auto cycles = [](const hf::Client& client) {
        for (int i = 0; i < 4; ++i) {
            auto lease = hold(client, "N");
            CHECK(lease.renew().has_value());
            CHECK(lease.release() == ReleaseResult::released);
        }
    };
    {
        const auto client = open(server.url());
        cycles(client);
        CHECK(status(server, "Prepared_stmt_count") == 3);
        // It prepares them again by itself.
        server.sql("ALTER TABLE holdfast_lease MODIFY gone LONGBLOB");
        cycles(client);
        server.sql("DROP TABLE holdfast_lease");
        cycles(client);
        CHECK(status(server, "Prepared_stmt_count") == 3);
    }
    CHECK(lab::reached([&] { return status(server, "Prepared_stmt_count") == 0; }, cap(5s)));
    server.sql("SET GLOBAL max_prepared_stmt_count = 0");
    cycles(open(server.url()));
}

TEST_CASE("requests: several at once are one transaction, and one that is busy writes nothing") {
    const auto server = lab::MariadbServer::start();
    const auto client = open(server.url(), "ttl=60s");
    constexpr int n = 50;
    const auto hold_all = [&] {
        std::vector<std::unique_ptr<hf::Lock>> locks;
        std::vector<test_support::Waiter> waiters;
        std::vector<hf::Lease> leases;
        for (int i = 0; i < n; ++i) {
            locks.push_back(lock_of(client, "N" + std::to_string(i)));
            waiters.emplace_back(*locks.back(), hf::AcquireOptions{});
        }
        for (auto& one : waiters)
            leases.push_back(one.lease());
        return leases;
    };
    for (auto& lease : hold_all())  // makes the rows
        lease.release();
    const auto before = client.stats().requests;
    auto leases = hold_all();
    CHECK(client.stats().requests - before < n / 2);
    // Their texts are short: the session knows the statements by name.
    CHECK(status(server, "Com_execute_sql") >= n / 2);
    CHECK(status(server, "Prepared_stmt_count") <= 2 * 6);
    const auto busy_from = status(server, "Handler_update");
    for (int i = 0; i < n; ++i)
        CHECK(lock_of(client, "N" + std::to_string(i))->try_acquire().error() == errc::contended);
    CHECK(status(server, "Handler_update") == busy_from);
    for (auto& lease : leases)
        CHECK(lease.release() == ReleaseResult::released);
    // It does without as well.
    server.sql("SET GLOBAL max_prepared_stmt_count = 0; KILL USER holdfast");
    lab::wait_until([&] { return status(server, "Prepared_stmt_count") == 0; }, cap(5s), "gone");
    const auto by_name = status(server, "Com_execute_sql");
    for (int i = 0; i < 3; ++i)
        for (auto& lease : hold_all())
            CHECK(lease.release() == ReleaseResult::released);
    CHECK(status(server, "Com_execute_sql") == by_name);
}
