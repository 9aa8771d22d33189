// The table of server kinds, and the adapter of each to the command.
#include <fmt/format.h>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/mariadb_server.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/postgres_servers.hpp"
#include "holdfast/lab/redis_cluster.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/redis_set.hpp"
#include "holdfast/lab/zookeeper_server.hpp"
#include "server.hpp"

namespace holdfast::lab::cli {
namespace {

template <class Options>
Options common_options(const ServerOptions& options) {
    Options result;
    result.tls = options.tls;
    result.password = options.password;
    result.config = options.config;
    return result;
}

RedisOptions redis_options(const ServerOptions& options) {
    auto result = common_options<RedisOptions>(options);
    result.append_only = options.append_only;
    return result;
}

/// Adds which certificate a client must trust, if there is one.
template <class Of>
std::vector<std::string> with_ca(std::vector<std::string> notes, bool tls, const Of& server) {
    if (tls) {
        notes.push_back("certificate to trust: " + server.ca_file().string());
    }
    return notes;
}

class Redis : public Server {
public:
    explicit Redis(const ServerOptions& options)
        : tls_(options.tls), server_(RedisServer::start(redis_options(options))) {}

    std::string url(std::uint16_t port) override { return server_.url_with_password(port); }
    std::uint16_t port() override { return server_.port(); }

    std::vector<std::string> notes() override {
        return with_ca({fmt::format("pid {}, data in {}", server_.process().pid(),
                                    server_.data_directory().string())},
                       tls_, server_);
    }

    void pause() override { server_.pause(); }
    void resume() override { server_.resume(); }
    void kill() override { server_.kill(); }
    void restart(bool fresh) override { server_.restart(fresh ? Data::fresh : Data::keep); }

private:
    bool tls_;
    RedisServer server_;
};

/// Servers that fail over. A proxy in front of it is one of the first Sentinel, which is of no use
/// to a client that then goes to the servers.
class Sentinel : public Server {
public:
    explicit Sentinel(const ServerOptions& options)
        : tls_(options.tls), set_(RedisSet::start(translated(options))) {}

    std::string url(std::uint16_t port) override {
        auto ports = set_.sentinel_ports();
        ports.front() = port;
        return set_.url(ports);
    }
    std::uint16_t port() override { return set_.sentinel_ports().front(); }
    std::vector<std::string> notes() override {
        std::vector<std::string> notes;
        for (std::size_t i = 0; i < set_.size(); ++i) {
            notes.push_back(fmt::format("server at port {}, pid {}", set_.announced(i),
                                        set_.server(i).process().pid()));
        }
        notes.push_back(fmt::format("redis-cli -p {} SENTINEL FAILOVER {}",
                                    set_.clear_sentinel_ports().front(), RedisSet::name));
        return with_ca(std::move(notes), tls_, set_.server(0));
    }
    void pause() override { set_.server(paused_ = set_.primary()).pause(); }
    void resume() override { set_.server(paused_).resume(); }
    void kill() override { set_.server(set_.primary()).kill(); }
    void restart(bool fresh) override {
        for (std::size_t i = 0; i < set_.size(); ++i) {
            if (fresh || !set_.server(i).alive()) {
                set_.server(i).restart(fresh ? Data::fresh : Data::keep);
            }
        }
        set_.wait_settled();
    }

private:
    static RedisSetOptions translated(const ServerOptions& options) {
        RedisSetOptions result;
        result.server = redis_options(options);
        return result;
    }

    bool tls_;
    RedisSet set_;
    std::size_t paused_ = 0;
};

/// Servers that share the keys. A proxy in front of it is one of the first, and of no use to a
/// client that then goes to the others.
class Cluster : public Server {
public:
    explicit Cluster(const ServerOptions& options)
        : tls_(options.tls),
          cluster_(RedisCluster::start({.server = redis_options(options), .replicas = 1})) {}

    std::string url(std::uint16_t) override { return cluster_.url(); }
    std::uint16_t port() override { return cluster_.server(0).port(); }
    std::vector<std::string> notes() override {
        std::vector<std::string> notes;
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            notes.push_back(fmt::format("server at port {}, pid {}", cluster_.server(i).port(),
                                        cluster_.server(i).process().pid()));
        }
        notes.push_back(fmt::format("redis-cli -c -p {}", port()));
        return with_ca(std::move(notes), tls_, cluster_.server(0));
    }
    void pause() override { cluster_.server(0).pause(); }
    void resume() override { cluster_.server(0).resume(); }
    void kill() override { cluster_.server(0).kill(); }
    void restart(bool fresh) override {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            if (fresh || !cluster_.server(i).alive()) {
                cluster_.server(i).restart(fresh ? Data::fresh : Data::keep);
            }
        }
        cluster_.wait_settled();
    }

private:
    bool tls_;
    RedisCluster cluster_;
};

/// A server with a SQL client for its superuser.
template <class Sql, class Options>
class SqlServer : public Server {
public:
    explicit SqlServer(const ServerOptions& options)
        : tls_(options.tls), server_(Sql::start(translated(options))) {}

    std::string url(std::uint16_t port) override { return server_.url_with_password(port); }
    std::uint16_t port() override { return server_.port(); }

    std::vector<std::string> notes() override {
        return with_ca({fmt::format("pid {}, data in {}", server_.process().pid(),
                                    server_.data_directory().string()),
                        "superuser: " + client(server_)},
                       tls_, server_);
    }

    void pause() override { server_.pause(); }
    void resume() override { server_.resume(); }
    void kill() override { server_.kill(); }
    void restart(bool fresh) override { server_.restart(fresh ? Data::fresh : Data::keep); }

private:
    static Options translated(const ServerOptions& options) {
        auto result = common_options<Options>(options);
        result.fsync = options.append_only;
        return result;
    }
    static std::string client(const PostgresServer& server) {
        return fmt::format("psql -U postgres -d holdfast -h {} -p {}",
                           server.socket_directory().string(), server.port());
    }
    static std::string client(const MariadbServer& server) {
        return fmt::format("mariadb --no-defaults -u root -S {} holdfast",
                           server.socket().string());
    }

    bool tls_;
    Sql server_;
};

using Postgres = SqlServer<PostgresServer, PostgresOptions>;
using Mariadb = SqlServer<MariadbServer, MariadbOptions>;

/// A primary and its standbys: the words for the process mean the primary.
class PostgresTrio : public Server {
public:
    explicit PostgresTrio(const ServerOptions& options)
        : servers_(PostgresServers::start(translated(options))) {}

    std::string url(std::uint16_t port) override {
        return port == servers_.port(0)
                   ? servers_.url()
                   : fmt::format("postgresql://holdfast@127.0.0.1:{}/holdfast", port);
    }
    std::uint16_t port() override { return servers_.port(0); }
    std::vector<std::string> notes() override {
        std::vector<std::string> notes;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            notes.push_back(fmt::format("{}: psql -U postgres -d holdfast -h {} -p {}",
                                        i == servers_.primary() ? "primary" : "standby",
                                        servers_.server(i).socket_directory().string(),
                                        servers_.port(i)));
        return notes;
    }
    void pause() override { servers_.server(paused_ = servers_.primary()).pause(); }
    void resume() override { servers_.server(paused_).resume(); }
    void kill() override {
        servers_.server(servers_.primary()).kill();
        servers_.promote_another();
    }
    void restart(bool fresh) override {
        if (fresh) throw LabError("a primary with standbys keeps its data");
        for (std::size_t i = 0; i < servers_.size(); ++i)
            if (!servers_.server(i).alive())
                servers_.server(i).follow(servers_.server(servers_.primary()));
    }

private:
    static PostgresServersOptions translated(const ServerOptions& options) {
        PostgresServersOptions result;
        result.server.config = options.config;
        return result;
    }

    PostgresServers servers_;
    std::size_t paused_ = 0;
};

/// One server, or several, of which the words for the process mean the leader.
template <class Servers>
class Ensemble : public Server {
public:
    explicit Ensemble(Servers servers) : servers_(std::move(servers)) {}

    std::string url(std::uint16_t port) override {
        const auto all = servers_.url();
        return port == servers_.port(0)
                   ? all
                   : fmt::format("{}127.0.0.1:{}", all.substr(0, all.find("://") + 3), port);
    }
    std::uint16_t port() override { return servers_.port(0); }
    std::vector<std::string> notes() override {
        std::vector<std::string> notes;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            notes.push_back(fmt::format("port {}, pid {}, data in {}", servers_.port(i),
                                        servers_.process(i).pid(),
                                        servers_.data_directory(i).string()));
        }
        return notes;
    }
    void pause() override { servers_.pause(paused_ = servers_.leader().value_or(0)); }
    void resume() override { servers_.resume(paused_); }
    void kill() override { servers_.kill_leader(); }
    void restart(bool fresh) override {
        if (fresh) {
            return servers_.restart_all(Data::fresh);
        }
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            if (servers_.size() == 1 || !servers_.alive(i)) {
                servers_.restart(i);
            }
        }
        servers_.wait_ready();
    }

protected:
    Servers servers_;

private:
    std::size_t paused_ = 0;
};

class ZooKeeper : public Ensemble<ZooKeeperServers> {
public:
    ZooKeeper(const ServerOptions& options, std::size_t count)
        : Ensemble(ZooKeeperServers::start({.count = count, .config = options.config})) {}
};

class Etcd : public Ensemble<EtcdServers> {
public:
    Etcd(const ServerOptions& options, std::size_t count)
        : Ensemble(EtcdServers::start(
              {.count = count, .tls = options.tls, .arguments = options.config})),
          tls_(options.tls) {}

    std::vector<std::string> notes() override {
        auto notes = Ensemble::notes();
        notes.push_back("ETCDCTL_API=3 etcdctl --endpoints " + servers_.endpoints());
        return with_ca(std::move(notes), tls_, servers_);
    }

private:
    bool tls_;
};

}  // namespace

const std::vector<ServerKind>& server_kinds() {
    static const std::vector<ServerKind> kinds = {
        {"redis", "redis-server (Debian package redis-server)",
         [](const ServerOptions& options) { return std::make_unique<Redis>(options); }},
        {"redis-sentinel",
         "three Redis servers and three Sentinels; pause and kill act on the primary",
         [](const ServerOptions& options) { return std::make_unique<Sentinel>(options); }},
        {"redis-cluster",
         "three primaries of a Redis Cluster, each with a replica; pause and kill act on the first",
         [](const ServerOptions& options) { return std::make_unique<Cluster>(options); }},
        {"postgresql", "PostgreSQL (Debian package postgresql-15), on a fresh database",
         [](const ServerOptions& options) { return std::make_unique<Postgres>(options); }},
        {"postgresql-3",
         "a primary and two standbys; kill promotes another one, restart brings it back",
         [](const ServerOptions& options) { return std::make_unique<PostgresTrio>(options); }},
        {"mysql", "MariaDB (Debian package mariadb-server-core), on a fresh database",
         [](const ServerOptions& options) { return std::make_unique<Mariadb>(options); }},
        {"mariadb", "the same",
         [](const ServerOptions& options) { return std::make_unique<Mariadb>(options); }},
        {"zookeeper", "ZooKeeper, one server (Debian package libzookeeper-java)",
         [](const ServerOptions& options) { return std::make_unique<ZooKeeper>(options, 1); }},
        {"zookeeper-3", "an ensemble of three; pause and kill act on its leader",
         [](const ServerOptions& options) { return std::make_unique<ZooKeeper>(options, 3); }},
        {"etcd", "etcd, one member (Debian package etcd-server)",
         [](const ServerOptions& options) { return std::make_unique<Etcd>(options, 1); }},
        {"etcd-3", "a cluster of three; pause and kill act on its leader",
         [](const ServerOptions& options) { return std::make_unique<Etcd>(options, 3); }},
    };
    return kinds;
}

}  // namespace holdfast::lab::cli
