// One SQLite connection with our pragmas, tables and statements. Used by one thread at a time;
// opened on first use, and again when the path leads to another file.
#pragma once
#include <sqlite3.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "../common/reports.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "local_file.hpp"
#include "statements.hpp"

namespace holdfast::sqlite {

/// The database file, as all connections of one client have it.
struct DatabaseFile {
    std::string path;  ///< absolute
    std::string name_prefix;
    bool extra = false;     ///< synchronous=EXTRA instead of FULL
    bool personal = false;  ///< no other user may have put the file there
    sql::Reports reports;
    std::atomic<std::uint64_t> requests{0};
    std::atomic<bool> closing{false};  ///< ends every wait for the write lock
};

/// A cached statement for one use: bind from the left; it is reset at the end.
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
    /// The text must live until the Query ends.
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
    explicit Connection(std::shared_ptr<DatabaseFile> file);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    /// Held by the thread that uses the connection. In between, another connection of this process
    /// that finds its log removed may close this one.
    [[nodiscard]] std::unique_lock<std::mutex> use() { return std::unique_lock(in_use_); }

    DatabaseFile& database() const noexcept { return *database_; }
    /// Opens unless open and intact; makes file and tables on demand. Blocks until `deadline` at
    /// the latest. Errors: see Finding, and SQLite's own.
    spi::Failure open(boot_clock::time_point deadline);
    bool is_open() const noexcept { return db_ != nullptr; }
    /// False when the path now leads to another file, or to none.
    bool still_there() const noexcept;
    /// The same for the file, its log and the log's index: what is written into a removed log is
    /// invisible to other processes.
    bool intact() const noexcept;
    const FileId& file() const noexcept { return file_; }
    /// Number of times it was opened; earlier knowledge of the file may be stale after each.
    unsigned openings() const noexcept { return openings_; }
    /// For tracing; null while it is not open.
    sqlite3* handle() const noexcept { return db_; }
    void close() noexcept;

    /// Waits for the write lock until `deadline`; then SQLITE_BUSY.
    int begin(boot_clock::time_point deadline) noexcept;
    int commit() noexcept;
    void rollback() noexcept;
    /// Between transactions: copies a long log into the file, unless another connection is writing.
    void checkpoint() noexcept;
    /// True if a commit that failed with that code may have left its record in the log, from which
    /// it can come back.
    bool may_have_committed(int sqlite_code) noexcept;
    sqlite3_stmt* statement(Sql) noexcept;
    /// Runs a statement without parameters and results.
    int run(Sql) noexcept;

    /// The code with its text. Closes the connection if the file is not to be trusted.
    spi::Failure fail(int sqlite_code);

private:
    class Others;
    /// `may_write`: as the last connection, copies the log into the file.
    void shut(bool may_write) noexcept;
    spi::Failure set_up();
    bool find_log();
    void close_without_log() noexcept;
    spi::Failure create_tables();
    int make_tables(std::string& found);
    /// `format`: the format afterwards; `held`: how many leases of layout 1 prevented the change.
    int take_over(std::string& format, std::int64_t& held);
    spi::Failure failed(int rc);
    int execute(const char* sql) noexcept;
    int ask(const char* sql, std::string& answer);
    static int wait_for_lock(void* self, int times) noexcept;
    static int after_commit(void* self, sqlite3*, const char* database, int pages) noexcept;

    std::shared_ptr<DatabaseFile> database_;
    sqlite3* db_ = nullptr;
    FileId file_, log_, index_;
    std::string log_path_, index_path_;
    std::array<sqlite3_stmt*, static_cast<std::size_t>(Sql::count_)> cache_{};
    boot_clock::time_point deadline_{};
    int log_pages_ = 0;  // as of the last commit
    unsigned openings_ = 0;
    std::mutex in_use_;
    const std::uint64_t owner_process_;
};

}  // namespace holdfast::sqlite
