#include "connection.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "errors.hpp"

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
            return "no right to write " + path;
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

std::string_view Query::text(int column) const noexcept {
    const auto* bytes = sqlite3_column_text(stmt_, column);
    if (bytes == nullptr) return {};
    return {reinterpret_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(stmt_, column))};
}

int Connection::wait_for_lock(void* self, int times) noexcept {
    auto& c = *static_cast<Connection*>(self);
    const auto left = c.deadline_ - boot_clock::now();
    if (left.count() <= 0 || c.place_->closing.load(std::memory_order_relaxed)) return 0;
    // Short at first: a commit takes as long as one sync. Spread, so that two do not stay in step.
    thread_local std::minstd_rand spread{std::random_device{}()};
    const int top = std::min(100 * (times + 1), 4000);
    std::uniform_int_distribution<int> pause(top / 2, top);
    const std::chrono::nanoseconds wanted = std::chrono::microseconds(pause(spread));
    std::this_thread::sleep_for(std::min(wanted, left));
    return 1;
}

error_code Connection::open(boot_clock::time_point deadline, std::string& detail) {
    if (db_ != nullptr && still_there()) return {};
    close();
    if (const auto ec = check_place(place_->path, detail)) return ec;
    deadline_ = deadline;
    owner_process_ = ::getpid();
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int rc = sqlite3_open_v2(place_->path.c_str(), &db_, flags, nullptr);
    if (rc != SQLITE_OK) {
        const auto ec = fail(rc, detail);
        close();
        return ec;
    }
    sqlite3_busy_handler(db_, wait_for_lock, this);
    const auto id = file_id(place_->path);
    int moved = 1;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    auto ec = id && moved == 0 ? set_up(detail) : make_error(SQLITE_BUSY);
    if (id) file_ = *id;
    if (ec) close();
    return ec;
}

bool Connection::still_there() const noexcept {
    const auto id = file_id(place_->path);
    return id && *id == file_;
}

void Connection::close() noexcept {
    if (db_ == nullptr) return;
    // A child of fork() must not touch its parent's connection: the log would be damaged.
    if (owner_process_ == ::getpid()) {
        for (sqlite3_stmt*& s : cache_)
            sqlite3_finalize(std::exchange(s, nullptr));
        sqlite3_close_v2(db_);
    }
    cache_.fill(nullptr);
    db_ = nullptr;
}

int Connection::execute(const char* sql) noexcept {
    place_->requests.fetch_add(1, std::memory_order_relaxed);
    return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
}

int Connection::ask(const char* sql, std::string& answer) {
    // A change of the journal mode does not call the busy handler in every case.
    for (int times = 0;; ++times) {
        place_->requests.fetch_add(1, std::memory_order_relaxed);
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

error_code Connection::set_up(std::string& detail) {
    std::string answer;
    int rc = ask("PRAGMA journal_mode = WAL", answer);
    if (rc != SQLITE_OK) return fail(rc, detail);
    if (answer != "wal") {
        detail = place_->path + " stays in journal mode " + answer +
                 "; write-ahead logging needs "
                 "shared memory beside the file";
        return make_error(Finding::no_wal);
    }
    rc = execute(place_->extra ? "PRAGMA synchronous = EXTRA" : "PRAGMA synchronous = FULL");
    if (rc == SQLITE_OK) rc = ask("PRAGMA synchronous", answer);
    if (rc != SQLITE_OK) return fail(rc, detail);
    if (answer != (place_->extra ? "3" : "2")) {
        detail = "SQLite does not accept the synchronous setting";
        return make_error(Finding::no_wal);
    }
    return create_tables(detail);
}

error_code Connection::create_tables(std::string& detail) {
    constexpr const char* which =
        "SELECT sum(name = 'holdfast_format') * 2 + sum(name = 'holdfast_lease') FROM "
        "sqlite_master WHERE name IN ('holdfast_format', 'holdfast_lease')";
    std::string found;
    int rc = ask(which, found);
    if (rc == SQLITE_OK && found.empty()) {
        rc = ask("BEGIN IMMEDIATE", found);
        if (rc == SQLITE_OK) {
            // Another process may have been first.
            rc = ask(which, found);
            if (rc == SQLITE_OK && found.empty()) rc = execute(create_schema);
            if (rc == SQLITE_OK) rc = execute("COMMIT");
            if (rc != SQLITE_OK) {
                const auto ec = fail(rc, detail);
                if (db_ != nullptr) execute("ROLLBACK");
                return ec;
            }
            found = "3";
        }
    }
    if (rc != SQLITE_OK) return fail(rc, detail);
    std::string format;
    if (found == "3" || found == "2") {
        rc = ask("SELECT format FROM holdfast_format WHERE id = 1", format);
        if (rc != SQLITE_OK && kind_of(rc) != SQLITE_ERROR) return fail(rc, detail);
    }
    if (!format.empty() && format != std::to_string(layout_format)) {
        detail = "the tables in " + place_->path + " have format " + format +
                 ", and this version knows format " + std::to_string(layout_format) +
                 "; use a newer Holdfast, or another file";
        return make_error(Finding::newer_format);
    }
    bool ours = found == "3" && !format.empty();
    for (std::size_t i = 0; ours && i < statements.size(); ++i) {
        rc = sqlite3_prepare_v3(db_, statements[i].data(), static_cast<int>(statements[i].size()),
                                SQLITE_PREPARE_PERSISTENT, &cache_[i], nullptr);
        if (rc != SQLITE_OK && kind_of(rc) != SQLITE_ERROR) return fail(rc, detail);
        ours = rc == SQLITE_OK;
    }
    if (ours) return {};
    detail = "a table holdfast_lease or holdfast_format in " + place_->path +
             " was not made by Holdfast; choose another file";
    return make_error(Finding::foreign_table);
}

sqlite3_stmt* Connection::statement(Sql which) noexcept {
    place_->requests.fetch_add(1, std::memory_order_relaxed);
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

error_code Connection::fail(int rc, std::string& detail) {
    const int system_error = db_ != nullptr ? sqlite3_system_errno(db_) : 0;
    detail = words(rc, place_->path, db_ != nullptr ? sqlite3_errmsg(db_) : "", system_error);
    return make_error(rc);
}

}  // namespace holdfast::sqlite
