// Backends on the simulated clock, network and servers of tests/sim: leases end without waiting,
// and a seed goes the same way each time.
#include <exception>
#include <future>
#include <stdexcept>

#include "../sim/etcd.hpp"
#include "../sim/redis.hpp"
#include "../sim/system.hpp"
#include "../sim/zookeeper.hpp"
#include "facts_of.hpp"
#include "stage.hpp"

namespace oracle {
namespace {

namespace sim = hf::sim;

/// The servers of a backend.
struct Servers {
    virtual ~Servers() = default;
    virtual std::vector<sim::Server*> all() = 0;
};

struct RedisServers final : Servers {
    /// `tells`: clients may subscribe. Where they may not, waiters of Redlock poll, and leave marks
    /// by the rules that are written down here; when they leave the others depends on when the
    /// nodes have confirmed a subscription.
    RedisServers(sim::Kernel& k, std::size_t count, bool tells) {
        for (std::size_t i = 0; i < count; ++i) {
            nodes.push_back(std::make_unique<sim::Redis>(k, "node" + std::to_string(i)));
            if (tells) continue;
            nodes.back()->deaf = "*";
            nodes.back()->refuses_it = true;
        }
    }
    std::vector<sim::Server*> all() override {
        std::vector<sim::Server*> out;
        for (const auto& node : nodes)
            out.push_back(node.get());
        return out;
    }
    std::vector<std::unique_ptr<sim::Redis>> nodes;
};

struct EtcdServers final : Servers {
    explicit EtcdServers(sim::Kernel& k) : cluster(k, 1) {}
    std::vector<sim::Server*> all() override { return {&cluster.server(0)}; }
    sim::EtcdCluster cluster;
};

struct ZooKeeperServers final : Servers {
    explicit ZooKeeperServers(sim::Kernel& k) : ensemble(k, 1, 100 * sim::ms) {
        ensemble.dropped_containers = 0;  // with it the name would forget that it was ever used
    }
    std::vector<sim::Server*> all() override { return {&ensemble.server(0)}; }
    sim::ZkEnsemble ensemble;
};

/// Where the backend is, and the servers there.
struct Deployment {
    const char* url;  ///< the servers are 10.0.0.1, 10.0.0.2...
    std::unique_ptr<Servers> (*make)(sim::Kernel&);
};

const Deployment& deployment_of(const std::string& backend) {
    static const std::map<std::string, Deployment> all{
        {"redis",
         {"redis://10.0.0.1",
          [](sim::Kernel& k) -> std::unique_ptr<Servers> {
              return std::make_unique<RedisServers>(k, 1, true);
          }}},
        {"redlock",
         {"redlock://10.0.0.1,10.0.0.2,10.0.0.3?durable=yes",
          [](sim::Kernel& k) -> std::unique_ptr<Servers> {
              return std::make_unique<RedisServers>(k, 3, false);
          }}},
        {"etcd",
         {"etcd://10.0.0.1?robust=yes",
          [](sim::Kernel& k) -> std::unique_ptr<Servers> {
              return std::make_unique<EtcdServers>(k);
          }}},
        {"zookeeper",
         {"zookeeper://10.0.0.1?robust=yes&tick_time=100ms",
          [](sim::Kernel& k) -> std::unique_ptr<Servers> {
              return std::make_unique<ZooKeeperServers>(k);
          }}},
    };
    return all.at(backend);
}

class Simulated final : public Stage {
public:
    explicit Simulated(const std::string& backend)
        : deployment_(deployment_of(backend)), facts_(facts_of(backend)) {}

    hf::Capabilities capabilities() const override {
        hf::Diagnostics d;
        const auto chosen = hf::parse_url(deployment_.url, spi::Registry::linked(), d);
        if (!chosen) throw std::runtime_error(d.text());
        return chosen->backend->capabilities(chosen->settings);
    }

    std::optional<Difference> play(const std::vector<Operation>& all, long seed,
                                   Tally& tally) override {
        // On a thread of its own: no schedule sees what those before it left in a thread's
        // variables.
        const auto once = [&] { return run(all, seed, tally); };
        return std::async(std::launch::async, once).get();
    }

private:
    std::optional<Difference> run(const std::vector<Operation>& all, long seed, Tally& tally) {
        sim::Kernel kernel(static_cast<std::uint64_t>(seed));
        sim::System system(kernel);
        const auto servers = deployment_.make(kernel);
        sim::Process machine{.name = "clients", .local = sim::right};
        std::vector<std::unique_ptr<sim::Route>> routes;
        for (sim::Server* server : servers->all())
            routes.push_back(std::make_unique<sim::Route>(kernel, machine, *server));
        system.dial = [&](const sim::Process&, const std::string& host, std::uint16_t) {
            constexpr std::string_view before = "10.0.0.";
            return routes.at(std::stoul(host.substr(before.size())) - 1).get();
        };
        std::optional<Difference> found;
        std::exception_ptr failed;
        kernel.start(machine, "main", [&] {
            try {
                Ground ground(deployment_.url);
                ground.warm_up();
                const auto rest = [&](hf::milliseconds time) { ground.rest(time); };
                found = compare(all, "name", ground, facts_, rest, tally);
            } catch (...) {
                failed = std::current_exception();
            }
        });
        while (kernel.threads() > 0)
            if (!kernel.step()) throw std::runtime_error("it waits for ever");
        if (failed) std::rethrow_exception(failed);
        return found;
    }

    const Deployment& deployment_;
    const suite::Facts& facts_;
};

}  // namespace

const char* const backends = "redis|redlock|etcd|zookeeper";

std::unique_ptr<Stage> make_stage(const std::string& backend) {
    return std::make_unique<Simulated>(backend);
}

}  // namespace oracle
