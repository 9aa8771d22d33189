// doc-redlock://: Redlock as its description has it: the nodes are asked one after the other, each
// for at most the node time-out; a majority within the ttl holds; a release asks all of them.
#include <hiredis/hiredis.h>

#include "bench.hpp"
#include "floors/redis_floor.hpp"
#include "variants/documents.hpp"
#include "variants/recipe.hpp"

namespace holdfast::bench {

namespace {

timeval timeval_of(milliseconds t) {
    return {t.count() / 1000, t.count() % 1000 * 1000};
}

class RedlockInTurn final : public Recipe {
public:
    RedlockInTurn(std::vector<spi::Endpoint> nodes, milliseconds timeout)
        : nodes_(std::move(nodes)), timeout_(timeout), connections_(nodes_.size()) {}

    bool take(const spi::Attempt& a) override {
        const auto start = Clock::now();
        const std::string name(a.name), owner(a.owner), ttl = std::to_string(a.ttl.count());
        std::size_t votes = 0;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const auto reply = send(i, {"SET", name, owner, "NX", "PX", ttl});
            votes += reply && reply->type == REDIS_REPLY_STATUS ? 1 : 0;
        }
        const double drift = 0.01 * static_cast<double>(a.ttl.count()) + 2;
        const double left = static_cast<double>(a.ttl.count()) - millis_since(start) - drift;
        if (votes > nodes_.size() / 2 && left > 0) return true;
        give_back(name, owner);
        return false;
    }
    ReleaseResult give_back(const std::string& name, const std::string& owner) override {
        std::size_t freed = 0;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const auto reply = send(i, {"EVAL", compare_and_delete, "1", name, owner});
            freed += reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1 ? 1 : 0;
        }
        return freed > nodes_.size() / 2 ? ReleaseResult::released : ReleaseResult::already_expired;
    }
    milliseconds believes(milliseconds ttl) const override { return ttl; }

private:
    /// Null: no answer within the time-out. The connection is made anew for the next request.
    RedisReply send(std::size_t node, const std::vector<std::string>& words) {
        count();
        RedisContext& connection = connections_[node];
        try {
            if (!connection) {
                connection.reset(redisConnectWithTimeout(nodes_[node].host.c_str(),
                                                         nodes_[node].port, timeval_of(timeout_)));
                if (!connection || connection->err != 0) throw SelfCheck("no connection");
                redisSetTimeout(connection.get(), timeval_of(timeout_));
            }
            return ask(connection.get(), words);
        } catch (const SelfCheck&) {
            connection.reset();
            return nullptr;
        }
    }

    std::vector<spi::Endpoint> nodes_;
    milliseconds timeout_;
    std::vector<RedisContext> connections_;
};

}  // namespace

spi::Descriptor redlock_recipe() {
    spi::Descriptor d;
    d.name = "doc-redlock";
    d.schemes = {"doc-redlock"};
    d.summary = "Redlock with its nodes asked in turn, for comparison";
    d.example = "doc-redlock://127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003";
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 6379;
    d.path = spi::Descriptor::Path::none;
    d.options = {{.name = "node_timeout",
                  .type = spi::OptionType::duration,
                  .fallback = "50ms",
                  .meaning = "How long one node is waited for."}};
    d.capabilities = [](const spi::Settings&) { return Capabilities(SafetyClass::d, {}); };
    d.make = [](const spi::Settings& s, spi::Context) {
        return make_recipe_backend([nodes = s.hosts, timeout = s.duration("node_timeout")] {
            return std::make_unique<RedlockInTurn>(nodes, timeout);
        });
    };
    return d;
}

}  // namespace holdfast::bench
