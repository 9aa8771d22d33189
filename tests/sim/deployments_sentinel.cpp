// A Redis primary and its replica, and three Sentinels that make the replica the primary: with the
// writes that it has by then, while the former primary goes on until it is told.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "deployments.hpp"
#include "redis_order.hpp"
#include "sentinel.hpp"
#include "takeovers.hpp"

namespace holdfast::sim {
namespace {

/// The class (docs/guarantees.md): two holders are possible from a failover until a ttl after a
/// majority of the Sentinels has learnt of it. Later nobody believes in what the former primary
/// says, and what the new one has is exclusive.
class FailingOver final : public Deployment {
public:
    FailingOver(Kernel& k, const Options& o)
        : kernel_(k),
          random_(o.seed ^ 0x5E471E1U),
          servers_{Redis(k, "redis0"), Redis(k, "redis1")},
          sentinels_{Sentinel(k, "sentinel0", primary_name, host(0)),
                     Sentinel(k, "sentinel1", primary_name, host(0)),
                     Sentinel(k, "sentinel2", primary_name, host(0))} {
        // What expires does so by the clock of whichever server it is at: doctor's replica_clock.
        servers_[0].machine.ppm = k.random().between(-3000, 3000);
        servers_[1].machine.local = servers_[0].machine.local;
        servers_[1].machine.ppm = servers_[0].machine.ppm;
        slow_replica_ = random_.chance(300);
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            servers_[i].set_replica(i != primary_);
            servers_[i].ran = [this, i](const auto&, const auto&, const Process&) { wrote(i); };
        }
    }

    std::string url(const World& w) override {
        takeovers_.begin(w);
        return "redis+sentinel://10.0.1.1,10.0.1.2,10.0.1.3/" + std::string(primary_name) +
               "?ttl=" + std::to_string(w.ttl.count()) + "ms";
    }
    std::vector<Listening> servers() override {
        std::vector<Listening> all;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            all.push_back({host(i), 6379, &servers_[i]});
        for (std::size_t i = 0; i < sentinels_.size(); ++i)
            all.push_back({"10.0.1." + std::to_string(i + 1), 26379, &sentinels_[i]});
        return all;
    }
    bool plays(Feature f) const override { return f != Feature::elections; }
    /// A break and a place in line may be lost with the last writes.
    bool operates() const override { return false; }
    bool ages(const Name&, Mode) const override { return false; }
    Memory memory() const override { return {.claims = false}; }
    bool may_forget() const override { return epoch_ > 0; }
    bool may_overlap() const override { return takeovers_.may_overlap(); }
    /// The address, a connection and the request.
    int time_outs() const override { return 2; }
    Nanos farthest(Nanos request_timeout) const override { return request_timeout / 4; }
    Nanos rest() const override { return takeovers_.rest(may_forget()); }
    Nanos recovery() const override { return rest() + takeovers_.ttl(); }

    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow, cut,   cut,     break_off, break_off, freeze,
                                     kill, pause, restart, promote,   promote,   promote};
        if (unsafe) all.insert(all.end(), {flush, clock_jump});
        return all;
    }
    void begin(const Fault& f) override {
        Redis& server = servers_[f.server % servers_.size()];
        switch (f.kind) {
            case Fault::Kind::promote:
                return fail_over(f);
            case Fault::Kind::restart:
                return server.restart(f.lasts);
            case Fault::Kind::pause:
                return f.server < servers_.size()
                           ? server.pause(kernel_.now() + f.lasts)
                           : sentinels_[f.server - servers_.size()].pause(kernel_.now() + f.lasts);
            case Fault::Kind::flush:
                return server.flush();
            case Fault::Kind::clock_jump:
                return server.machine.jump(kernel_.now(), 10 * second);
            default:
                break;
        }
    }
    std::vector<std::size_t> beyond(const Fault& f) const override { return takeovers_.beyond(f); }
    void heal() override {
        for (Redis& one : servers_)
            one.recover();
        for (Redis& one : sentinels_)
            one.recover();
    }

    std::string contradicts(const Belief& b, const Name& n) override {
        if (may_overlap()) return {};
        const model::Store& store = servers_[primary_].store();
        if (!RedisOrder::has(store, n, b.owner)) return "the primary does not have it";
        return {};
    }
    std::string left(const std::vector<Name>& names, bool) override {
        const model::Store& store = servers_[primary_].store();
        for (const Name& n : names)
            if (const auto* lock = store.find(n.text)) return n.text + " is held: " + lock->text;
        return {};
    }

private:
    static constexpr const char* primary_name = "main";

    /// What the primary has goes to its replica, in order.
    void wrote(std::size_t server) {
        if (server != primary_ || !servers_[1 - server].is_replica()) return;
        const Nanos lag = slow_replica_ && random_.chance(100) ? random_.between(0, 300 * ms)
                                                               : random_.between(50 * us, 2 * ms);
        arrives_ = std::max(arrives_, kernel_.now() + lag);
        auto copy = std::make_shared<const model::Store>(servers_[server].store());
        kernel_.at(arrives_, [this, copy, at = epoch_, to = 1 - server] {
            if (at == epoch_) servers_[to].copy(*copy);
        });
    }

    /// One Sentinel promotes the replica, the others learn of it, and the former primary becomes a
    /// replica: all of it while the fault lasts. In half of the cases one Sentinel learns last, and
    /// a client reaches only that one and the former primary until then.
    void fail_over(const Fault& f) {
        const std::size_t former = primary_;
        const Nanos within = f.lasts;
        if (takeovers_.settling() || !servers_[1 - former].up() ||
            !servers_[1 - former].is_replica())
            return;
        primary_ = 1 - former;
        ++epoch_;
        takeovers_.admit_overlap();
        servers_[primary_].set_replica(false);
        kernel_.trace(servers_[primary_].name(), "is the primary");
        std::array<Nanos, 3> learns{};
        learns[0] = random_.between(0, std::min(within, 200 * ms));
        for (std::size_t i = 1; i < learns.size(); ++i)
            learns.at(i) = random_.between(learns[0], within);
        const std::size_t leader = random_.below(sentinels_.size());
        if (random_.chance(500)) {
            learns[1] = random_.between(learns[0], std::min(within, second));
            learns[2] = within;
            takeovers_.split(f, {primary_, servers_.size() + leader,
                                 servers_.size() + (leader + 1) % sentinels_.size()});
        }
        for (std::size_t i = 0; i < learns.size(); ++i)
            takeovers_.later(learns.at(i), [this, which = (leader + i) % sentinels_.size()] {
                sentinels_.at(which).learn(host(primary_), epoch_);
                note_majority();
            });
        takeovers_.later(takeovers_.splits(f) ? within : random_.between(learns[0], within),
                         [this, former] { demote(former); });
    }
    void note_majority() {
        const auto know =
            std::count_if(sentinels_.begin(), sentinels_.end(),
                          [this](const auto& s) { return s.named() == host(primary_); });
        if (know == 2) takeovers_.end_overlap();
    }
    void demote(std::size_t former) {
        if (!servers_.at(former).up())
            return takeovers_.later(50 * ms, [this, former] { demote(former); });
        servers_.at(former).copy(servers_.at(primary_).store());
        servers_.at(former).set_replica(true);
        kernel_.trace(servers_.at(former).name(), "is a replica");
    }

    Kernel& kernel_;
    Random random_;  ///< so that what it decides changes nothing else
    std::array<Redis, 2> servers_;
    std::array<Sentinel, 3> sentinels_;
    std::size_t primary_ = 0;
    std::uint64_t epoch_ = 0;
    Takeovers takeovers_{kernel_};
    bool slow_replica_ = false;
    Nanos arrives_ = 0;
};

}  // namespace

std::unique_ptr<Deployment> make_redis_sentinel(Kernel& k, const Options& o) {
    return std::make_unique<FailingOver>(k, o);
}

}  // namespace holdfast::sim
