// The suite's grounds on Redis: notified, polling, the plain mode, found by Sentinels, and a
// cluster.
#include "ground.hpp"
#include "holdfast/lab/redis_cluster.hpp"
#include "holdfast/lab/redis_set.hpp"
#include "restartable.hpp"

namespace suite {
namespace {

/// What does not depend on how clients find the server, or the servers, as one.
class OneServer : public Restartable<RedisNodes> {
public:
    Proxies* proxy() override { return &proxies_; }
    RedisNodes* foreign_client() override { return &nodes_; }
    std::string other_mode() const override { return "mode=plain"; }
    bool close_takes_back() const override { return true; }
    bool plant_stranger(const std::string& name) override {
        return nodes_.cli({"RPUSH", name, "not a lock"}).integer == 1;
    }
    bool stranger_is_whole(const std::string& name) override { return nodes_.is_stranger(name); }
    bool erase_behind(const std::string& name) override {
        return nodes_.cli({"DEL", name}).integer == 1;
    }

protected:
    /// The servers outlive it.
    OneServer(std::string name, std::vector<lab::RedisServer*> servers,
              std::vector<lab::Proxy> proxies)
        : Restartable(std::move(name)),
          all_(std::move(proxies)),
          nodes_(std::move(servers)),
          proxies_(pointers(all_), Proxies::Asked::one) {}
    OneServer(std::string name, lab::RedisServer& server)
        : OneServer(std::move(name), {&server}, before(server.port())) {}
    RedisNodes& machine() override { return nodes_; }
    std::uint16_t proxy_port() const { return all_.front().port(); }
    static lab::RedisOptions options() {
        lab::RedisOptions o;
        o.append_only = true;
        // Servers are killed here, machines are not: the page cache outlives them, and a disk that
        // is busy syncing for others would look like a server that hangs.
        o.append_fsync = "no";
        return o;
    }

private:
    static std::vector<lab::Proxy> before(std::uint16_t port) {
        std::vector<lab::Proxy> one;
        one.emplace_back(port);
        return one;
    }
    static std::vector<lab::Proxy*> pointers(std::vector<lab::Proxy>& all) {
        std::vector<lab::Proxy*> out;
        for (auto& proxy : all)
            out.push_back(&proxy);
        return out;
    }

    std::vector<lab::Proxy> all_;
    RedisNodes nodes_;
    Proxies proxies_;
};

template <class Servers>
struct Owner {
    Servers servers;
};

class Redis final : Owner<lab::RedisServer>, public OneServer {
public:
    Redis(std::string name, std::string query)
        : Owner{lab::RedisServer::start(options())},
          OneServer(std::move(name), servers),
          query_(std::move(query)) {}
    std::string other_mode() const override {
        return query_ == "?mode=plain" ? "mode=fenced" : OneServer::other_mode();
    }

private:
    std::string base_url() const override { return servers.url() + query_; }
    std::string proxied_base_url() const override {
        return servers.url_with_password(proxy_port()) + query_;
    }
    std::string query_;
};

/// A primary without replicas, so that it stays the primary whatever is done to it. The Sentinels
/// know it under a second name by the address of its proxy.
class RedisSentinel final : Owner<lab::RedisSet>, public OneServer {
public:
    RedisSentinel()
        : Owner{lab::RedisSet::start(set())}, OneServer("redis-sentinel", servers.server(0)) {
        for (std::size_t i = 0; i < servers.sentinel_ports().size(); ++i)
            servers.ask_sentinel(i, {"SENTINEL", "MONITOR", proxied, "127.0.0.1",
                                     std::to_string(proxy_port()), "2"});
    }

private:
    static constexpr const char* proxied = "proxied";
    static lab::RedisSetOptions set() {
        lab::RedisSetOptions o;
        o.server = options();
        o.count = 1;
        o.down_after = 10min;
        return o;
    }
    std::string base_url() const override { return servers.url(); }
    std::string proxied_base_url() const override {
        const std::string url = servers.url();
        return url.substr(0, url.rfind('/') + 1) + proxied;
    }
};

/// Three primaries. They name no host, only ports, so a client that was given another address of
/// this machine stays with the proxies that listen there.
class RedisCluster final : Owner<lab::RedisCluster>, public OneServer {
public:
    RedisCluster()
        : Owner{lab::RedisCluster::start(cluster())},
          OneServer("redis-cluster", all(servers), beside(servers)) {}
    bool restart_server(lab::Data data) override {
        OneServer::restart_server(data);
        servers.wait_settled();
        return true;
    }
    bool in_slots() const override { return true; }

private:
    static lab::RedisClusterOptions cluster() {
        lab::RedisClusterOptions o;
        o.server = options();
        o.server.config.emplace_back("cluster-preferred-endpoint-type unknown-endpoint");
        o.node_timeout = 10min;
        return o;
    }
    static std::vector<lab::RedisServer*> all(lab::RedisCluster& of) {
        std::vector<lab::RedisServer*> out;
        for (std::size_t i = 0; i < of.size(); ++i)
            out.push_back(&of.server(i));
        return out;
    }
    static std::vector<lab::Proxy> beside(lab::RedisCluster& of) {
        std::vector<lab::Proxy> out;
        for (std::size_t i = 0; i < of.size(); ++i)
            out.push_back(lab::Proxy::beside(of.server(i).port()));
        return out;
    }
    std::string base_url() const override { return servers.url(); }
    std::string proxied_base_url() const override { return servers.url(lab::Proxy::beside_host); }
};

const AddGround redis_cluster{"redis-cluster", [] { return std::make_unique<RedisCluster>(); },
                              all_but({C::watch}), break_reason_kept};
const AddGround redis{"redis", [] { return std::make_unique<Redis>("redis", ""); },
                      all_but({C::watch}), break_reason_kept};
const AddGround redis_sentinel{"redis-sentinel", [] { return std::make_unique<RedisSentinel>(); },
                               all_but({C::watch}), break_reason_kept};
const AddGround redis_poll{"redis-poll",
                           [] { return std::make_unique<Redis>("redis-poll", "?wait=poll"); },
                           all_but({C::fifo, C::notified, C::watch}), break_reason_kept};
const AddGround redis_plain{
    "redis-plain", [] { return std::make_unique<Redis>("redis-plain", "?mode=plain"); },
    mutexes_but({C::fencing, C::fifo, C::notified, C::previous_holder}), break_forgotten};

}  // namespace
}  // namespace suite
