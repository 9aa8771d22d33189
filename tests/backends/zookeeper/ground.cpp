// The suite's grounds on one ZooKeeper server and on three.
#include "ground.hpp"
#include "ensemble.hpp"
#include "zookeeper_client.hpp"

namespace suite {
namespace {

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

const AddGround one_server{
    "zookeeper", [] { return std::make_unique<ZooKeeper>("zookeeper", 1, "?tick_time=100ms"); },
    all_but({C::previous_holder, C::min_hold}), break_forgotten};
const AddGround three_servers{
    "zookeeper-3",
    [] {
        return std::make_unique<ZooKeeper>("zookeeper-3", 3,
                                           "?tick_time=100ms&robust=yes&request_timeout=2s");
    },
    all_but({C::min_hold}),
    {errc::lost, hf::ReleaseResult::already_expired, hf::PreviousHolder::released}};

}  // namespace
}  // namespace suite
