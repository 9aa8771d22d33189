#include "deployment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/postgres_server.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <holdfast/lab/zookeeper_server.hpp>
#include <stdexcept>

namespace holdfast::soak {

namespace {

using lab::Data;

/// "127.0.0.1:1,127.0.0.1:2"
std::string hosts(const std::vector<std::uint16_t>& ports) {
    std::string out;
    for (const auto port : ports)
        out += fmt::format("{}127.0.0.1:{}", out.empty() ? "" : ",", port);
    return out;
}

/// Short enough to be over within a lease, now and then too long for one (ttl 3 s).
std::chrono::milliseconds outage(Random& random) {
    return std::uniform_int_distribution(0, 9)(random) == 0 ? pick(random, 3000, 5000)
                                                            : pick(random, 50, 1500);
}

class Redis final : public Deployment {
public:
    Redis() : server_(lab::RedisServer::start(durable())) {}
    static lab::RedisOptions durable() {
        lab::RedisOptions o;
        o.append_only = true;
        return o;
    }
    std::string words() const override {
        return fmt::format("redis-server {}, appendonly yes, appendfsync always, no replicas",
                           server_.info("server")["redis_version"]);
    }
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("redis://{}?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        return {{"server killed, restarted with its data",
                 [this](Random& r, const Wait& wait) {
                     kill([&] { server_.kill(); });
                     wait(outage(r));
                     server_.restart(Data::keep);
                 }},
                {"server stopped (SIGSTOP)",
                 [this](Random& r, const Wait& wait) {
                     server_.pause();
                     wait(outage(r));
                     server_.resume();
                 }},
                {"server ended and restarted",
                 [this](Random&, const Wait&) { server_.restart(Data::keep); }},
                {"CLIENT KILL of every connection",
                 [this](Random&, const Wait&) {
                     server_.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
                     server_.cli({"CLIENT", "KILL", "TYPE", "pubsub"});
                 }},
                {"SCRIPT FLUSH",
                 [this](Random&, const Wait&) {
                     server_.cli({"SCRIPT", "FLUSH"});
                 }},
                {"no connection left (maxclients 1)", [this](Random& r, const Wait& wait) {
                     auto keep = server_.connect();
                     keep.command({"CONFIG", "SET", "maxclients", "1"});
                     keep.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
                     wait(outage(r));
                     keep.command({"CONFIG", "SET", "maxclients", "10000"});
                 }}};
    }
    void wipe() override { server_.restart(Data::fresh); }
    void wait_ready() override { server_.wait_ready(); }

private:
    lab::RedisServer server_;
};

class Redlock final : public Deployment {
public:
    Redlock() {
        for (int i = 0; i < 5; ++i)
            nodes_.push_back(lab::RedisServer::start(Redis::durable()));
    }
    std::string words() const override {
        return fmt::format("five redis-server {}, appendonly yes, appendfsync always, durable=yes",
                           nodes_[0].info("server")["redis_version"]);
    }
    std::vector<std::uint16_t> ports() const override {
        std::vector<std::uint16_t> out;
        for (const auto& node : nodes_)
            out.push_back(node.port());
        return out;
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("redlock://{}?ttl=3s&request_timeout=1s&durable=yes&node_set=soak",
                           hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        const auto one = [this](Random& r) -> lab::RedisServer& { return nodes_[any(r)]; };
        return {{"node killed, restarted with its data",
                 [this, one](Random& r, const Wait& wait) {
                     auto& node = one(r);
                     kill([&] { node.kill(); });
                     wait(outage(r));
                     node.restart(Data::keep);
                 }},
                {"two nodes killed, restarted with their data",
                 [this](Random& r, const Wait& wait) {
                     const auto first = any(r), second = (first + 1 + any(r) % 4) % 5;
                     kill([&] {
                         nodes_[first].kill();
                         nodes_[second].kill();
                     });
                     wait(outage(r));
                     nodes_[first].restart(Data::keep);
                     nodes_[second].restart(Data::keep);
                 }},
                {"node stopped (SIGSTOP)",
                 [one](Random& r, const Wait& wait) {
                     auto& node = one(r);
                     node.pause();
                     wait(outage(r));
                     node.resume();
                 }},
                {"three nodes stopped (SIGSTOP)",
                 [this](Random& r, const Wait& wait) {
                     const auto first = any(r);
                     for (std::size_t i = 0; i < 3; ++i)
                         nodes_[(first + i) % 5].pause();
                     wait(outage(r));
                     for (std::size_t i = 0; i < 3; ++i)
                         nodes_[(first + i) % 5].resume();
                 }},
                {"CLIENT KILL of every connection of a node",
                 [one](Random& r, const Wait&) {
                     one(r).cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
                 }},
                {"SCRIPT FLUSH at a node", [one](Random& r, const Wait&) {
                     one(r).cli({"SCRIPT", "FLUSH"});
                 }}};
    }
    void wipe() override {
        for (auto& node : nodes_)
            node.restart(Data::fresh);
    }
    void wait_ready() override {
        for (auto& node : nodes_)
            node.wait_ready();
    }

private:
    static std::size_t any(Random& r) {
        return std::uniform_int_distribution<std::size_t>(0, 4)(r);
    }
    std::vector<lab::RedisServer> nodes_;
};

class Postgres final : public Deployment {
public:
    Postgres() : server_(lab::PostgresServer::start(options())) {}
    static lab::PostgresOptions options() {
        lab::PostgresOptions o;
        o.fsync = true;
        o.config = {"max_connections = 200"};
        return o;
    }
    std::string words() const override {
        return "PostgreSQL " + server_.value("SHOW server_version") + ", fsync on, no standby";
    }
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("postgresql://holdfast@{}/holdfast?ttl=3s&request_timeout=1s",
                           hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        return {{"server killed, restarted with its data",
                 [this](Random& r, const Wait& wait) {
                     kill([&] { server_.kill(); });
                     wait(outage(r));
                     server_.restart(Data::keep);
                 }},
                {"server stopped (SIGSTOP)",
                 [this](Random& r, const Wait& wait) {
                     server_.pause();
                     wait(outage(r));
                     server_.resume();
                 }},
                {"server ended and restarted",
                 [this](Random&, const Wait&) { server_.restart(Data::keep); }},
                {"pg_terminate_backend of every connection",
                 [this](Random&, const Wait&) {
                     server_.sql(
                         "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                         "usename = 'holdfast' AND pid <> pg_backend_pid()");
                 }},
                {"no connection left (CONNECTION LIMIT 0)",
                 [this](Random& r, const Wait& wait) {
                     server_.sql("ALTER ROLE holdfast CONNECTION LIMIT 0");
                     server_.sql(
                         "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                         "usename = 'holdfast' AND pid <> pg_backend_pid()");
                     wait(outage(r));
                     server_.sql("ALTER ROLE holdfast CONNECTION LIMIT -1");
                 }},
                {"the table locked by another session", [this](Random& r, const Wait&) {
                     server_.sql(fmt::format(
                         "DO $$ BEGIN IF to_regclass('holdfast_lease') IS NOT NULL THEN "
                         "LOCK TABLE holdfast_lease IN ACCESS EXCLUSIVE MODE; "
                         "PERFORM pg_sleep({}); END IF; END $$",
                         static_cast<double>(pick(r, 20, 1200).count()) / 1000.0));
                 }}};
    }
    void wipe() override { server_.restart(Data::fresh); }
    void wait_ready() override { server_.wait_ready(); }
    /// PostgreSQL's manual, asynchronous commit: at most three times that.
    std::chrono::milliseconds unsynced_release() override {
        const auto delay =
            server_.value("SELECT setting FROM pg_settings WHERE name = 'wal_writer_delay'");
        return 3 * std::chrono::milliseconds(std::stol(delay));
    }

private:
    lab::PostgresServer server_;
};

/// One server, or several that elect a leader among them.
template <class Servers>
class Ensemble : public Deployment {
public:
    explicit Ensemble(Servers servers) : servers_(std::move(servers)) {}
    std::vector<std::uint16_t> ports() const override {
        std::vector<std::uint16_t> out;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            out.push_back(servers_.port(i));
        return out;
    }
    std::vector<ServerFault> faults() override {
        std::vector<ServerFault> out{
            {"server killed, restarted with its data",
             [this](Random& r, const Wait& wait) {
                 const auto one = any(r);
                 kill([&] { servers_.kill(one); });
                 wait(outage(r));
                 servers_.restart(one, Data::keep);
             }},
            {"server stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                 const auto one = any(r);
                 servers_.pause(one);
                 wait(outage(r));
                 servers_.resume(one);
             }}};
        if (servers_.size() == 1) return out;
        out.push_back(
            {"leader killed, restarted with its data", [this](Random& r, const Wait& wait) {
                 std::size_t leader = 0;
                 kill([&] { leader = servers_.kill_leader(); });
                 wait(outage(r));
                 servers_.restart(leader, Data::keep);
             }});
        out.push_back({"leader stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                           const auto leader = servers_.leader();
                           if (!leader) return;
                           servers_.pause(*leader);
                           wait(outage(r));
                           servers_.resume(*leader);
                       }});
        return out;
    }
    void wipe() override { servers_.restart_all(Data::fresh); }
    void wait_ready() override { servers_.wait_ready(); }

protected:
    std::size_t any(Random& r) const {
        return std::uniform_int_distribution<std::size_t>(0, servers_.size() - 1)(r);
    }
    Servers servers_;
};

class ZooKeeper final : public Ensemble<lab::ZooKeeperServers> {
public:
    explicit ZooKeeper(std::size_t count)
        : Ensemble(lab::ZooKeeperServers::start({.count = count})) {}
    std::string words() const override {
        const auto version = servers_.ask(0, "srvr");
        return fmt::format("{} of {}, tickTime 100 ms, every write synced",
                           servers_.size() == 1 ? "one server" : "three servers",
                           version.substr(0, version.find(',')));
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("zookeeper://{}?ttl=3s&request_timeout=1s&tick_time=100ms",
                           hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = Ensemble::faults();
        out.push_back({"server ended and restarted",
                       [this](Random& r, const Wait&) { servers_.restart(any(r), Data::keep); }});
        if (servers_.size() == 1) return out;
        out.push_back(
            {"all servers killed, restarted with their data", [this](Random& r, const Wait& wait) {
                 kill([&] {
                     for (std::size_t i = 0; i < servers_.size(); ++i)
                         servers_.kill(i);
                 });
                 wait(outage(r));
                 servers_.restart_all(Data::keep);
             }});
        return out;
    }
};

class Etcd final : public Ensemble<lab::EtcdServers> {
public:
    explicit Etcd(std::size_t count) : Ensemble(lab::EtcdServers::start({.count = count})) {}
    std::string words() const override {
        return fmt::format("{}, every write synced",
                           servers_.size() == 1 ? "one etcd member" : "three etcd members");
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("etcd://{}?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = Ensemble::faults();
        out.push_back({"all servers restarted",
                       [this](Random&, const Wait&) { servers_.restart_all(Data::keep); }});
        out.push_back({"history compacted", [this](Random&, const Wait&) { servers_.compact(); }});
        return out;
    }
};

using Maker = std::unique_ptr<Deployment> (*)();

constexpr std::pair<std::string_view, Maker> makers[]{
    {"redis", []() -> std::unique_ptr<Deployment> { return std::make_unique<Redis>(); }},
    {"redlock", []() -> std::unique_ptr<Deployment> { return std::make_unique<Redlock>(); }},
    {"postgresql", []() -> std::unique_ptr<Deployment> { return std::make_unique<Postgres>(); }},
    {"zookeeper", []() -> std::unique_ptr<Deployment> { return std::make_unique<ZooKeeper>(1); }},
    {"zookeeper-3", []() -> std::unique_ptr<Deployment> { return std::make_unique<ZooKeeper>(3); }},
    {"etcd", []() -> std::unique_ptr<Deployment> { return std::make_unique<Etcd>(1); }},
    {"etcd-3", []() -> std::unique_ptr<Deployment> { return std::make_unique<Etcd>(3); }},
};

}  // namespace

std::unique_ptr<Link> Deployment::link() const {
    auto out = std::make_unique<Link>();
    for (const auto port : ports())
        out->emplace_back(port);
    return out;
}

std::string Deployment::url(const Link& link) const {
    std::vector<std::uint16_t> through;
    for (const auto& proxy : link)
        through.push_back(proxy.port());
    return url(through);
}

const std::vector<std::string>& deployments() {
    static const auto all = [] {
        std::vector<std::string> names;
        for (const auto& [name, make] : makers)
            names.emplace_back(name);
        return names;
    }();
    return all;
}

std::unique_ptr<Deployment> start(std::string_view name) {
    for (const auto& [known, make] : makers)
        if (known == name) return make();
    throw std::invalid_argument(
        fmt::format("no backend '{}'; choose one of {}", name, fmt::join(deployments(), ", ")));
}

}  // namespace holdfast::soak
