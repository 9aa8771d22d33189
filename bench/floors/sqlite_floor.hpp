// The raw floor for SQLite: one transaction that takes a row and one that frees it, prepared once.
#pragma once
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::bench {

/// How a database file is written, as the other user of the folder has set it up.
struct SqliteSetUp {
    std::string journal_mode = "delete";
    int synchronous = 2;  ///< FULL
};

/// The journal mode that a database file carries. Errors: SelfCheck.
SqliteSetUp set_up_of(const std::filesystem::path& database);

class SqliteFloor {
public:
    /// Makes its own database file. Errors: SelfCheck.
    SqliteFloor(const std::filesystem::path& file, const SqliteSetUp&);
    /// BEGIN IMMEDIATE, upsert, COMMIT; BEGIN IMMEDIATE, update, COMMIT. Errors: SelfCheck unless
    /// each of both changed one row.
    void cycle();

private:
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close(db); }
        void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
    };
    using Statement = std::unique_ptr<sqlite3_stmt, Close>;
    Statement prepare(const char* sql);
    void run(sqlite3_stmt*);
    void change_one(sqlite3_stmt*);

    std::unique_ptr<sqlite3, Close> db_;
    Statement begin_, commit_, take_, free_;
    long long owner_ = 0;
};

}  // namespace holdfast::bench
