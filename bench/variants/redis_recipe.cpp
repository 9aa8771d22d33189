// doc-redis://: the documents' Redis locks. SETNX and EXPIRE as two commands, or SET NX PX as one;
// a release by DEL, or by compare-and-delete; a waiter sleeps and tries again. Or Redisson's
// hash, see hash_recipe.hpp.
#include "bench.hpp"
#include "floors/redis_floor.hpp"
#include "variants/documents.hpp"
#include "variants/hash_recipe.hpp"
#include "variants/recipe.hpp"

namespace holdfast::bench {

namespace {

struct How {
    std::uint16_t port = 0;
    bool two_steps = false, checked = false, dies = false;
    milliseconds pause{};
};

class RedisRecipe final : public Recipe {
public:
    explicit RedisRecipe(How how)
        : how_(std::move(how)),
          connection_(connect_redis(how_.port)),
          sha_(load_compare_and_delete(connection_.get())) {}

    bool take(const spi::Attempt& a) override {
        const std::string name(a.name), owner(a.owner);
        if (!how_.two_steps) {
            const bool taken =
                send({"SET", name, owner, "NX", "PX", std::to_string(a.ttl.count())})->type ==
                REDIS_REPLY_STATUS;
            if (taken && how_.dies) die_here();
            return taken;
        }
        if (send({"SETNX", name, owner})->integer != 1) return false;
        if (how_.dies) die_here();
        send({"PEXPIRE", name, std::to_string(a.ttl.count())});
        return true;
    }
    ReleaseResult give_back(const std::string& name, const std::string& owner) override {
        const auto reply =
            how_.checked ? send({"EVALSHA", sha_, "1", name, owner}) : send({"DEL", name});
        return reply->integer == 1 ? ReleaseResult::released : ReleaseResult::already_expired;
    }
    std::optional<milliseconds> look_within() const override { return how_.pause; }

private:
    RedisReply send(const std::vector<std::string>& words) {
        count();
        auto reply = ask(connection_.get(), words);
        if (reply->type == REDIS_REPLY_ERROR) throw SelfCheck({reply->str, reply->len});
        return reply;
    }

    How how_;
    RedisContext connection_;
    std::string sha_;
};

}  // namespace

spi::Descriptor redis_recipes() {
    using spi::OptionType;
    spi::Descriptor d;
    d.name = "doc-redis";
    d.schemes = {"doc-redis"};
    d.summary = "the documents' Redis locks, for comparison";
    d.example = "doc-redis://127.0.0.1:6379?take=setnx-expire";
    d.default_port = 6379;
    d.options = {
        {.name = "take",
         .type = OptionType::choice,
         .fallback = "set-nx-px",
         .meaning = "One command, or two with a moment in between, or a script on a hash.",
         .choices = "set-nx-px|setnx-expire|hash"},
        {.name = "give",
         .type = OptionType::choice,
         .fallback = "checked",
         .meaning = "Compare-and-delete, or DEL of any owner's.",
         .choices = "checked|del"},
        {.name = "identity",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "take=hash: client and thread, where these are the owner."},
        {.name = "pause",
         .type = OptionType::duration,
         .fallback = "100ms",
         .meaning = "How long a waiter sleeps before it tries again."},
        {.name = "dies",
         .type = OptionType::boolean,
         .fallback = "false",
         .meaning = "The process ends by SIGKILL once the first command has taken the lock."},
    };
    d.capabilities = [](const spi::Settings&) { return Capabilities(SafetyClass::d, {}); };
    d.make = [](const spi::Settings& s, spi::Context) {
        if (s.text("take") == "hash") {
            const HashHow hash{s.hosts.front().port, std::string(s.text("identity")),
                               s.duration("pause")};
            return make_recipe_backend([hash] { return make_hash_recipe(hash); });
        }
        const How how{s.hosts.front().port, s.text("take") == "setnx-expire",
                      s.text("give") == "checked", s.flag("dies"), s.duration("pause")};
        return make_recipe_backend([how] { return std::make_unique<RedisRecipe>(how); });
    };
    return d;
}

}  // namespace holdfast::bench
