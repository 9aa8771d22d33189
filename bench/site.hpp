// The servers of one run: started by the lab, or the user's own.
#pragma once
#include <filesystem>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/mariadb_server.hpp>
#include <holdfast/lab/postgres_server.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <holdfast/lab/zookeeper_server.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deployment.hpp"
#include "measure/row.hpp"
#include "options.hpp"

namespace holdfast::bench {

/// One way to lock: a backend in one mode on one server.
struct Deployment {
    std::string backend;  ///< "redis"
    std::string variant;  ///< "default", "plain", "poll", "durable"
    std::string open;     ///< what Client::open takes; in JSON and messages only without secrets
    std::string config_file;
    std::string prefix;      ///< of every lock name
    std::string durability;  ///< for people: what a grant survives
    bool in_process = false;
    bool behind_proxies = true;  ///< clients reach its servers by the addresses that they are given

    std::string label() const { return variant == "default" ? backend : backend + " " + variant; }
};

class Site {
public:
    /// Starts what `options` needs. A server that does not start becomes a row, never an exception.
    Site(const Options& options, Rows& rows);

    const std::vector<Deployment>& deployments() const { return deployments_; }
    const Deployment* find(std::string_view backend, std::string_view variant = "default") const;
    /// Null when it did not start, or with the user's own servers.
    lab::RedisServer* redis() { return redis_ ? &*redis_ : nullptr; }
    lab::RedisServer* durable_redis() { return durable_ ? &*durable_ : nullptr; }
    lab::PostgresServer* postgresql() { return postgresql_ ? &*postgresql_ : nullptr; }
    lab::MariadbServer* mysql() { return mysql_ ? &*mysql_ : nullptr; }
    lab::ZooKeeperServers* zookeeper() { return zookeeper_ ? &*zookeeper_ : nullptr; }
    lab::EtcdServers* etcd() { return etcd_ ? &*etcd_ : nullptr; }
    /// Of redlock; empty when they did not start.
    std::vector<lab::RedisServer>& redlock_nodes() { return nodes_; }
    std::vector<std::uint16_t> redlock_ports() const;
    bool has_redis() const { return redis_.has_value(); }
    std::filesystem::path sqlite_file() const { return folder_ / "locks.db"; }
    std::filesystem::path folder() const { return folder_.path(); }
    /// "redis-server" -> "7.0.15, appendonly no", ...: for the report.
    std::map<std::string, std::string> facts();

    /// Removes what the run left at the user's own server and says what it could not remove. A lock
    /// that is still held or queued is a violated row.
    void clean_up(Rows& rows);

private:
    void start_lab(Rows&);
    void start_redis(Rows&);
    void start_redlock();
    void start_postgresql();
    void start_mysql();
    void start_zookeeper();
    void start_etcd();
    void open_own(const Options&, Rows&);

    lab::TempDir folder_;
    std::optional<lab::RedisServer> redis_, durable_;
    std::vector<lab::RedisServer> nodes_;
    std::optional<lab::PostgresServer> postgresql_;
    std::optional<lab::MariadbServer> mysql_;
    std::optional<lab::ZooKeeperServers> zookeeper_;
    std::optional<lab::EtcdServers> etcd_;
    /// Of backends that no scenario treats apart.
    std::vector<std::unique_ptr<deployments::Deployment>> others_;
    std::vector<Deployment> deployments_;
    bool own_ = false;
};

/// The least time to live of a lease depends on elections; these are short.
lab::EtcdOptions short_elections();

/// The file system type of a folder: "ext4", "tmpfs", ...: fsync costs nothing on some.
std::string file_system(const std::filesystem::path&);

}  // namespace holdfast::bench
