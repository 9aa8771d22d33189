// One Redis server, with clients of all its modes, and Redlock's nodes.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "deployments.hpp"
#include "redis_order.hpp"

namespace holdfast::sim {
namespace {

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
        if (mode_ != plain || mixed_) {
            order_.emplace(server_, w.names);
            server_.ran = [this](const auto& command, const auto& reply, const Process& client) {
                if (wrong_.empty()) wrong_ = order_->look(command, reply, client);
            };
        }
        return url_of(mode_, w);
    }
    std::string url_of_user(const World& w, std::size_t user) override {
        return url_of(mode_of(user), w);
    }
    /// A client with `mode=plain` is what clients of other libraries are.
    void mix(Random& r) override {
        mixed_ = true;
        foreign_ = mode_ == plain || r.chance(500);
        for (std::size_t& one : modes_)
            one = r.below(plain + (foreign_ ? 1 : 0));
        if (foreign_) modes_[r.below(2)] = plain;
    }
    bool has(Kind kind) const override { return !foreign() || kind == Kind::mutex; }
    bool fences() const override { return mode_ != plain || mixed_; }
    bool acquires_late() const override { return foreign(); }
    bool operates() const override { return !mixed_ || !foreign_; }
    bool pauses() const override { return !foreign(); }
    Memory memory() const override { return {.any = fences(), .claims = false}; }
    bool tells_breaks() const override { return !foreign(); }
    /// Who polls stands in line where readers or permits are: a mutex knows of none.
    bool ages(const Name& n, Mode mode) const override {
        if (foreign()) return false;
        const bool poll = mode_ == polls || mixed_;
        return !poll || n.options.kind == Kind::semaphore || mode == Mode::shared;
    }
    std::vector<Listening> servers() override { return {{"10.0.0.1", 6379, &server_}}; }

    std::vector<Fault::Kind> faults(bool unsafe) const override {
        using enum Fault::Kind;
        std::vector<Fault::Kind> all{slow,      slow,   cut,  cut,   break_off,
                                     break_off, freeze, kill, pause, restart};
        if (unsafe)
            all.insert(all.end(), {lose_writes, lose_writes, clock_jump, clock_back, flush, empty});
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
            case Fault::Kind::empty:
                return server_.restart(f.lasts, true);
            case Fault::Kind::flush:
                return server_.flush();
            case Fault::Kind::clock_jump:
                return server_.machine.jump(kernel_.now(), 10 * second);
            case Fault::Kind::clock_back:
                return server_.machine.jump(kernel_.now(), -10 * second);
            default:
                break;
        }
    }
    void heal() override { server_.recover(); }

    std::string contradicts(const Belief& b, const Name& n) override {
        return RedisOrder::contradicts(server_.store(), server_.machine, b, n);
    }

    std::string wrong() const override { return wrong_; }
    bool keeps(const std::string& owner, const Name& n) override {
        return !foreign() && RedisOrder::has(server_.store(), n, owner);
    }
    std::string left(const std::vector<Name>& names, bool killed) override {
        const model::Store& store = server_.store();
        for (const Name& n : names) {
            const auto* lock = store.find(n.text);
            // A request that comes late acquires in this mode, until its ttl.
            if (lock != nullptr && !foreign()) return n.text + " is held: " + lock->text;
            if (const auto waiter = order_ ? order_->stands(n) : ""; !waiter.empty() && !killed)
                return n.text + " has a line: " + waiter;
        }
        return {};
    }

private:
    static constexpr std::size_t polls = 2, plain = 4;
    std::string url_of(std::size_t mode, const World& w) const {
        static constexpr std::array<const char*, 5> modes{"", "", "&wait=poll",
                                                          "&handover=confirmed", "&mode=plain"};
        return "redis://10.0.0.1:6379?ttl=" + std::to_string(w.ttl.count()) + "ms" + modes.at(mode);
    }
    std::size_t mode_of(std::size_t user) const {
        return mixed_ ? modes_.at(user % modes_.size()) : mode_;
    }
    /// One client at least does without scripts.
    bool foreign() const { return mixed_ ? foreign_ : mode_ == plain; }
    Kernel& kernel_;
    Redis server_;
    const std::size_t mode_;
    Random random_;  ///< so that what it decides changes nothing else
    bool mixed_ = false, foreign_ = false;
    std::array<std::size_t, 4> modes_{};
    std::optional<RedisOrder> order_;
    std::string wrong_;
};

/// Several servers, of which a majority grants.
class Redlock final : public Deployment {
public:
    Redlock(Kernel& k, const Options& o)
        : kernel_(k), fencing_(!k.random().chance(250)), durable_(k.random().chance(500)) {
        const std::size_t count = k.random().chance(300) ? 5 : k.random().chance(800) ? 3 : 4;
        for (std::size_t i = 0; i < count; ++i) {
            nodes_.push_back(std::make_unique<Redis>(k, "node" + std::to_string(i)));
            Process& machine = nodes_.back()->machine;
            machine.ppm = k.random().between(-3000, 3000);
            if (!durable_) machine.local = epoch + right + k.random().between(0, 100 * ms);
        }
        // One client cannot be told, and polls.
        Random random(o.seed ^ 0xDEAFU);
        if (!random.chance(300)) return;
        const auto deaf = "client" + std::to_string(random.below(2));
        const bool refused = random.chance(500);
        for (const auto& node : nodes_) {
            node->deaf = deaf;
            node->refuses_it = refused;
        }
    }

    std::string url(const World& w) override {
        if (w.calm)
            for (const auto& node : nodes_)
                node->deaf.clear();
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
    bool may_seem_held() const override { return true; }
    Memory memory() const override { return {.any = false}; }
    /// A node that takes longer counts as down (node_timeout).
    Nanos farthest(Nanos request_timeout) const override {
        return std::min(request_timeout / 2, 250 * ms) * 4 / 5;
    }
    /// Where nodes may forget, tokens grow as long as most clocks are right (its README).
    bool right_clocks() const override { return !durable_; }
    /// A mutex that polls leaves no mark.
    bool ages(const Name&, Mode mode) const override {
        return fencing_ && (mode == Mode::shared || nodes_.front()->deaf.empty());
    }
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
        if (unsafe) all.insert(all.end(), {flush, flush, clock_jump, clock_jump, clock_back});
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
            case Fault::Kind::clock_back:
                return node.machine.jump(kernel_.now(), -10 * second);
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
        const std::string round = latest_round(b.owner, n);
        std::size_t have = 0;
        for (const auto& node : nodes_) {
            // One that has lost it votes for nobody else meanwhile.
            const bool silent = !durable_ && kernel_.now() < node->emptied() + max_ttl;
            const auto parts = parts_of(*node, n);
            const auto part = parts.find(round);
            const bool keeps =
                part != parts.end() && node->machine.when(part->second * ms) >= believed;
            have += silent || keeps ? 1 : 0;
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
    /// What holds the name at a node, each until then in the node's milliseconds.
    static std::map<std::string, Nanos> parts_of(Redis& node, const Name& n) {
        const model::Store& store = node.store();
        const auto* lock = store.find(n.text);
        if (lock == nullptr) return {};
        if (lock->text != "hf:s") return {{lock->text, lock->expires}};
        std::map<std::string, Nanos> all;
        if (const auto* parts = store.find("{" + n.text + "}:hf:r"); parts != nullptr)
            for (const auto& [member, ends] : parts->scores)
                all[member] = static_cast<Nanos>(ends);
        return all;
    }
    /// Of this owner's rounds at the nodes: each but the first adds a number, and the last one was
    /// granted. A reader's earlier ones stand beside it until they are undone, and count for
    /// nothing.
    std::string latest_round(const std::string& owner, const Name& n) const {
        std::string last = owner;
        const auto later = [&](const std::string& part) {
            return std::pair(part.size(), part) > std::pair(last.size(), last);
        };
        for (const auto& node : nodes_)
            for (const auto& [part, ends] : parts_of(*node, n))
                if (part.starts_with(owner) && later(part)) last = part;
        return last;
    }
    Kernel& kernel_;
    std::vector<std::unique_ptr<Redis>> nodes_;
    const bool fencing_, durable_;
};

}  // namespace

std::unique_ptr<Deployment> make_redis(Kernel& k, const Options& o) {
    return std::make_unique<OneRedis>(k, o);
}

std::unique_ptr<Deployment> make_redlock(Kernel& k, const Options& o) {
    return std::make_unique<Redlock>(k, o);
}

}  // namespace holdfast::sim
