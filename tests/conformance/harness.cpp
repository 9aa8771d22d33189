#include "harness.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#if HOLDFAST_TEST_ZOOKEEPER
#include "zookeeper_client.hpp"
#endif

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

class Redis final : public Harness {
public:
    Redis(std::string name, std::string query)
        : Harness(std::move(name)), query_(std::move(query)), proxy_(server_.port()) {}
    Proxies* proxy() override { return &proxies_; }
    RedisNodes* foreign_client() override { return &nodes_; }
    bool restartable() const override { return true; }
    std::string other_mode() const override {
        return query_ == "?mode=plain" ? "mode=fenced" : "mode=plain";
    }
    bool kill_server() override {
        nodes_.kill();
        return !nodes_.alive();
    }
    bool restart_server(lab::Data data) override {
        nodes_.restart(data);
        return true;
    }
    bool pause_server() override {
        nodes_.pause();
        return true;
    }
    bool resume_server() override {
        nodes_.resume();
        return true;
    }
    bool durable() const override { return true; }
    bool close_takes_back() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        return server_.cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool stranger_is_whole(const std::string& name) override { return nodes_.is_stranger(name); }
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
            o.append_fsync = "no";
            servers_.push_back(std::make_unique<lab::RedisServer>(lab::RedisServer::start(o)));
            proxies_.push_back(std::make_unique<lab::Proxy>(servers_.back()->port()));
            nodes.push_back(servers_.back().get());
            proxies.push_back(proxies_.back().get());
        }
        nodes_ = std::make_unique<RedisNodes>(nodes);
        all_proxies_ = std::make_unique<Proxies>(proxies);
    }
    Proxies* proxy() override { return all_proxies_.get(); }
    RedisNodes* foreign_client() override { return nodes_.get(); }
    bool restartable() const override { return true; }
    std::string other_mode() const override {
        return query_.empty() ? "fencing=off" : "fencing=on";
    }
    bool kill_server() override {
        nodes_->kill();
        return !nodes_->alive();
    }
    bool restart_server(lab::Data data) override {
        nodes_->restart(data);
        return true;
    }
    bool pause_server() override {
        nodes_->pause();
        return true;
    }
    bool resume_server() override {
        nodes_->resume();
        return true;
    }
    bool durable() const override { return true; }
    std::string waits_for_late_answers() const override {
        return "request_timeout=8s&node_timeout=3s";
    }
    bool plant_stranger(const std::string& name) override {
        return nodes_->cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool stranger_is_whole(const std::string& name) override { return nodes_->is_stranger(name); }
    bool erase_behind(const std::string& name) override {
        long long gone = 0;
        for (const auto& server : servers_)
            gone += server->cli({"DEL", name}).integer;
        return gone >= 3;  // of five: a majority had it
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

class Postgresql final : public Harness {
public:
    Postgresql() : Harness("postgresql"), proxy_(server_.port()) {}
    Proxies* proxy() override { return &proxies_; }
    bool restartable() const override { return true; }
    bool kill_server() override {
        server_.kill();
        return !server_.alive();
    }
    bool restart_server(lab::Data data) override {
        server_.restart(data);
        return true;
    }
    bool pause_server() override {
        server_.pause();
        return true;
    }
    bool resume_server() override {
        server_.resume();
        return true;
    }
    bool durable() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        hf::Diagnostics ignored;
        (void)hf::Client::open(url()).value().probe(&ignored);  // makes the table
        server_.sql("INSERT INTO holdfast_lease(name, meta) VALUES ('" + name + "', 'semaphore')");
        return true;
    }
    bool stranger_is_whole(const std::string& name) override {
        return !server_
                    .sql("SELECT 1 FROM holdfast_lease WHERE name = '" + name +
                         "' AND meta = 'semaphore' AND owner IS NULL")
                    .empty();
    }
    bool erase_behind(const std::string& name) override {
        return server_.sql("DELETE FROM holdfast_lease WHERE name = '" + name + "' RETURNING 1")
                   .size() == 1;
    }

protected:
    std::string base_url() const override { return server_.url(); }
    std::string proxied_base_url() const override {
        return server_.url_with_password(proxy_.port());
    }

private:
    lab::PostgresServer server_ = lab::PostgresServer::start();
    lab::Proxy proxy_;
    Proxies proxies_{{&proxy_}};
};

/// As both ZooKeeper's nodes and etcd's keys have it.
std::string escaped(const std::string& name) {
    std::string out;
    for (const char c : name)
        out += c == '/' ? std::string("%2F") : std::string(1, c);
    return out;
}

/// One server or several; what is done to the server is done to each. One proxy, before one of
/// them: a client has one connection, or asks one member.
template <class Servers>
class Ensemble : public Harness {
public:
    Ensemble(std::string name, Servers servers, std::string query)
        : Harness(std::move(name)),
          servers_(std::move(servers)),
          query_(std::move(query)),
          proxy_(servers_.port(0)) {}
    Proxies* proxy() override { return &proxies_; }
    bool pause_server() override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            servers_.pause(i);
        return true;
    }
    bool resume_server() override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            servers_.resume(i);
        return true;
    }
    void wait_ready() override { servers_.wait_ready(); }
    bool durable() const override { return true; }

protected:
    std::string base_url() const override { return servers_.url() + query_; }
    std::string proxied_base_url() const override {
        const auto all = servers_.url();
        return all.substr(0, all.find("://") + 3) + "127.0.0.1:" + std::to_string(proxy_.port()) +
               query_;
    }
    Servers servers_;

private:
    std::string query_;
    lab::Proxy proxy_;
    Proxies proxies_{{&proxy_}};
};

#if HOLDFAST_TEST_ZOOKEEPER
class ZooKeeper final : public Ensemble<lab::ZooKeeperServers> {
public:
    // Servers are killed here, machines are not: the page cache outlives them.
    ZooKeeper(std::string name, std::size_t count, std::string query)
        : Ensemble(std::move(name),
                   lab::ZooKeeperServers::start({.count = count, .config = {"forceSync=no"}}),
                   std::move(query)) {}
    lab::ZooKeeperServers* zookeeper() override { return &servers_; }
    bool reads_lag() const override { return servers_.size() > 1; }
    bool renews_sessions() const override { return true; }
    bool erase_behind(const std::string& name) override {
        holdfast::testing::ZooKeeperClient client(servers_.connect_string());
        const auto parent = "/holdfast/" + escaped(name);
        for (const auto& node : client.children(parent).children)
            client.remove(parent + "/" + node);
        return client.remove(parent).rc == ZOK;
    }
};
#endif

class Etcd final : public Ensemble<lab::EtcdServers> {
public:
    Etcd(std::string name, std::size_t count, std::string query)
        : Ensemble(std::move(name), lab::EtcdServers::start({.count = count}), std::move(query)) {}
    bool restartable() const override { return true; }
    bool kill_server() override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            servers_.kill(i);
        return !servers_.alive(0);
    }
    bool restart_server(lab::Data data) override {
        servers_.restart_all(data);
        return true;
    }
    bool grants_by_one_request() const override { return true; }
    std::string plain(std::string recorded) const override {
        return lab::EtcdServers::plain(recorded);
    }
    bool erase_behind(const std::string& name) override {
        const auto alone = "/holdfast/" + escaped(name);
        return servers_.erase(alone + "/") + std::stoul(servers_.ctl({"del", alone})) != 0;
    }
    bool plant_stranger(const std::string& name) override {
        servers_.ctl({"put", "/holdfast/" + escaped(name), "not a lock"});
        return true;
    }
    bool stranger_is_whole(const std::string& name) override {
        return servers_.ctl({"get", "--print-value-only", "/holdfast/" + escaped(name)}) ==
               "not a lock\n";
    }
};

using Maker = std::function<std::unique_ptr<Harness>()>;

const std::map<std::string, Maker>& makers() {
    static const std::map<std::string, Maker> all {
        {"memory", [] { return std::make_unique<Memory>(); }},
            {"sqlite", [] { return std::make_unique<Sqlite>(); }},
            {"postgresql", [] { return std::make_unique<Postgresql>(); }},
            {"redis", [] { return std::make_unique<Redis>("redis", ""); }},
            {"redis-poll", [] { return std::make_unique<Redis>("redis-poll", "?wait=poll"); }},
            {"redlock", [] { return std::make_unique<Redlock>("redlock", ""); }},
            {"redlock-plain",
             [] { return std::make_unique<Redlock>("redlock-plain", "&fencing=off"); }},
#if HOLDFAST_TEST_ZOOKEEPER
            {"zookeeper",
             [] { return std::make_unique<ZooKeeper>("zookeeper", 1, "?tick_time=100ms"); }},
            {"zookeeper-3",
             [] {
                 return std::make_unique<ZooKeeper>(
                     "zookeeper-3", 3, "?tick_time=100ms&robust=yes&request_timeout=2s");
             }},
#endif
            {"etcd", [] { return std::make_unique<Etcd>("etcd", 1, ""); }},
            {"etcd-3", [] { return std::make_unique<Etcd>("etcd-3", 3, "?robust=yes"); }},
            {"redis-plain", [] { return std::make_unique<Redis>("redis-plain", "?mode=plain"); }},
    };
    return all;
}

}  // namespace

/// What a test asks for takes the place of what its ground sets.
std::string Harness::join(std::string url, const std::string& query) {
    if (query.empty()) return url;
    std::istringstream options(query);
    for (std::string option; std::getline(options, option, '&');) {
        const auto key = option.substr(0, option.find('=') + 1);
        const auto at = std::min(url.find('?' + key), url.find('&' + key));
        if (at == std::string::npos) continue;
        const auto end = url.find('&', at + 1);
        if (end == std::string::npos)
            url.erase(at);
        else
            url.erase(at + 1, end - at);
    }
    return url + (url.find('?') == std::string::npos ? '?' : '&') + query;
}

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
        if (at == makers().end()) {
            std::string all;
            for (const auto& name : names())
                all += ' ' + name;
            throw std::runtime_error("set HOLDFAST_TEST_BACKEND to one of:" + all);
        }
        return at->second();
    }();
    return *one;
}

}  // namespace suite
