// The suite's grounds on one etcd member and on three.
#include "ground.hpp"
#include "ensemble.hpp"

namespace suite {
namespace {

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
    /// A PING of HTTP/2, by which its gRPC measures the connection.
    std::size_t asked_between() const override { return 17; }
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

const AddGround one_member{"etcd", [] { return std::make_unique<Etcd>("etcd", 1, ""); },
                           all_but({C::previous_holder, C::min_hold}), break_forgotten};
const AddGround three_members{"etcd-3",
                              [] { return std::make_unique<Etcd>("etcd-3", 3, "?robust=yes"); },
                              all_but({C::min_hold}), break_forgotten};

}  // namespace
}  // namespace suite
