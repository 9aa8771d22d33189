#include "floors/redlock_floor.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* name = "bench/floor";

bool agreed(const redisReply& reply) {
    return (reply.type == REDIS_REPLY_STATUS && std::string_view(reply.str, reply.len) == "OK") ||
           (reply.type == REDIS_REPLY_INTEGER && reply.integer == 1);
}

}  // namespace

RedlockFloor::RedlockFloor(const std::vector<std::uint16_t>& ports) {
    for (const auto port : ports) {
        nodes_.push_back(connect_redis(port));
        sha_ = load_compare_and_delete(nodes_.back().get());
    }
    cycle();
}

template <class Append>
void RedlockFloor::round(Append append, const char* what) {
    for (const auto& node : nodes_) {
        append(node.get());
        for (int done = 0; done == 0;)
            if (redisBufferWrite(node.get(), &done) != REDIS_OK)
                throw SelfCheck(std::string("bare hiredis, five nodes: ") + what);
    }
    bool all = true;
    for (const auto& node : nodes_) {
        void* raw = nullptr;
        if (redisGetReply(node.get(), &raw) != REDIS_OK)
            throw SelfCheck(std::string("bare hiredis, five nodes: ") + what);
        const RedisReply reply(static_cast<redisReply*>(raw));
        all = all && agreed(*reply);
    }
    if (!all) throw SelfCheck(std::string("bare hiredis, five nodes: a node refused ") + what);
}

void RedlockFloor::cycle() {
    const std::string owner = "0123456789012345678901.host." + std::to_string(++counter_);
    round(
        [&](redisContext* node) {
            redisAppendCommand(node, "SET %s %s NX PX 10000", name, owner.c_str());
        },
        "SET NX PX");
    round(
        [&](redisContext* node) {
            redisAppendCommand(node, "EVALSHA %s 1 %s %s", sha_.c_str(), name, owner.c_str());
        },
        "compare-and-delete");
}

}  // namespace holdfast::bench
