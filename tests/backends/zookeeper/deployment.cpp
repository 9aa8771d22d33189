// One ZooKeeper server and three, and their faults.
#include <fmt/format.h>

#include <holdfast/lab/zookeeper_server.hpp>

#include "electing.hpp"

namespace holdfast::deployments {
namespace {

using lab::Data;

class ZooKeeper final : public Electing<lab::ZooKeeperServers> {
public:
    explicit ZooKeeper(std::size_t count)
        : Electing(lab::ZooKeeperServers::start({.count = count})) {}
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
        auto out = Electing::faults();
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

const Add one_server{"zookeeper", [] { return std::make_unique<ZooKeeper>(1); }};
const Add three_servers{"zookeeper-3", [] { return std::make_unique<ZooKeeper>(3); }};

}  // namespace
}  // namespace holdfast::deployments
