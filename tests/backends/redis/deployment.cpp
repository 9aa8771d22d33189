// One Redis server that syncs each write, by itself or found by Sentinels, and three of a cluster,
// with their faults.
#include "deployment.hpp"

#include <fmt/format.h>

#include <holdfast/lab/redis_cluster.hpp>
#include <holdfast/lab/redis_server.hpp>
#include <holdfast/lab/redis_set.hpp>
#include <set>

namespace holdfast::deployments {
namespace {

using lab::Data;

class Redis final : public Deployment {
public:
    Redis() : server_(lab::RedisServer::start(options())) {}
    static lab::RedisOptions options() {
        lab::RedisOptions o;
        o.append_only = true;
        // After half an hour of locks it reads a long log at each start.
        o.cap = std::chrono::minutes(1);
        return o;
    }
    static std::string words_of(const lab::RedisServer& server) {
        return fmt::format("redis-server {}, appendonly yes, appendfsync always, no replicas",
                           server.info("server")["redis_version"]);
    }
    std::string words() const override { return words_of(server_); }
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("redis://{}?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = process_faults(server_);
        const std::vector<ServerFault> own{
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
        out.insert(out.end(), own.begin(), own.end());
        return out;
    }
    void wipe() override { server_.restart(Data::fresh); }
    void wait_ready() override { server_.wait_ready(); }

private:
    lab::RedisServer server_;
};

/// The links lead to the Sentinels. What a failover may lose is no part of the class, so they wait
/// with one for longer than any fault lasts; tests/backends/redis/failovers_test.cpp counts it.
class Sentinels final : public Deployment {
public:
    Sentinels() : set_(lab::RedisSet::start(options())) {}
    static lab::RedisSetOptions options() {
        lab::RedisSetOptions o;
        o.server = Redis::options();
        o.count = 1;
        o.down_after = std::chrono::minutes(10);
        return o;
    }
    std::string words() const override {
        return fmt::format("{}, found by three Sentinels", Redis::words_of(set_.server(0)));
    }
    std::vector<std::uint16_t> ports() const override { return set_.sentinel_ports(); }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return set_.url(ports) + "?ttl=3s&request_timeout=1s";
    }
    std::vector<ServerFault> faults() override {
        auto out = process_faults(set_.server(0));
        out.push_back({"one Sentinel stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                           auto& one = set_.sentinel(r() % 3);
                           one.pause();
                           wait(outage(r));
                           one.resume();
                       }});
        out.push_back({"two Sentinels stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                           set_.sentinel(0).pause();
                           set_.sentinel(1).pause();
                           wait(outage(r));
                           set_.sentinel(0).resume();
                           set_.sentinel(1).resume();
                       }});
        return out;
    }
    bool behind_links() const override { return false; }
    void wipe() override { set_.server(0).restart(Data::fresh); }
    void wait_ready() override { set_.server(0).wait_ready(); }

private:
    mutable lab::RedisSet set_;
};

/// The links lead to the first answers only: a client then goes to the servers themselves. As
/// above, no replica takes over.
class Cluster final : public Deployment {
public:
    Cluster() : cluster_(lab::RedisCluster::start(options())) {}
    static lab::RedisClusterOptions options() {
        lab::RedisClusterOptions o;
        o.server = Redis::options();
        o.node_timeout = std::chrono::minutes(10);
        return o;
    }
    std::string words() const override {
        return fmt::format("{}, three primaries of a cluster", Redis::words_of(cluster_.server(0)));
    }
    std::vector<std::uint16_t> ports() const override {
        std::vector<std::uint16_t> out;
        for (std::size_t i = 0; i < cluster_.size(); ++i)
            out.push_back(cluster_.server(i).port());
        return out;
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("redis+cluster://{}?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        std::vector<ServerFault> out;
        for (std::size_t i = 0; i < cluster_.size(); ++i)
            for (auto& fault : process_faults(cluster_.server(i)))
                out.push_back(std::move(fault));
        out.push_back({"slots of locks in use moved to another server",
                       [this](Random& r, const Wait& wait) { move_some(r, wait); }});
        return out;
    }
    bool behind_links() const override { return false; }
    void wipe() override {
        for (std::size_t i = 0; i < cluster_.size(); ++i)
            cluster_.server(i).restart(Data::fresh);
    }
    void wait_ready() override { cluster_.wait_settled(); }

private:
    /// Slots with keys are those of locks.
    void move_some(Random& r, const Wait& wait) {
        const std::size_t from = r() % cluster_.size(), to = (from + 1) % cluster_.size();
        std::set<unsigned> slots;
        for (const auto& key : cluster_.server(from).cli({"KEYS", "*"}).elements)
            if (slots.size() < 4) slots.insert(cluster_.slot_of(key.text));
        for (const unsigned slot : slots) {
            cluster_.begin_move(slot, to);
            wait(std::chrono::milliseconds(r() % 100));  // there is no renewal meanwhile
            cluster_.end_move(slot, to);
        }
    }

    mutable lab::RedisCluster cluster_;
};

const Add cluster{"redis-cluster", [] { return std::make_unique<Cluster>(); }};
const Add redis{"redis", [] { return std::make_unique<Redis>(); }};
const Add sentinels{"redis-sentinel", [] { return std::make_unique<Sentinels>(); }};

}  // namespace
}  // namespace holdfast::deployments
