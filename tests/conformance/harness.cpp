#include "harness.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>

namespace suite {
namespace {

class Memory final : public Harness {
public:
    Memory() : Harness("memory") {}
    bool shared_between_processes() const override { return false; }

protected:
    std::string base_url() const override { return "memory:suite"; }
};

class Sqlite final : public Harness {
public:
    Sqlite() : Harness("sqlite") {}
    bool durable() const override { return true; }
    bool erase_behind(const std::string& name) override {
        sqlite3* db = nullptr;
        if (sqlite3_open(path().c_str(), &db) != SQLITE_OK) return false;
        sqlite3_busy_timeout(db, 5000);
        sqlite3_stmt* s = nullptr;
        sqlite3_prepare_v2(db, "DELETE FROM holdfast_lease WHERE name = ?", -1, &s, nullptr);
        sqlite3_bind_text(s, 1, name.c_str(), -1, SQLITE_TRANSIENT);
        const bool done = sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == 1;
        sqlite3_finalize(s);
        sqlite3_close(db);
        return done;
    }

protected:
    std::string base_url() const override { return "sqlite://" + path(); }

private:
    std::string path() const { return (dir_.path() / "locks.db").string(); }
    lab::TempDir dir_;
};

class Redis final : public Harness {
public:
    Redis(std::string name, std::string query)
        : Harness(std::move(name)), query_(std::move(query)), proxy_(server_.port()) {}
    lab::Proxy* proxy() override { return &proxy_; }
    lab::RedisServer* redis() override { return &server_; }
    bool durable() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        return server_.cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool erase_behind(const std::string& name) override {
        return server_.cli({"DEL", name}).integer == 1;
    }

protected:
    std::string base_url() const override { return server_.url() + query_; }
    std::string proxied_base_url() const override {
        return server_.url_with_password(proxy_.port()) + query_;
    }

private:
    static lab::RedisOptions options() {
        lab::RedisOptions o;
        o.append_only = true;
        // Servers are killed here, machines are not: the page cache outlives them, and a disk that
        // is busy syncing for others would look like a server that hangs.
        o.append_fsync = "no";
        return o;
    }
    std::string query_;
    lab::RedisServer server_ = lab::RedisServer::start(options());
    lab::Proxy proxy_;
};

using Maker = std::function<std::unique_ptr<Harness>()>;

const std::map<std::string, Maker>& makers() {
    static const std::map<std::string, Maker> all{
        {"memory", [] { return std::make_unique<Memory>(); }},
        {"sqlite", [] { return std::make_unique<Sqlite>(); }},
        {"redis", [] { return std::make_unique<Redis>("redis", ""); }},
        {"redis-poll", [] { return std::make_unique<Redis>("redis-poll", "?wait=poll"); }},
        {"redis-plain", [] { return std::make_unique<Redis>("redis-plain", "?mode=plain"); }},
    };
    return all;
}

}  // namespace

std::vector<std::string> Harness::names() {
    std::vector<std::string> out;
    for (const auto& [name, make] : makers())
        out.push_back(name);
    return out;
}

Harness& Harness::instance() {
    static const std::unique_ptr<Harness> one = [] {
        const char* wanted = std::getenv("HOLDFAST_TEST_BACKEND");
        const auto at = makers().find(wanted == nullptr ? "" : wanted);
        if (at == makers().end())
            throw std::runtime_error(
                "set HOLDFAST_TEST_BACKEND to memory, sqlite, redis, redis-poll or "
                "redis-plain");
        return at->second();
    }();
    return *one;
}

}  // namespace suite
