// Five nodes of Redlock that sync each write, and their faults.
#include "deployment.hpp"

#include <fmt/format.h>

#include <holdfast/lab/redis_server.hpp>

namespace holdfast::deployments {
namespace {

using lab::Data;

class Redlock final : public Deployment {
public:
    Redlock() {
        lab::RedisOptions options;
        options.append_only = true;
        for (int i = 0; i < 5; ++i)
            nodes_.push_back(lab::RedisServer::start(options));
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

const Add redlock{"redlock", [] { return std::make_unique<Redlock>(); }};

}  // namespace
}  // namespace holdfast::deployments
