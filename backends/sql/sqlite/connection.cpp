#include "connection.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "clocks.hpp"
#include "errors.hpp"
#include "holdfast/detail/fork_generation.hpp"
#include "of_process.hpp"

namespace holdfast::sqlite {
namespace {

int kind_of(int rc) noexcept {
    return rc & 0xff;
}

/// Words that say what to do, for the cases that an operator meets.
std::string words(int rc, const std::string& path, const char* message, int system_error) {
    switch (kind_of(rc)) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return "another program kept the write lock of " + path + " until the deadline";
        case SQLITE_FULL:
            return "no space is left for " + path + "; free some on its file system";
        case SQLITE_READONLY:
        case SQLITE_PERM:
            return "no permission to write " + path;
        case SQLITE_NOTADB:
            return path + " is not an SQLite database; choose another path, or move it away";
        case SQLITE_CORRUPT:
            return path + " is damaged; move it and its -wal file away, a new one is made";
        case SQLITE_CANTOPEN:
            return "cannot open " + path + (system_error != 0 ? ": " : "") +
                   (system_error != 0 ? ::strerror(system_error) : "");
        default:
            break;
    }
    std::string text = path + ": " + message;
    if (kind_of(rc) == SQLITE_IOERR && system_error != 0)
        text += std::string(" (") + ::strerror(system_error) + ")";
    return text;
}

}  // namespace

/// Those of this process. In the child of a fork SQLite itself still has the parent's: it takes
/// their locks for its own, and a mutex of its may be one that a thread of the parent holds.
class Connection::Others {
public:
    static Others& here() { return of_process<Others>(); }

    /// The first call in the child of a fork.
    void inherit(Others& parents) noexcept {
        const std::unique_lock list(parents.mutex, std::try_to_lock);
        usable = parents.usable && list.owns_lock() &&
                 std::all_of(parents.all.begin(), parents.all.end(),
                             [](Connection* c) { return c->in_use_.try_lock(); });
        if (!usable) return;
        for (Connection* c : parents.all)
            c->shut(false);
    }

    std::mutex mutex;
    std::vector<Connection*> all;
    bool usable = true;  ///< no thread was inside SQLite when this process was forked
};

std::string_view Query::text(int column) const noexcept {
    const auto* bytes = sqlite3_column_text(stmt_, column);
    if (bytes == nullptr) return {};
    return {reinterpret_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(stmt_, column))};
}

Connection::Connection(std::shared_ptr<DatabaseFile> file)
    : database_(std::move(file)), owner_process_(fork_generation()) {
    Others& others = Others::here();
    const std::lock_guard hold(others.mutex);
    others.all.push_back(this);
}

Connection::~Connection() {
    {
        const auto in_use = use();
        close();
    }
    Others& others = Others::here();
    const std::lock_guard hold(others.mutex);
    std::erase(others.all, this);
}

void Connection::close_without_log() noexcept {
    Others& others = Others::here();
    const std::lock_guard hold(others.mutex);
    for (Connection* c : others.all) {
        if (c == this || !c->in_use_.try_lock()) continue;
        if (c->is_open() && !c->intact()) c->close();
        c->in_use_.unlock();
    }
}

int Connection::wait_for_lock(void* self, int times) noexcept {
    auto& c = *static_cast<Connection*>(self);
    const auto left = c.deadline_ - boot_clock::now();
    if (left.count() <= 0 || c.database_->closing.load(std::memory_order_relaxed)) return 0;
    // Short at first: a commit takes as long as one sync. Spread, so that two do not stay in step.
    thread_local std::minstd_rand spread{std::random_device{}()};
    const int top = std::min(100 * (times + 1), 4000);
    std::uniform_int_distribution<int> pause(top / 2, top);
    const std::chrono::nanoseconds wanted = std::chrono::microseconds(pause(spread));
    std::this_thread::sleep_for(std::min(wanted, left));
    return 1;
}

spi::Failure Connection::open(boot_clock::time_point deadline) {
    if (db_ != nullptr && intact()) return {};
    close();
    if (!Others::here().usable) return make_error(Finding::forked_inside);
    if (!boot_clock_known())
        return {
            make_error(Finding::unknown_clock),
            "/proc/self cannot be read, and without it two processes may have different clocks; "
            "mount /proc for this process"};
    if (auto failed = check_place(database_->path)) return failed;
    if (database_->personal)
        if (auto failed = check_private(database_->path)) return failed;
    make_file(database_->path);
    if (database_->personal) {
        make_private(database_->path);
        if (const auto name = readers_only(database_->path); !name.empty())
            return {make_error(Finding::not_private), "private=yes: " + readers_words(name)};
    }
    deadline_ = deadline;
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int rc = sqlite3_open_v2(database_->path.c_str(), &db_, flags, nullptr);
    if (rc != SQLITE_OK) {
        auto failed = fail(rc);
        close();
        return failed;
    }
    sqlite3_busy_handler(db_, wait_for_lock, this);
    // A user that may write the file can put code into its schema, which would run here.
    for (const int allowed : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW})
        sqlite3_db_config(db_, allowed, 0, nullptr);
    const auto id = file_id(database_->path);
    int moved = 1;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (!id || moved != 0) {
        close();
        return make_error(SQLITE_BUSY);
    }
    file_ = *id;
    sqlite3_wal_hook(db_, after_commit, this);
    if (auto failed = set_up()) {
        close();
        return failed;
    }
    ++openings_;
    for (std::string& text : doubts_about(database_->path))
        database_->reports.warn(std::move(text));
    return {};
}

/// The log that this connection uses is the one beside the file. SQLite shares its index among all
/// connections of a process, also after it was removed: one that is still open hands the removed
/// index on to those that come.
bool Connection::find_log() {
    const std::string real = sqlite3_db_filename(db_, "main");  // behind symbolic links
    log_path_ = real + "-wal", index_path_ = real + "-shm";
    const auto log = file_id(log_path_), index = file_id(index_path_);
    if (!log || !index || !open_in_this_process(*index)) return false;
    log_ = *log, index_ = *index;
    return true;
}

int Connection::after_commit(void* self, sqlite3*, const char*, int pages) noexcept {
    static_cast<Connection*>(self)->log_pages_ = pages;
    return SQLITE_OK;
}

void Connection::checkpoint() noexcept {
    // As often as SQLite by itself; but a log that others cannot see stays out of the file.
    constexpr int enough = 1000, patience_ms = 50;
    if (!is_open() || std::exchange(log_pages_, 0) < enough || !intact()) return;
    // Beside a commit that begins the log anew, SQLite can lose pages (its WAL-reset bug): so
    // nobody commits meanwhile.
    sqlite3* guard = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(database_->path.c_str(), &guard, flags, nullptr);
    if (rc == SQLITE_OK) {
        sqlite3_db_config(guard, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        sqlite3_wal_autocheckpoint(guard, 0);
        sqlite3_busy_timeout(guard, patience_ms);
        rc = sqlite3_exec(guard, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    }
    if (rc == SQLITE_OK && intact())
        sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    sqlite3_close_v2(guard);
}

bool Connection::still_there() const noexcept {
    const auto id = file_id(database_->path);
    return id && *id == file_;
}

bool Connection::intact() const noexcept {
    if (!still_there()) return false;
    const auto log = file_id(log_path_), index = file_id(index_path_);
    return log && index && *log == log_ && *index == index_;
}

void Connection::close() noexcept {
    if (db_ == nullptr) return;
    // A child of fork() must not touch its parent's connection: the log would be damaged.
    // What is in a log without a name is nobody's, and the one that has the name is another's.
    if (owner_process_ == fork_generation()) shut(intact());
    cache_.fill(nullptr);
    log_pages_ = 0;
    db_ = nullptr;
}

void Connection::shut(bool may_write) noexcept {
    if (db_ == nullptr) return;
    for (sqlite3_stmt*& s : cache_)
        sqlite3_finalize(std::exchange(s, nullptr));
    if (!may_write) sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_close_v2(std::exchange(db_, nullptr));
}

int Connection::execute(const char* sql) noexcept {
    database_->requests.fetch_add(1, std::memory_order_relaxed);
    return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
}

int Connection::ask(const char* sql, std::string& answer) {
    // A change of the journal mode does not call the busy handler in every case.
    for (int times = 0;; ++times) {
        database_->requests.fetch_add(1, std::memory_order_relaxed);
        sqlite3_stmt* s = nullptr;
        int rc = sqlite3_prepare_v2(db_, sql, -1, &s, nullptr);
        if (rc == SQLITE_OK) {
            rc = sqlite3_step(s);
            if (rc == SQLITE_ROW) answer = std::string(Query(s).text(0));
        }
        sqlite3_finalize(s);
        if (rc == SQLITE_ROW || rc == SQLITE_DONE) return SQLITE_OK;
        if (kind_of(rc) != SQLITE_BUSY && kind_of(rc) != SQLITE_LOCKED) return rc;
        if (wait_for_lock(this, times) == 0) return rc;
    }
}

spi::Failure Connection::set_up() {
    std::string answer;
    int rc = ask("PRAGMA journal_mode = WAL", answer);
    // The log is there after the first reading. An index of one that is gone is an
    // error.
    std::string any;
    if (rc == SQLITE_OK && answer == "wal") rc = ask("PRAGMA schema_version", any);
    if (kind_of(rc) == SQLITE_IOERR) close_without_log();
    if (!any.empty() && !find_log()) {
        close_without_log();
        wait_for_lock(this, 10);
        return {
            make_error(SQLITE_BUSY),
            "the -wal or -shm of " + database_->path +
                " was removed while this process had it open; close its other connections to it"};
    }
    if (rc != SQLITE_OK) return fail(rc);
    if (answer != "wal")
        return {make_error(Finding::no_wal), database_->path + " stays in journal mode " + answer +
                                                 "; write-ahead logging needs "
                                                 "shared memory beside the file"};
    rc = execute(database_->extra ? "PRAGMA synchronous = EXTRA" : "PRAGMA synchronous = FULL");
    if (rc == SQLITE_OK) rc = ask("PRAGMA synchronous", answer);
    if (rc != SQLITE_OK) return fail(rc);
    if (answer != (database_->extra ? "3" : "2"))
        return {make_error(Finding::no_wal), "SQLite does not accept the synchronous setting"};
    return create_tables();
}

sqlite3_stmt* Connection::statement(Sql which) noexcept {
    database_->requests.fetch_add(1, std::memory_order_relaxed);
    return cache_[static_cast<std::size_t>(which)];
}

int Connection::run(Sql which) noexcept {
    const int rc = Query(statement(which)).step();
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int Connection::begin(boot_clock::time_point deadline) noexcept {
    deadline_ = deadline;
    return run(Sql::begin);
}

int Connection::commit() noexcept {
    return run(Sql::commit);
}

void Connection::rollback() noexcept {
    if (db_ != nullptr && sqlite3_get_autocommit(db_) == 0) run(Sql::rollback);
}

bool Connection::may_have_committed(int rc) noexcept {
    if (kind_of(rc) == SQLITE_IOERR) return true;
    // Where a torn write may take its neighbours with it, the log is padded after the record.
    int undisturbed = -1;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_POWERSAFE_OVERWRITE, &undisturbed);
    return kind_of(rc) == SQLITE_FULL && undisturbed == 0;
}

spi::Failure Connection::fail(int rc) {
    const int system_error = db_ != nullptr ? sqlite3_system_errno(db_) : 0;
    return {make_error(rc),
            words(rc, database_->path, db_ != nullptr ? sqlite3_errmsg(db_) : "", system_error)};
}

}  // namespace holdfast::sqlite
