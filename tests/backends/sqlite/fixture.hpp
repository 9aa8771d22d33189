// A fresh database file, steps on it without an engine, and processes beside it.
#pragma once
#include <sqlite3.h>

#include <catch.hpp>
#include <fstream>
#include <sstream>

#include "clocks.hpp"
#include "connection.hpp"
#include "errors.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "steps.hpp"

namespace holdfast::sqlite::test {

using namespace std::chrono_literals;

inline std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

struct File {
    lab::TempDir dir;
    const std::string path = (dir / "locks.db").string();
    const std::string url = "sqlite://" + path;

    std::shared_ptr<DatabaseFile> database() const {
        auto p = std::make_shared<DatabaseFile>();
        p->path = path;
        return p;
    }
    /// One statement on a foreign connection; the first column of the first row.
    std::string sql(const std::string& statement) const {
        sqlite3* db = nullptr;
        REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
        sqlite3_busy_timeout(db, 5000);
        std::string first;
        char* why = nullptr;
        sqlite3_exec(
            db, statement.c_str(),
            [](void* out, int, char** values, char**) {
                if (values[0] != nullptr) *static_cast<std::string*>(out) = values[0];
                return 0;
            },
            &first, &why);
        INFO(statement << ": " << (why != nullptr ? why : ""));
        const bool fine = why == nullptr;
        sqlite3_free(why);
        sqlite3_close(db);
        REQUIRE(fine);
        return first;
    }
    lab::Process helper(std::vector<std::string> arguments, const std::string& log) const {
        lab::ProcessOptions o;
        o.argv = {SQLITE_HELPER};
        o.argv.insert(o.argv.end(), arguments.begin(), arguments.end());
        o.log = dir / log;
        return lab::Process(std::move(o));
    }
    /// What a helper wrote, without what a sanitizer says of a process that has no /proc.
    std::string said(const std::string& log) const {
        std::istringstream in(text_of(dir / log));
        std::string out;
        for (std::string line; std::getline(in, line);)
            if (!line.starts_with("==")) out += line + '\n';
        return out;
    }
};

/// Keeps the write lock of a file from outside.
class Writer {
public:
    explicit Writer(const std::string& path) {
        REQUIRE(sqlite3_open(path.c_str(), &db_) == SQLITE_OK);
        REQUIRE(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { sqlite3_close(db_); }

private:
    sqlite3* db_ = nullptr;
};

/// Steps one by one, as a lane runs them.
class Table {
public:
    explicit Table(const File& file) : Table(file.database()) {}
    explicit Table(std::shared_ptr<DatabaseFile> database) : connection(std::move(database)) {}

    Step step(Step::Kind kind, const std::string& name, const std::string& owner,
              milliseconds ttl = 10s, milliseconds within = 2s) {
        Step s;
        s.kind = kind;
        s.key = name;
        s.owner = owner;
        s.ttl = ttl;
        s.deadline = boot_clock::now() + within;
        return s;
    }
    Step& run(Step& s) {
        Step* const one = &s;
        run_steps(connection, {&one, 1});
        return s;
    }
    Step attempt(const std::string& name, const std::string& owner, milliseconds ttl = 10s) {
        Step s = step(Step::Kind::attempt, name, owner, ttl);
        return run(s);
    }
    spi::Attempt::Granted grant(const std::string& name, const std::string& owner,
                                milliseconds ttl = 10s) {
        const Step s = attempt(name, owner, ttl);
        INFO(s.detail);
        REQUIRE(std::holds_alternative<spi::Attempt::Granted>(s.outcome));
        return std::get<spi::Attempt::Granted>(s.outcome);
    }
    ReleaseResult release(const std::string& name, const std::string& owner, FencingToken token,
                          Outcome how = Outcome::done) {
        Step s = step(Step::Kind::release, name, owner);
        s.token = static_cast<std::int64_t>(token.value);
        s.how = how;
        return run(s).released;
    }
    Step renew(const std::string& name, const std::string& owner, FencingToken token,
               milliseconds ttl = 10s) {
        Step s = step(Step::Kind::renew, name, owner, ttl);
        s.token = static_cast<std::int64_t>(token.value);
        return run(s);
    }
    Step withdraw(const std::string& name, const std::string& owner) {
        Step s = step(Step::Kind::withdraw, name, owner);
        return run(s);
    }
    bool busy(const std::string& name, const std::string& owner) {
        return std::holds_alternative<spi::Attempt::Busy>(attempt(name, owner).outcome);
    }
    error_code refused(const std::string& name, const std::string& owner) {
        const Step s = attempt(name, owner);
        detail = s.detail;
        const auto* f = std::get_if<spi::Attempt::Failed>(&s.outcome);
        return f != nullptr ? f->why : error_code();
    }

    Connection connection;
    std::string detail;
};

}  // namespace holdfast::sqlite::test
