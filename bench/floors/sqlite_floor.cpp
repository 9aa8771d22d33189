#include "floors/sqlite_floor.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

[[noreturn]] void fail(sqlite3* db, const std::string& what) {
    throw SelfCheck("bare sqlite3: " + what + ": " + (db ? sqlite3_errmsg(db) : "no memory"));
}

}  // namespace

SqliteSetUp set_up_of(const std::filesystem::path& database) {
    sqlite3* db = nullptr;
    sqlite3_stmt* statement = nullptr;
    SqliteSetUp set_up;
    if (sqlite3_open(database.c_str(), &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &statement, nullptr) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        sqlite3_finalize(statement);
        sqlite3_close(db);
        throw SelfCheck("bare sqlite3: cannot read the journal mode of " + database.string());
    }
    set_up.journal_mode = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return set_up;
}

SqliteFloor::SqliteFloor(const std::filesystem::path& file, const SqliteSetUp& set_up) {
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open(file.c_str(), &raw);
    db_.reset(raw);
    if (opened != SQLITE_OK) fail(raw, "open");
    const std::string sql =
        "PRAGMA journal_mode=" + set_up.journal_mode +
        ";PRAGMA synchronous=" + std::to_string(set_up.synchronous) +
        ";CREATE TABLE IF NOT EXISTS floor(name TEXT PRIMARY KEY, owner TEXT, token INTEGER,"
        " expires INTEGER) WITHOUT ROWID;";
    if (sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(raw, "set up");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    take_ = prepare(
        "INSERT INTO floor VALUES('bench', ?1, ?2, ?2) ON CONFLICT(name) DO UPDATE"
        " SET owner=?1, token=?2, expires=?2 WHERE owner IS NULL");
    free_ = prepare("UPDATE floor SET owner=NULL WHERE name='bench' AND owner=?1");
}

SqliteFloor::Statement SqliteFloor::prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr) != SQLITE_OK)
        fail(db_.get(), sql);
    return Statement(statement);
}

void SqliteFloor::run(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) fail(db_.get(), sqlite3_sql(statement));
    sqlite3_reset(statement);
}

void SqliteFloor::change_one(sqlite3_stmt* statement) {
    run(begin_.get());
    run(statement);
    const int changed = sqlite3_changes(db_.get());
    run(commit_.get());
    if (changed != 1) throw SelfCheck("bare sqlite3: a statement changed no row");
}

void SqliteFloor::cycle() {
    const std::string owner = "bench-owner-" + std::to_string(++owner_);
    sqlite3_bind_text(take_.get(), 1, owner.data(), static_cast<int>(owner.size()),
                      SQLITE_TRANSIENT);
    sqlite3_bind_int64(take_.get(), 2, owner_);
    sqlite3_bind_text(free_.get(), 1, owner.data(), static_cast<int>(owner.size()),
                      SQLITE_TRANSIENT);
    change_one(take_.get());
    change_one(free_.get());
}

}  // namespace holdfast::bench
