// The suite's ground on an SQLite file.
#include <sqlite3.h>

#include <utility>

#include "ground.hpp"

namespace suite {
namespace {

class Sqlite final : public Harness {
public:
    Sqlite() : Harness("sqlite") {}
    ~Sqlite() override { sqlite3_close(writer_); }
    /// What a file has instead of a server that hangs: somebody who keeps its write lock.
    bool pause_server() override {
        if (sqlite3_open(path().c_str(), &writer_) != SQLITE_OK) return false;
        sqlite3_busy_timeout(writer_, 10'000);
        return sqlite3_exec(writer_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
    }
    bool resume_server() override {
        return sqlite3_close(std::exchange(writer_, nullptr)) == SQLITE_OK;
    }
    bool durable() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        hf::Diagnostics ignored;
        (void)hf::Client::open(url()).value().probe(&ignored);  // makes the table
        return changed(
            "INSERT INTO holdfast_lease(name, token, expires, boot_id, acquired, meta) "
            "VALUES (?, 0, 0, '', 0, 'semaphore')",
            name);
    }
    bool stranger_is_whole(const std::string& name) override {
        return changed(
            "UPDATE holdfast_lease SET meta = meta WHERE name = ? AND meta = 'semaphore' AND "
            "owner IS NULL",
            name);
    }
    bool erase_behind(const std::string& name) override {
        return changed("DELETE FROM holdfast_lease WHERE name = ?", name);
    }

protected:
    std::string base_url() const override { return "sqlite://" + path(); }

private:
    std::string path() const { return (dir_.path() / "locks.db").string(); }
    /// One row of the name was.
    bool changed(const char* sql, const std::string& name) const {
        sqlite3* db = nullptr;
        if (sqlite3_open(path().c_str(), &db) != SQLITE_OK) return false;
        sqlite3_busy_timeout(db, 5000);
        sqlite3_stmt* s = nullptr;
        sqlite3_prepare_v2(db, sql, -1, &s, nullptr);
        sqlite3_bind_text(s, 1, name.c_str(), -1, SQLITE_TRANSIENT);
        const bool done = sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == 1;
        sqlite3_finalize(s);
        sqlite3_close(db);
        return done;
    }
    lab::TempDir dir_;
    sqlite3* writer_ = nullptr;
};

const AddGround sqlite{"sqlite", [] { return std::make_unique<Sqlite>(); },
                       all_but({C::fifo, C::notified, C::cross_host, C::watch}), break_traced};

}  // namespace
}  // namespace suite
