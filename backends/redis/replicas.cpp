// min_replicas_ack: what the server has granted or renewed is believed only once enough replicas
// say that they have it (Redis' manual, WAIT). A replica that was promoted all the same may be
// another one than those that answered, so this narrows what a failover can give twice and does not
// end it.
#include <algorithm>

#include "../resp/errors.hpp"
#include "backend.hpp"

namespace holdfast::redis {
awaitable<error_code> RedisBackend::replicated(const Operations& all, std::uint64_t link,
                                               std::string* detail) {
    auto ttl = all.front()->ttl;
    auto deadline = all.front()->deadline;
    for (const Operation* o : all) {
        ttl = std::max(ttl, o->ttl);  // a shorter lease ends by its own time meanwhile
        deadline = std::max(deadline, o->deadline);
    }
    // A server looks at such time-outs ten times a second; its answer must be here in time, or the
    // connection counts as silent.
    const auto left =
        std::chrono::floor<milliseconds>(deadline - boot_clock::now()) - milliseconds(150);
    const auto patience = std::min({ttl / 10, left, milliseconds(1000)});
    if (patience < milliseconds(1)) {  // 0 would be for ever
        *detail = shared_->target.display +
                  ": no time was left to hear of the replicas (min_replicas_ack)";
        co_return make(Error::not_replicated);
    }
    Command c;
    c.add("WAIT").add_number(shared_->options.replicas);
    c.add_number(patience.count());
    std::string bytes;
    c.encode(bytes);
    const Answer answer = co_await connection_->exchange(std::move(bytes), 1, deadline, link);
    if (answer.why) {
        *detail = shared_->target.display + ": " + answer.why.message();
        co_return answer.why;
    }
    const Reply& reply = answer.replies.front();
    if (reply.is(Reply::Type::error)) {
        *detail = shown(reply.text);
        co_return from_reply(reply.text);
    }
    if (!reply.is(Reply::Type::integer)) co_return make(Error::protocol);
    if (reply.integer >= shared_->options.replicas) co_return error_code();
    *detail = shared_->target.display + ": " + std::to_string(reply.integer) + " of " +
              std::to_string(shared_->options.replicas) +
              " replicas have confirmed it (min_replicas_ack)";
    co_return make(Error::not_replicated);
}

awaitable<void> RedisBackend::confirm(const Operations& granted, std::uint64_t link) {
    std::string detail;
    auto asking = replicated(granted, link, &detail);
    const error_code why = co_await std::move(asking);
    if (!why) co_return;
    for (Operation* o : granted)
        o->unconfirmed(why, detail);
}

}  // namespace holdfast::redis
