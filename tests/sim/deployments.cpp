// The deployments that are simulated, and what their servers know of holders.

#include <array>
#include <atomic>
#include <optional>

#include "etcd.hpp"
#include "redis_order.hpp"
#include "world.hpp"
#include "zookeeper_order.hpp"

// Of the ZooKeeper client library: it asks its servers in the order of the URL.
extern "C" void zoo_deterministic_conn_order(int);

namespace holdfast::sim {
namespace {

std::string host(std::size_t i) {
    return "10.0.0." + std::to_string(i + 1);
}

class OneRedis final : public Deployment {
public:
    OneRedis(Kernel& k, const Options& o)
        : kernel_(k),
          server_(k, "redis"),
          mode_(o.unsafe ? 0 : k.random().below(5)),
          random_(o.seed ^ 0xCA11U) {
        server_.machine.ppm = k.random().between(-3000, 3000);
        // One client cannot be notified.
        if (!random_.chance(300)) return;
        server_.deaf = "client" + std::to_string(random_.below(2));
        server_.refuses_it = random_.chance(500);
    }

    std::string url(const World& w) override {
        if (w.calm) server_.deaf.clear();  // its first call waits for a subscription
        if (mode_ != plain) {
            order_.emplace(server_, w.names);
            server_.ran = [this](const auto& command, const auto& reply, const Process& client) {
                if (wrong_.empty()) wrong_ = order_->look(command, reply, client);
            };
        }
        static constexpr std::array<const char*, 5> modes{"", "", "&wait=poll",
                                                          "&handover=confirmed", "&mode=plain"};
        return "redis://10.0.0.1:6379?ttl=" + std::to_string(w.ttl.count()) + "ms" +
               modes.at(mode_);
    }
    bool has(Kind kind) const override { return mode_ != plain || kind == Kind::mutex; }
    bool fences() const override { return mode_ != plain; }
    Memory memory() const override { return {.any = mode_ != plain, .claims = false}; }
    bool tells_breaks() const override { return mode_ != plain; }
    /// Who polls stands in line where readers or permits are: a mutex knows of none.
    bool ages(const Name& n, Mode mode) const override {
        if (mode_ == polls) return n.options.kind == Kind::semaphore || mode == Mode::shared;
        return mode_ != plain;
    }
    std::vector<Listening> servers() override { return {{"10.0.0.1", 6379, &server_}}; }

    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow,      slow,   cut,  cut,   break_off,
                                     break_off, freeze, kill, pause, restart};
        if (unsafe) all.insert(all.end(), {lose_writes, lose_writes, clock_jump});
        return all;
    }

    void begin(const Fault& f) override {
        switch (f.kind) {
            case Fault::Kind::restart:
                return server_.restart(f.lasts);
            case Fault::Kind::pause:
                return server_.pause(kernel_.now() + f.lasts);
            case Fault::Kind::lose_writes:
                server_.keep();
                return kernel_.after(f.how % 1000 * ms, [this, lasts = f.lasts] {
                    server_.forget_writes();
                    server_.restart(lasts);
                });
            case Fault::Kind::clock_jump:
                return server_.machine.jump(kernel_.now(), 10 * second);
            default:
                break;
        }
    }
    void heal() override { server_.recover(); }

    std::string contradicts(const Belief& b, const Name& n) override {
        const model::Store& store = server_.store();
        const auto* lock = store.find(n.text);
        if (lock == nullptr) return "its key is not there";
        Nanos until = lock->expires;
        if (lock->text != b.owner) {
            const auto* parts = store.find("{" + n.text + "}:hf:r");
            const bool marked = lock->text.starts_with("hf:s:") || lock->text.starts_with("hf:p:");
            if (!marked || parts == nullptr) return "its key says " + lock->text;
            for (std::uint32_t i = 1; i <= b.lease->permits(); ++i) {
                const auto part =
                    parts->scores.find(i == 1 ? b.owner : b.owner + "#" + std::to_string(i));
                if (part == parts->scores.end()) return "a part of it is not there";
                until = std::min(until, static_cast<Nanos>(part->second));
            }
        }
        const Nanos believed = b.process->when(b.lease->valid_until().time_since_epoch().count());
        until -= n.options.lock_delay.count();
        if (server_.machine.when(until * ms) < believed)
            return "the server ends it " +
                   std::to_string((believed - server_.machine.when(until * ms)) / us) +
                   " us before it does";
        return {};
    }

    std::string wrong() const override { return wrong_; }
    bool keeps(const std::string& owner, const Name& n) override {
        return mode_ != plain && RedisOrder::has(server_.store(), n, owner);
    }
    std::string left(const std::vector<Name>& names, bool killed) override {
        const model::Store& store = server_.store();
        for (const Name& n : names) {
            const auto* lock = store.find(n.text);
            // A request that comes late acquires in this mode, until its ttl.
            if (lock != nullptr && mode_ != plain) return n.text + " is held: " + lock->text;
            if (const auto waiter = order_ ? order_->stands(n) : ""; !waiter.empty() && !killed)
                return n.text + " has a line: " + waiter;
        }
        return {};
    }

private:
    static constexpr std::size_t polls = 2, plain = 4;
    Kernel& kernel_;
    Redis server_;
    const std::size_t mode_;
    Random random_;  ///< so that what it decides changes nothing else
    std::optional<RedisOrder> order_;
    std::string wrong_;
};

/// Several servers, of which a majority grants.
class Redlock final : public Deployment {
public:
    explicit Redlock(Kernel& k)
        : kernel_(k), fencing_(!k.random().chance(250)), durable_(k.random().chance(500)) {
        const std::size_t count = k.random().chance(300) ? 5 : k.random().chance(800) ? 3 : 4;
        for (std::size_t i = 0; i < count; ++i) {
            nodes_.push_back(std::make_unique<Redis>(k, "node" + std::to_string(i)));
            Process& machine = nodes_.back()->machine;
            machine.ppm = k.random().between(-3000, 3000);
            if (!durable_) machine.local = epoch + right + k.random().between(0, 100 * ms);
        }
    }

    std::string url(const World& w) override {
        std::string hosts;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            hosts += (i == 0 ? "" : ",") + host(i) + ":6379";
        return "redlock://" + hosts + "?ttl=" + std::to_string(w.ttl.count()) +
               "ms&max_ttl=" + std::to_string(max_ttl / second) + "s" +
               (fencing_ ? "" : "&fencing=off") + (durable_ ? "&durable=yes" : "");
    }
    bool has(Kind kind) const override {
        return kind == Kind::mutex || (fencing_ && kind == Kind::shared_mutex);
    }
    bool fences() const override { return fencing_; }
    Memory memory() const override { return {.any = false}; }
    /// Where nodes may forget, tokens grow as long as most clocks are right (its README).
    bool right_clocks() const override { return !durable_; }
    bool ages(const Name&, Mode mode) const override { return fencing_ && mode == Mode::shared; }
    std::vector<Listening> servers() override {
        std::vector<Listening> all;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            all.push_back({host(i), 6379, nodes_[i].get()});
        return all;
    }

    /// A node that has restarted does not vote for so long, and tells its age in whole seconds.
    Nanos recovery() const override { return rest() + (durable_ ? 0 : max_ttl + 2 * second); }

    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow,   slow, cut,   cut,     break_off, break_off,
                                     freeze, kill, pause, restart, restart};
        // What it has forgotten counts only where it is thought to keep everything.
        if (!durable_ || unsafe) all.push_back(empty);
        if (unsafe) all.insert(all.end(), {flush, flush, clock_jump, clock_jump});
        return all;
    }
    void begin(const Fault& f) override {
        Redis& node = *nodes_[f.server % nodes_.size()];
        switch (f.kind) {
            case Fault::Kind::restart:
                return node.restart(f.lasts);
            case Fault::Kind::empty:
                return node.restart(f.lasts, true);
            case Fault::Kind::flush:
                return node.flush();
            case Fault::Kind::pause:
                return node.pause(kernel_.now() + f.lasts);
            case Fault::Kind::clock_jump:
                return node.machine.jump(kernel_.now(), 10 * second);
            default:
                break;
        }
    }
    void heal() override {
        for (const auto& node : nodes_)
            node->recover();
    }

    std::string contradicts(const Belief& b, const Name& n) override {
        const Nanos believed = b.process->when(b.lease->valid_until().time_since_epoch().count());
        std::size_t have = 0;
        for (const auto& node : nodes_) {
            // One that has lost it votes for nobody else meanwhile.
            const bool silent = !durable_ && kernel_.now() < node->emptied() + max_ttl;
            have += silent || node->machine.when(until(*node, b.owner, n) * ms) >= believed ? 1 : 0;
        }
        if (have > nodes_.size() / 2) return {};
        return "only " + std::to_string(have) + " nodes keep it for as long as it believes";
    }
    std::string left(const std::vector<Name>& names, bool) override {
        for (const Name& n : names)
            for (const auto& node : nodes_)
                // Without tokens a request that comes late acquires, until its ttl.
                if (const auto* lock = node->store().find(n.text); lock != nullptr && fencing_)
                    return n.text + " is held at " + node->name() + ": " + lock->text;
        return {};
    }

private:
    static constexpr Nanos max_ttl = 6 * second;
    /// In the node's milliseconds; 0: it has nothing of this owner. Later rounds add a number.
    static Nanos until(Redis& node, const std::string& owner, const Name& n) {
        const model::Store& store = node.store();
        const auto* lock = store.find(n.text);
        if (lock == nullptr) return 0;
        if (lock->text.starts_with(owner)) return lock->expires;
        const auto* parts = store.find("{" + n.text + "}:hf:r");
        if (lock->text != "hf:s" || parts == nullptr) return 0;
        for (const auto& [member, ends] : parts->scores)
            if (member.starts_with(owner)) return static_cast<Nanos>(ends);
        return 0;
    }
    Kernel& kernel_;
    std::vector<std::unique_ptr<Redis>> nodes_;
    const bool fencing_, durable_;
};

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
        return passed(*key, n);
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
    std::string passed(const EtcdStore::Key& key, const Name& n) const {
        const std::string line = line_of(n);
        std::uint64_t sum = units(key.value, n);
        for (auto at = servers_.store().keys.lower_bound(line);
             at != servers_.store().keys.end() && at->first.starts_with(line); ++at)
            if (at->second.created < key.created) sum += units(at->second.value, n);
        if (sum <= all_of(n)) return {};
        return "it has passed others in line";
    }
    static std::uint64_t all_of(const Name& n) {
        return n.options.kind == Kind::semaphore ? n.options.limit : many;
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
    if (backend == "redis") return std::make_unique<OneRedis>(k, o);
    if (backend == "redlock") return std::make_unique<Redlock>(k);
    if (backend == "etcd") return std::make_unique<Etcd>(k);
    if (backend == "zookeeper") return std::make_unique<ZooKeeper>(k);
    if (backend == "memory") return std::make_unique<InProcess>();
    return nullptr;
}

}  // namespace holdfast::sim
