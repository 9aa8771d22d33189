// One etcd member and three, and their faults.
#include <fmt/format.h>

#include <holdfast/lab/etcd_server.hpp>

#include "electing.hpp"

namespace holdfast::deployments {
namespace {

using lab::Data;

class Etcd final : public Electing<lab::EtcdServers> {
public:
    explicit Etcd(std::size_t count) : Electing(lab::EtcdServers::start({.count = count})) {}
    std::string words() const override {
        return fmt::format("{}, every write synced",
                           servers_.size() == 1 ? "one etcd member" : "three etcd members");
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("etcd://{}?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = Electing::faults();
        out.push_back({"all servers restarted",
                       [this](Random&, const Wait&) { servers_.restart_all(Data::keep); }});
        out.push_back({"history compacted", [this](Random&, const Wait&) { servers_.compact(); }});
        return out;
    }
};

const Add one_member{"etcd", [] { return std::make_unique<Etcd>(1); }};
const Add three_members{"etcd-3", [] { return std::make_unique<Etcd>(3); }};

}  // namespace
}  // namespace holdfast::deployments
