// A Redis Cluster: three primaries with a replica each. A replica takes over, with the writes that
// it has by then, while the former primary goes on until it misses the others or hears of it; slots
// move from one primary to another; and some servers hear of all that late.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "cluster.hpp"
#include "deployments.hpp"
#include "redis_order.hpp"
#include "takeovers.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t primary_count = 3, server_count = 2 * primary_count;
constexpr std::array<const char*, 5> cluster_modes{"", "", "", "&wait=poll", "&mode=plain"};

/// The class (docs/guarantees.md): two holders are possible from a failover until a ttl after the
/// former primary serves nobody any more. No slot that moves, and no replica that has every write,
/// ever makes two.
class Sharded final : public Deployment {
public:
    Sharded(Kernel& k, const Options& o)
        : kernel_(k),
          random_(o.seed ^ 0xC1057E5U),
          mode_(o.unsafe ? 0 : random_.below(cluster_modes.size())),
          prefix_(random_.chance(300) ? "{app}:" : ""),
          slow_replicas_(random_.chance(300)) {
        const Nanos ppm = k.random().between(-3000, 3000);
        for (std::size_t i = 0; i < server_count; ++i) {
            servers_.push_back(std::make_unique<ClusterServer>(k, i, primary_count, server_count));
            // What moves ends by the clock of where it is: doctor's cluster_clock.
            servers_[i]->machine.local = servers_[0]->machine.local;
            servers_[i]->machine.ppm = ppm;
            servers_[i]->ran = [this, i](const auto& words, const auto&, const Process&) {
                if (words.front().starts_with("EVAL") || words.front() == "SET") wrote(i);
            };
        }
    }

    std::string url(const World& w) override {
        takeovers_.begin(w);
        node_timeout_ = random_.between(50 * ms, takeovers_.ttl() / 2);
        for (const Name& n : w.names) {
            names_.push_back(n);
            names_.back().text = prefix_ + n.text;
            slots_.push_back(slot_of(names_.back().text));
            homes_[slots_.back()] = servers_[0]->owner(slots_.back());
        }
        goes_on_moving_ = w.calm && random_.chance(700);
        if (goes_on_moving_) go_on_moving();
        return "redis+cluster://10.0.0.1,10.0.0.2,10.0.0.3?ttl=" + std::to_string(w.ttl.count()) +
               "ms" + (prefix_.empty() ? "" : "&namespace=%7Bapp%7D:") + cluster_modes.at(mode_);
    }
    std::vector<Listening> servers() override {
        std::vector<Listening> all;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            all.push_back({host(i), 6379, servers_[i].get()});
        return all;
    }
    bool plays(Feature f) const override { return f != Feature::elections && f != Feature::modes; }
    bool has(Kind kind) const override { return !plain() || kind == Kind::mutex; }
    bool fences() const override { return !plain(); }
    bool pauses() const override { return !plain(); }
    /// A break and a place in line may be lost with the last writes.
    bool operates() const override { return false; }
    bool ages(const Name&, Mode) const override { return false; }
    Memory memory() const override { return {.any = !plain(), .claims = false}; }
    bool may_forget() const override { return forgot_; }
    bool may_overlap() const override { return takeovers_.may_overlap(); }
    /// The slots are told within half a time-out or half a second, or not at all.
    Nanos farthest(Nanos request_timeout) const override {
        return std::min(request_timeout / 2, 500 * ms) * 4 / 5;
    }
    /// Who waits is not listened for where its slot is now, until it looks.
    Nanos hand_off(bool notified) const override {
        return Deployment::hand_off(notified && !goes_on_moving_);
    }
    Nanos rest() const override { return takeovers_.rest(forgot_); }
    /// One that restarts serves nobody at first.
    Nanos recovery() const override { return rest() + takeovers_.ttl() + longest_restart; }

    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow,    cut,     cut,       break_off, break_off,
                                     freeze,  kill,    pause,     restart,   promote,
                                     promote, promote, move_slot, move_slot};
        if (unsafe) all.insert(all.end(), {flush, flush, clock_jump, clock_jump});
        return all;
    }
    void begin(const Fault& f) override {
        ClusterServer& server = *servers_[f.server % servers_.size()];
        const Slot slot = slots_[f.how % slots_.size()];
        switch (f.kind) {
            case Fault::Kind::promote:
                return fail_over(f, homes_.at(slot));
            case Fault::Kind::move_slot:
                return move(slot, (homes_.at(slot) + 1 + f.server % 2) % primary_count, f.lasts);
            case Fault::Kind::restart:
                server.restart(f.lasts);
                return server.fail_until(kernel_.now() + f.lasts +
                                         random_.between(0, longest_restart));
            case Fault::Kind::pause:
                return server.pause(kernel_.now() + f.lasts);
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
        for (const auto& one : servers_) {
            one->recover();
            one->rejoin();
        }
        if (moving_) end_move(moving_->number);
        for (const std::size_t primary : leads_)
            for (std::size_t i = 0; i < servers_.size(); ++i)
                tell(i, primary);
    }

    std::string contradicts(const Belief& b, const Name&) override {
        if (may_overlap()) return {};
        return RedisOrder::contradicts(store_of(b.name), servers_[0]->machine, b, names_[b.name]);
    }
    std::string misled(const std::string& event) override {
        for (std::size_t i = 0; i < servers_.size(); ++i)
            if (event.ends_with(" to " + host(i) + ":6379") && !servers_[i]->leads() &&
                heard_.at(i) + second < kernel_.now())
                return "it goes to a former primary: " + event;
        return {};
    }
    bool keeps(const std::string& owner, const Name& n) override {
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (names_[i].text == prefix_ + n.text)
                return !plain() && RedisOrder::has(store_of(i), names_[i], owner);
        return false;
    }
    std::string left(const std::vector<Name>&, bool) override {
        for (std::size_t i = 0; i < names_.size(); ++i)
            // A request that comes late acquires in that mode, until its ttl.
            if (const auto* lock = store_of(i).find(names_[i].text); lock != nullptr && !plain())
                return names_[i].text + " is held: " + lock->text;
        return {};
    }

private:
    static constexpr Nanos longest_restart = 2 * second;
    bool plain() const { return mode_ + 1 == cluster_modes.size(); }
    static std::size_t partner(std::size_t server) {
        return (server + primary_count) % server_count;
    }
    bool runs(std::size_t server) const {
        return servers_[server]->up() && kernel_.now() >= servers_[server]->machine.frozen_until;
    }
    /// At the primary of its slot, or on the way from there.
    const model::Store& store_of(std::size_t name) {
        const model::Store& there = servers_[leads_.at(homes_.at(slots_[name]))]->store();
        if (!moving_ || moving_->slot != slots_[name]) return there;
        both_ = there;
        const auto& gone = servers_[moving_->to]->store().keys;
        both_.keys.insert(gone.begin(), gone.end());
        return both_;
    }

    // --- what servers hear of each other

    /// As soon as it runs.
    void tell(std::size_t server, std::size_t primary) {
        if (server == primary) return;
        if (!runs(server))
            return takeovers_.later(50 * ms, [this, server, primary] { tell(server, primary); });
        if (!servers_[server]->hear(*servers_[primary])) return;
        servers_[server]->copy(servers_[primary]->store());
        servers_[server]->rejoin();
        heard_.at(server) = kernel_.now();
        kernel_.trace(servers_[server]->name(), "is a replica");
        takeovers_.end_overlap();
        for (const auto& one : servers_)
            if (one.get() != servers_[server].get()) one->hear(*servers_[server]);
    }

    // --- replicas

    /// What the primary has goes to its replica, in order.
    void wrote(std::size_t server) {
        const std::size_t shard = server % primary_count, to = partner(server);
        if (leads_.at(shard) != server || servers_[to]->leads()) return;
        const Nanos lag = slow_replicas_ && random_.chance(100) ? random_.between(0, 300 * ms)
                                                                : random_.between(50 * us, 2 * ms);
        Nanos& arrives = arrives_.at(shard);
        arrives = std::max(arrives, kernel_.now() + lag);
        auto copy = std::make_shared<const model::Store>(servers_[server]->store());
        kernel_.at(arrives, [this, copy, to, shard, term = terms_.at(shard)] {
            if (term == terms_.at(shard)) servers_[to]->copy(*copy);
        });
    }
    /// Where an operator asks for it (CLUSTER FAILOVER) the replica has every write, and the former
    /// primary is the first to hear of it. Else that one is cut off from the others: for as long as
    /// the fault lasts with a client that reaches it, and perhaps one other server, or for longer.
    void fail_over(const Fault& f, std::size_t shard) {
        const std::size_t former = leads_.at(shard), next = partner(former);
        if (takeovers_.settling() || moving_ || !servers_[next]->serves() ||
            servers_[next]->leads())
            return;
        const bool asked = servers_[former]->serves() && random_.chance(300);
        if (asked) servers_[next]->copy(servers_[former]->store());
        leads_.at(shard) = next;
        ++terms_.at(shard);
        servers_[next]->take_over(++epoch_);
        kernel_.trace(servers_[next]->name(), "is the primary");
        // One of the other primaries has voted for it, and hears soon.
        const bool either = random_.chance(500);
        const std::size_t voter = leads_.at((shard + (either ? 1 : 2)) % primary_count);
        const std::size_t last = leads_.at((shard + (either ? 2 : 1)) % primary_count);
        Nanos hears = 0;
        if (!asked) {
            forgot_ = true;
            takeovers_.admit_overlap();
            hears = cut_off(f, former, last);
        }
        if (asked)
            tell(former, next);
        else
            takeovers_.later(hears, [this, former, next] { tell(former, next); });
        takeovers_.later(random_.between(0, std::min(f.lasts, 200 * ms)),
                         [this, voter, next] { tell(voter, next); });
        const Nanos by = random_.chance(500) ? hears + 3 * second : f.lasts;
        takeovers_.later(random_.between(0, by), [this, last, next] { tell(last, next); });
        for (std::size_t i = 0; i < servers_.size(); ++i)
            if (i != former && i != next && i != voter && i != last)
                takeovers_.later(random_.between(0, f.lasts), [this, i, next] { tell(i, next); });
    }
    /// Until when, from now on, it does not hear of the next one.
    Nanos cut_off(const Fault& f, std::size_t former, std::size_t last) {
        Nanos hears = random_.between(0, f.lasts);
        if (random_.chance(400)) {
            hears = f.lasts;
            std::vector<std::size_t> beyond;
            const bool two = random_.chance(500);
            for (std::size_t i = 0; i < servers_.size(); ++i)
                if (i != former && (i != last || !two)) beyond.push_back(i);
            takeovers_.split(f, std::move(beyond));
        } else if (random_.chance(250)) {
            hears = std::max(f.lasts, trouble_lasts - kernel_.now());
        }
        const Nanos stops = random_.between(0, node_timeout_);
        if (stops < hears) takeovers_.later(stops, [this, former] { stop(former); });
        return hears;
    }
    /// It has missed most of the others for its node timeout.
    void stop(std::size_t former) {
        if (!servers_[former]->leads()) return;
        // One that stands still does not count the time.
        if (kernel_.now() < servers_[former]->machine.frozen_until)
            return takeovers_.later(20 * ms, [this, former] { stop(former); });
        servers_[former]->fail_until(never);
        kernel_.trace(servers_[former]->name(), "serves nobody");
        takeovers_.end_overlap();
    }

    // --- slots that move

    struct Move {
        Slot slot;
        std::size_t from, to;  ///< servers
        unsigned number;
    };
    /// No server of either fails meanwhile: a replica does not know of the move.
    void move(Slot slot, std::size_t to_shard, Nanos lasts) {
        const std::size_t from = leads_.at(homes_.at(slot)), to = leads_.at(to_shard);
        if (takeovers_.settling() || moving_ || !servers_[from]->serves() ||
            !servers_[to]->serves())
            return;
        servers_[to]->begin_coming(slot);
        servers_[from]->begin_leaving(slot, to);
        const unsigned number = ++moves_;
        moving_ = Move{slot, from, to, number};
        kernel_.trace(servers_[from]->name(),
                      "slot " + std::to_string(slot) + " moves to " + servers_[to]->name());
        // All keys at its end, or some of them one after another before that.
        for (std::uint64_t i = random_.below(4); i > 0; --i)
            kernel_.after(random_.between(0, lasts), [this, number] { move_keys(number, 1); });
        kernel_.after(lasts, [this, number] { end_move(number); });
    }
    void move_keys(unsigned number, std::size_t at_most) {
        if (!is_under_way(number)) return;
        const Move m = *moving_;
        auto keys = servers_[m.from]->keys_in(m.slot);
        keys.resize(std::min(at_most, keys.size()));
        for (const std::string& key : keys)
            servers_[m.from]->move_key(key, *servers_[m.to]);
        wrote(m.from);
        wrote(m.to);
    }
    bool is_under_way(unsigned number) const {
        return moving_ && moving_->number == number && servers_[moving_->from]->serves() &&
               servers_[moving_->to]->serves();
    }
    void end_move(unsigned number) {
        if (!moving_ || moving_->number != number) return;
        if (!is_under_way(number))
            return kernel_.after(20 * ms, [this, number] { end_move(number); });
        move_keys(number, many);
        const Move m = *std::exchange(moving_, std::nullopt);
        homes_[m.slot] = m.to % primary_count;
        servers_[m.to]->own(m.slot, ++epoch_);
        kernel_.trace(servers_[m.to]->name(), "has slot " + std::to_string(m.slot));
        servers_[partner(m.to)]->hear(*servers_[m.to]);
        // The source is told next, and then the others.
        const Nanos soon = random_.between(0, 2 * ms);
        for (std::size_t i = 0; i < servers_.size(); ++i)
            takeovers_.later(soon + (i == m.from ? 0 : random_.between(0, 300 * ms)),
                             [this, i, to = m.to] { tell(i, to); });
    }
    /// In runs without faults: with one key that is never noticed, and with several while it is
    /// soon over.
    void go_on_moving() {
        kernel_.after(random_.between(300 * ms, 2 * second), [this] {
            if (kernel_.now() > trouble_lasts) return;
            const Slot slot = slots_[random_.below(slots_.size())];
            const Nanos lasts = plain() ? random_.between(ms, second) : random_.between(0, 8 * ms);
            move(slot, (homes_.at(slot) + 1 + random_.below(2)) % primary_count, lasts);
            go_on_moving();
        });
    }

    Kernel& kernel_;
    Random random_;  ///< so that what it decides changes nothing else
    const std::size_t mode_;
    const std::string prefix_;
    const bool slow_replicas_;
    std::vector<std::unique_ptr<ClusterServer>> servers_;
    std::vector<Name> names_;  ///< with the prefix
    std::vector<Slot> slots_;  ///< of them
    /// What is true, whoever knows of it: the shard of each of these slots, and the primary of each
    /// shard.
    std::map<Slot, std::size_t> homes_;
    std::array<std::size_t, primary_count> leads_{0, 1, 2};
    std::array<unsigned, primary_count> terms_{};
    std::array<Nanos, primary_count> arrives_{};
    std::array<Nanos, server_count> heard_{};  ///< when it became a replica
    std::uint64_t epoch_ = primary_count;
    std::optional<Move> moving_;
    unsigned moves_ = 0;
    Takeovers takeovers_{kernel_};
    model::Store both_;
    bool goes_on_moving_ = false, forgot_ = false;
    Nanos node_timeout_ = 0;
};

}  // namespace

std::unique_ptr<Deployment> make_redis_cluster(Kernel& k, const Options& o) {
    return std::make_unique<Sharded>(k, o);
}

}  // namespace holdfast::sim
