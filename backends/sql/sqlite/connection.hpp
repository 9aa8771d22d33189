// One SQLite connection with our pragmas, our tables and our statements: used by one thread at a
// time, opened on first use, opened again when the path leads to another file.
#pragma once
#include <sqlite3.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "local_file.hpp"
#include "statements.hpp"

namespace holdfast::sqlite {

/// What all connections of one client share.
struct Place {
    std::string path;  ///< absolute
    std::string name_prefix;
    bool extra = false;  ///< synchronous=EXTRA instead of FULL
    std::atomic<std::uint64_t> requests{0};
    std::atomic<bool> closing{false};  ///< ends every wait for the write lock
};

/// A cached statement for one use: bound from the left, reset at the end.
class Query {
public:
    explicit Query(sqlite3_stmt* s) noexcept : stmt_(s) {}
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    ~Query() { sqlite3_reset(stmt_); }

    Query& bind(int at, std::int64_t v) noexcept {
        sqlite3_bind_int64(stmt_, at, v);
        return *this;
    }
    /// The text must stay until the Query ends.
    Query& bind(int at, std::string_view v) noexcept {
        sqlite3_bind_text64(stmt_, at, v.data(), v.size(), SQLITE_STATIC, SQLITE_UTF8);
        return *this;
    }
    /// SQLITE_ROW, SQLITE_DONE, or an extended error code.
    int step() noexcept { return sqlite3_step(stmt_); }
    std::int64_t number(int column) const noexcept { return sqlite3_column_int64(stmt_, column); }
    bool null(int column) const noexcept {
        return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
    }
    /// Valid until the next step.
    std::string_view text(int column) const noexcept;

private:
    sqlite3_stmt* stmt_;
};

class Connection {
public:
    explicit Connection(std::shared_ptr<Place> place) noexcept : place_(std::move(place)) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() { close(); }

    Place& place() const noexcept { return *place_; }
    /// Opens unless it is open; makes the file and the tables on demand. Blocks until `deadline` at
    /// the latest. Errors: see Finding, and SQLite's own; `detail` receives the words.
    error_code open(boot_clock::time_point deadline, std::string& detail);
    bool is_open() const noexcept { return db_ != nullptr; }
    /// False when the path leads to another file by now, or to none.
    bool still_there() const noexcept;
    const FileId& file() const noexcept { return file_; }
    /// For tracing; null while it is not open.
    sqlite3* handle() const noexcept { return db_; }
    void close() noexcept;

    /// Waits for the write lock until `deadline`; then SQLITE_BUSY.
    int begin(boot_clock::time_point deadline) noexcept;
    int commit() noexcept;
    void rollback() noexcept;
    sqlite3_stmt* statement(Sql) noexcept;
    /// Runs a statement without parameters and results.
    int run(Sql) noexcept;

    /// The code with words for `detail`; closes the connection when the file is not to be trusted.
    error_code fail(int sqlite_code, std::string& detail);

private:
    error_code set_up(std::string& detail);
    error_code create_tables(std::string& detail);
    int execute(const char* sql) noexcept;
    int ask(const char* sql, std::string& answer);
    static int wait_for_lock(void* self, int times) noexcept;

    std::shared_ptr<Place> place_;
    sqlite3* db_ = nullptr;
    FileId file_;
    std::array<sqlite3_stmt*, static_cast<std::size_t>(Sql::count_)> cache_{};
    boot_clock::time_point deadline_{};
    long owner_process_ = 0;
};

}  // namespace holdfast::sqlite
