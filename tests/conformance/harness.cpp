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
    Proxies* proxy() override { return &proxies_; }
    RedisNodes* redis() override { return &nodes_; }
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
        return o;
    }
    std::string query_;
    lab::RedisServer server_ = lab::RedisServer::start(options());
    lab::Proxy proxy_;
    RedisNodes nodes_{{&server_}};
    Proxies proxies_{{&proxy_}};
};

/// Five nodes that keep every write, which the URL declares.
class Redlock final : public Harness {
public:
    Redlock(std::string name, std::string query) : Harness(std::move(name)), query_(query) {
        std::vector<lab::RedisServer*> nodes;
        std::vector<lab::Proxy*> proxies;
        for (int i = 0; i < 5; ++i) {
            lab::RedisOptions o;
            o.append_only = true;
            servers_.push_back(std::make_unique<lab::RedisServer>(lab::RedisServer::start(o)));
            proxies_.push_back(std::make_unique<lab::Proxy>(servers_.back()->port()));
            nodes.push_back(servers_.back().get());
            proxies.push_back(proxies_.back().get());
        }
        nodes_ = std::make_unique<RedisNodes>(nodes);
        all_proxies_ = std::make_unique<Proxies>(proxies);
    }
    Proxies* proxy() override { return all_proxies_.get(); }
    RedisNodes* redis() override { return nodes_.get(); }
    bool durable() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        return nodes_->cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool erase_behind(const std::string& name) override {
        return nodes_->cli({"DEL", name}).integer == 1;
    }

protected:
    std::string base_url() const override {
        return url_of([](const auto& server, const auto&) { return server->port(); });
    }
    std::string proxied_base_url() const override {
        return url_of([](const auto&, const auto& proxy) { return proxy->port(); });
    }

private:
    template <class Port>
    std::string url_of(Port port) const {
        std::string url = "redlock://";
        for (std::size_t i = 0; i < servers_.size(); ++i)
            url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") +
                   std::to_string(port(servers_[i], proxies_[i]));
        // Seen through the proxies, the nodes have other addresses.
        return url + "?durable=yes&node_set=suite" + query_;
    }
    std::string query_;
    std::vector<std::unique_ptr<lab::RedisServer>> servers_;
    std::vector<std::unique_ptr<lab::Proxy>> proxies_;
    std::unique_ptr<RedisNodes> nodes_;
    std::unique_ptr<Proxies> all_proxies_;
};

using Maker = std::function<std::unique_ptr<Harness>()>;

const std::map<std::string, Maker>& makers() {
    static const std::map<std::string, Maker> all{
        {"memory", [] { return std::make_unique<Memory>(); }},
        {"sqlite", [] { return std::make_unique<Sqlite>(); }},
        {"redis", [] { return std::make_unique<Redis>("redis", ""); }},
        {"redis-poll", [] { return std::make_unique<Redis>("redis-poll", "?wait=poll"); }},
        {"redlock", [] { return std::make_unique<Redlock>("redlock", ""); }},
        {"redlock-plain",
         [] { return std::make_unique<Redlock>("redlock-plain", "&fencing=off"); }},
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
                "set HOLDFAST_TEST_BACKEND to memory, sqlite, redis, redis-poll, redis-plain, "
                "redlock or redlock-plain");
        return at->second();
    }();
    return *one;
}

}  // namespace suite
