// The README shows the statements of an acquire and a release; here they are taken from SQLite
// itself.
#include <mutex>

#include "fixture.hpp"
#include "readme.hpp"

namespace holdfast::sqlite::test {
namespace {

int record(unsigned, void* out, void* statement, void*) {
    auto& lines = *static_cast<std::vector<std::string>*>(out);
    lines.emplace_back(sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
    return 0;
}

TEST_CASE("an acquire and a release run the statements that the README shows") {
    const File file;
    Table t(file);
    const auto warm = t.grant("a", "one");
    REQUIRE(t.release("a", "one", warm.token) == ReleaseResult::released);
    std::vector<std::string> ran;
    sqlite3_trace_v2(t.connection.handle(), SQLITE_TRACE_STMT, record, &ran);
    const auto g = t.grant("a", "two");
    CHECK(ran == test_support::statements_of(SQLITE_README, "acquire"));
    ran.clear();
    CHECK(t.release("a", "two", g.token) == ReleaseResult::released);
    CHECK(ran == test_support::statements_of(SQLITE_README, "release"));
}

TEST_CASE("acquisitions at once share a transaction: a look and a row each") {
    const File file;
    auto client = Client::open(file.url).value();
    client.make_lock("warm").value()->acquire({.wait = 2s}).value().release();
    constexpr int many = 100;
    std::vector<std::unique_ptr<Lock>> locks;
    for (int i = 0; i < many; ++i)
        locks.push_back(client.make_lock("name " + std::to_string(i)).value());
    std::mutex mutex;
    std::vector<Lease> held;
    const auto count = [&] {
        const std::lock_guard hold(mutex);
        return held.size();
    };
    // Until all have asked nothing can be written, so that they fall together.
    auto foreign = std::make_unique<Writer>(file.path);
    const auto before = client.stats();
    for (const auto& lock : locks)
        lock->async_acquire({.wait = 5s}, [&](error_code ec, Lease lease) {
            const std::lock_guard hold(mutex);
            if (!ec) held.push_back(std::move(lease));
        });
    lab::wait_until([&] { return client.stats().attempts >= before.attempts + many; }, 10s,
                    "all have asked");
    foreign.reset();
    lab::wait_until([&] { return count() == many; }, 10s, "all are held");
    const auto each = static_cast<double>(client.stats().requests - before.requests) / many;
    INFO(each << " statements for each");
    // Each transaction has three more, and a look before it: two or three of them.
    CHECK(each < 2.5);
}

TEST_CASE("what durability rests on is really set") {
    const File file;
    Table t(file);
    t.grant("a", "one");
    const auto answer = [&](const char* pragma) {
        sqlite3_stmt* s = nullptr;
        sqlite3_prepare_v2(t.connection.handle(), pragma, -1, &s, nullptr);
        sqlite3_step(s);
        const std::string text = reinterpret_cast<const char*>(sqlite3_column_text(s, 0));
        sqlite3_finalize(s);
        return text;
    };
    CHECK(answer("PRAGMA journal_mode") == "wal");
    CHECK(answer("PRAGMA synchronous") == "2");
    auto database = file.database();
    database->extra = true;
    Connection extra(database);
    CHECK_FALSE(extra.open(boot_clock::now() + 2s));
}

}  // namespace
}  // namespace holdfast::sqlite::test
