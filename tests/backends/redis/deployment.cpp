// One Redis server that syncs each write, and its faults.
#include "deployment.hpp"

#include <fmt/format.h>

#include <holdfast/lab/redis_server.hpp>

namespace holdfast::deployments {
namespace {

using lab::Data;

class Redis final : public Deployment {
public:
    Redis() : server_(lab::RedisServer::start(options())) {}
    static lab::RedisOptions options() {
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

const Add redis{"redis", [] { return std::make_unique<Redis>(); }};

}  // namespace
}  // namespace holdfast::deployments
