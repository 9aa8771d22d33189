// The deployments that are simulated, and what their servers know of holders.

#include <atomic>

#include "deployments.hpp"
#include "etcd.hpp"
#include "zookeeper_order.hpp"

// Of the ZooKeeper client library: it asks its servers in the order of the URL.
extern "C" void zoo_deterministic_conn_order(int);

namespace holdfast::sim {
namespace {

/// One server, or three of which one leads.
template <class Servers>
class Cluster : public Deployment {
public:
    std::vector<Listening> servers() override {
        std::vector<Listening> all;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            all.push_back({host(i), port_, &servers_.server(i)});
        return all;
    }
    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow,   slow, cut,   cut,     break_off, break_off,
                                     freeze, kill, pause, restart, isolate,   isolate};
        if (unsafe) all.insert(all.end(), {flush, flush, flush});
        return all;
    }
    void begin(const Fault& f) override {
        const std::size_t server = f.server % servers_.size();
        const Nanos until = kernel_.now() + f.lasts;
        switch (f.kind) {
            case Fault::Kind::restart:
                return servers_.restart(server, f.lasts);
            case Fault::Kind::pause:
                return servers_.pause(server, until);
            case Fault::Kind::isolate:
                return servers_.isolate(server, until);
            case Fault::Kind::flush:
                return servers_.flush();
            default:
                break;
        }
    }
    void heal() override { servers_.recover(); }
    bool tells_breaks() const override { return false; }
    /// What is of a client lasts longer when the leader changes, and in etcd for whole seconds.
    Nanos mourning() const override { return 8 * second; }
    /// A chain of requests, one after the answer to another, has one time-out.
    Nanos farthest(Nanos request_timeout) const override { return request_timeout / 4; }

protected:
    template <class... More>
    Cluster(Kernel& k, std::uint16_t port, More... more)
        : kernel_(k),
          servers_(k, k.random().chance(300) ? 1 : 3, more...),
          robust_(k.random().chance(300)),
          port_(port) {}

    /// "SCHEME://HOST:PORT,HOST:PORT/locks?ttl=..."
    std::string url_of(const std::string& scheme, const World& w) {
        std::string hosts;
        for (const Listening& one : servers())
            hosts += (hosts.empty() ? "" : ",") + one.host + ":" + std::to_string(one.port);
        return scheme + "://" + hosts + "/locks?ttl=" + std::to_string(w.ttl.count()) + "ms" +
               (robust_ ? "&robust=yes" : "");
    }
    /// Where the nodes or keys of a name are.
    static std::string line_of(const Name& n) { return "/locks/" + n.text + "/"; }

    Kernel& kernel_;
    Servers servers_;

    const bool robust_;

private:
    const std::uint16_t port_;
};

class Etcd final : public Cluster<EtcdCluster> {
public:
    explicit Etcd(Kernel& k) : Cluster(k, 2379) {}

    std::string url(const World& w) override {
        ttl_ = w.ttl.count() * ms;
        if (w.calm) servers_.slowest = 2 * ms;
        // An owner whose key was deleted has left, and does not come back.
        servers_.store().asked_for = [this, &w](const std::string& key, bool made) {
            for (std::size_t i = 0; i < w.names.size(); ++i)
                if (!made && key.starts_with(line_of(w.names[i]))) {
                    // One that was broken before it knew of its grant asks anew.
                    if (!w.breaks_now(i)) left_.insert(key);
                } else if (made && wrong_.empty() && left_.contains(key))
                    wrong_ = key + " has left, and stands in line again";
        };
        return url_of("etcd", w);
    }
    std::string wrong() const override { return wrong_; }
    /// A release is remembered as long as the lease that it ended.
    Memory memory() const override { return {.any = robust_, .releases = false}; }
    /// In whole seconds, at least its leader's shortest one, and looked at now and then.
    Nanos lasts(Nanos ttl) const override { return std::max(2 * second, ttl + second) + second; }
    /// The next leader lets leases begin anew, also those that their clients have given up.
    Nanos rest() const override {
        return 1500 * ms + (servers_.elections() == 0 ? 0 : ttl_ + 6 * second);
    }
    std::string contradicts(const Belief& b, const Name& n) override {
        const auto* key = servers_.store().find(line_of(n) + b.owner);
        if (key == nullptr) return "its key is not there";
        const Nanos believed = b.process->when(b.lease->valid_until().time_since_epoch().count());
        const Nanos ends = servers_.ends(key->lease);
        if (ends < believed + n.options.lock_delay.count() * ms * 99 / 100)
            return "its lease ends " + std::to_string((believed - ends) / us) +
                   " us before it does";
        return passed(*key, n, b.limit);
    }
    std::string left(const std::vector<Name>& names, bool killed) override {
        for (const Name& n : names)
            for (const auto& [key, is] : servers_.store().keys)
                if (key.starts_with(line_of(n)) && !(killed && is.lease != 0))
                    return key + " is there: " + is.value;
        return {};
    }

private:
    /// In the order of creation nobody is let in who does not fit beside all before it.
    std::string passed(const EtcdStore::Key& key, const Name& n, std::uint64_t limit) const {
        const std::string line = line_of(n);
        std::uint64_t sum = units(key.value, n);
        for (auto at = servers_.store().keys.lower_bound(line);
             at != servers_.store().keys.end() && at->first.starts_with(line); ++at)
            if (at->second.created < key.created) sum += units(at->second.value, n);
        if (sum <= (n.options.kind == Kind::semaphore ? limit : many)) return {};
        return "it has passed others in line";
    }
    /// Of what stands in a key: "hf1 OWNER", "hf1s OWNER", "hf1pLIMIT:PERMITS OWNER".
    static std::uint64_t units(const std::string& value, const Name& n) {
        if (n.options.kind == Kind::semaphore) return std::stoul(value.substr(value.find(':') + 1));
        return value.starts_with("hf1s") ? 1 : many;
    }
    Nanos ttl_ = 0;
    std::set<std::string> left_;
    std::string wrong_;
};

class ZooKeeper final : public Cluster<ZkEnsemble> {
public:
    explicit ZooKeeper(Kernel& k) : Cluster(k, 2181, tick), order_(servers_) {
        ::zoo_deterministic_conn_order(1);
    }

    std::string url(const World& w) override {
        world_ = &w;
        std::string named = std::to_string(tick / ms) + "ms";
        if (w.calm) {
            servers_.slowest = 2 * ms;
            // Heartbeats are farther apart than a renewal may take.
            if (kernel_.random().chance(500))
                named = std::to_string(w.ttl.count() / 3) +
                        "ms&request_timeout=" + std::to_string(w.ttl.count() / 6) + "ms";
        }
        return url_of("zookeeper", w) + "&tick_time=" + named;
    }
    int time_outs() const override { return 2; }
    /// Of who stood in line before only the numbers of the nodes are left.
    Memory memory() const override { return {.any = robust_, .releases = false, .readers = true}; }
    bool changes_limits() const override { return true; }

    std::string contradicts(const Belief& b, const Name& n) override {
        // Of an earlier session one of the same owner may be left.
        bool there = false;
        Nanos ends = 0;
        nodes_of(n, [&](const std::string&, const ZkNode& node) {
            if (node.data.find(b.owner) == node.data.npos) return;
            there = true;
            ends = std::max(ends, servers_.ends(node.session));
        });
        if (!there) return "its node is not there";
        const Nanos believed = b.process->when(b.lease->valid_until().time_since_epoch().count());
        const Nanos needed = believed + n.options.lock_delay.count() * ms * 99 / 100;
        if (ends < needed)
            return "its session ends " + std::to_string((needed - ends) / us) + " us too early";
        LockOptions options = n.options;
        options.limit = b.limit;
        // A break with `now` deletes the nodes of permits one after another.
        if (!world_->breaks_now(b.name) && order_.passed(*b.lease, b.owner, line_of(n), options))
            return "it has passed others in line";
        return {};
    }
    std::string left(const std::vector<Name>& names, bool) override {
        std::string out;
        for (const Name& n : names)
            nodes_of(n, [&](const std::string& path, const ZkNode& node) {
                if (out.empty()) out = path + " is there: " + node.data;
            });
        return out;
    }

private:
    static constexpr Nanos tick = 100 * ms;
    ZkOrder order_;
    const World* world_ = nullptr;
    /// Of holders and waiters; permits that are held and those that wait are in folders.
    template <class Visit>
    void nodes_of(const Name& n, Visit visit) const {
        const std::string parent = line_of(n);
        const auto& all = servers_.committed().nodes;
        for (auto at = all.lower_bound(parent); at != all.end() && at->first.starts_with(parent);
             ++at)
            if (at->second.session != 0 && at->first.find("/locks/", 1) == at->first.npos)
                visit(at->first, at->second);
    }
};

/// No server and no network: threads that meet.
class InProcess final : public Deployment {
public:
    std::string url(const World& w) override {
        // A store lives as long as its process, so each run has its own.
        static std::atomic<unsigned> runs{0};
        return "memory:run" + std::to_string(++runs) + "?ttl=" + std::to_string(w.ttl.count()) +
               "ms";
    }
    bool one_machine() const override { return true; }
    std::vector<Fault::Kind> faults(bool) const override { return {Fault::Kind::freeze}; }
};

}  // namespace

std::unique_ptr<Deployment> make_deployment(const std::string& backend, Kernel& k,
                                            const Options& o) {
    if (backend == "redis") return make_redis(k, o);
    if (backend == "redis-sentinel") return make_redis_sentinel(k, o);
    if (backend == "redis-cluster") return make_redis_cluster(k, o);
    if (backend == "redlock") return make_redlock(k, o);
    if (backend == "etcd") return std::make_unique<Etcd>(k);
    if (backend == "zookeeper") return std::make_unique<ZooKeeper>(k);
    if (backend == "memory") return std::make_unique<InProcess>();
    return nullptr;
}

}  // namespace holdfast::sim
