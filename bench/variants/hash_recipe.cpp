#include "variants/hash_recipe.hpp"

#include "bench.hpp"
#include "floors/redis_floor.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* enter =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return nil end "
    "return redis.call('pttl', KEYS[1])";

constexpr const char* leave =
    "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then "
    "redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end "
    "redis.call('del', KEYS[1]) "
    "redis.call('publish', KEYS[1] .. ':channel', '0') "
    "return 1";

class HashRecipe final : public Recipe {
public:
    explicit HashRecipe(HashHow how)
        : how_(std::move(how)),
          connection_(connect_redis(how_.port)),
          enter_(load(enter)),
          leave_(load(leave)) {}

    bool take(const spi::Attempt& a) override {
        ttl_ = std::to_string(a.ttl.count());
        return run(enter_, std::string(a.name), std::string(a.owner))->type == REDIS_REPLY_NIL;
    }
    ReleaseResult give_back(const std::string& name, const std::string& owner) override {
        return run(leave_, name, owner)->type == REDIS_REPLY_INTEGER
                   ? ReleaseResult::released
                   : ReleaseResult::already_expired;
    }
    std::optional<milliseconds> look_within() const override { return how_.pause; }

private:
    std::string load(const char* script) {
        const auto reply = ask(connection_.get(), {"SCRIPT", "LOAD", script});
        if (reply->type != REDIS_REPLY_STRING) throw SelfCheck("doc-redis: SCRIPT LOAD");
        return {reply->str, reply->len};
    }
    RedisReply run(const std::string& sha, const std::string& name, const std::string& owner) {
        count();
        auto reply = ask(connection_.get(), {"EVALSHA", sha, "1", name, ttl_,
                                             how_.identity.empty() ? owner : how_.identity});
        if (reply->type == REDIS_REPLY_ERROR) throw SelfCheck({reply->str, reply->len});
        return reply;
    }

    HashHow how_;
    RedisContext connection_;
    std::string enter_, leave_, ttl_;
};

}  // namespace

std::unique_ptr<Recipe> make_hash_recipe(const HashHow& how) {
    return std::make_unique<HashRecipe>(how);
}

}  // namespace holdfast::bench
