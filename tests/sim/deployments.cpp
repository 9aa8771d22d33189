// The deployments that are simulated, and what their servers know of holders.

#include <array>
#include <atomic>

#include "redis.hpp"
#include "world.hpp"

namespace holdfast::sim {
namespace {

class OneRedis final : public Deployment {
public:
    OneRedis(Kernel& k, const Options& o)
        : kernel_(k), server_(k, "redis"), mode_(o.unsafe ? 0 : k.random().below(5)) {
        server_.machine.ppm = k.random().between(-3000, 3000);
    }

    std::string url(const World& w) override {
        static constexpr std::array<const char*, 5> modes{"", "", "&wait=poll",
                                                          "&handover=confirmed", "&mode=plain"};
        return "redis://10.0.0.1:6379?ttl=" + std::to_string(w.ttl.count()) + "ms" +
               modes.at(mode_);
    }
    bool has(Kind kind) const override { return mode_ != plain || kind == Kind::mutex; }
    bool fences() const override { return mode_ != plain; }
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
        if (server_.machine.when(until * ms) < believed)
            return "the server ends it " +
                   std::to_string((believed - server_.machine.when(until * ms)) / us) +
                   " us before it does";
        return {};
    }

    std::string left(const std::vector<Name>& names, bool killed) override {
        const model::Store& store = server_.store();
        for (const Name& n : names) {
            const auto* lock = store.find(n.text);
            const auto* line = store.find("{" + n.text + "}:hf:q");
            // A request that comes late acquires in this mode, until its ttl.
            if (lock != nullptr && mode_ != plain) return n.text + " is held: " + lock->text;
            if (line != nullptr && !killed)
                return n.text + " has a line: " + line->scores.begin()->first;
        }
        return {};
    }

private:
    static constexpr std::size_t plain = 4;
    Kernel& kernel_;
    Redis server_;
    const std::size_t mode_;
};

/// No server and no network: threads that meet.
class Memory final : public Deployment {
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
    if (backend == "memory") return std::make_unique<Memory>();
    return nullptr;
}

}  // namespace holdfast::sim
