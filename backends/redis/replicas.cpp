// min_replicas_ack: what the server has granted or renewed is believed only once enough replicas
// say that they have it (Redis' manual, WAIT). A replica that was promoted all the same may be
// another one than those that answered, so this narrows what a failover can give twice and does not
// end it.
#include <algorithm>

#include "../resp/errors.hpp"
#include "backend.hpp"

namespace holdfast::redis {
awaitable<spi::Failure> RedisBackend::replicated(const Operations& all, std::uint64_t link) {
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
        co_return spi::Failure(make(Error::not_replicated),
                               shared_->target.display +
                                   ": no time was left to hear of the replicas (min_replicas_ack)");
    }
    Command c;
    c.add("WAIT").add_number(shared_->options.replicas);
    c.add_number(patience.count());
    std::string bytes;
    c.encode(bytes);
    const Answer answer = co_await connection_->exchange(std::move(bytes), 1, deadline, link);
    if (answer.failed)
        co_return spi::Failure(answer.failed.why,
                               shared_->target.display + ": " + answer.failed.why.message());
    const Reply& reply = answer.replies.front();
    if (reply.is(Reply::Type::error))
        co_return spi::Failure(from_reply(reply.text), std::string(shown(reply.text)));
    if (!reply.is(Reply::Type::integer)) co_return make(Error::protocol);
    if (reply.integer >= shared_->options.replicas) co_return spi::Failure();
    co_return spi::Failure(make(Error::not_replicated),
                           shared_->target.display + ": " + std::to_string(reply.integer) + " of " +
                               std::to_string(shared_->options.replicas) +
                               " replicas have confirmed it (min_replicas_ack)");
}

awaitable<void> RedisBackend::confirm(const Operations& granted, std::uint64_t link) {
    auto asking = replicated(granted, link);
    const spi::Failure failed = co_await std::move(asking);
    if (!failed) co_return;
    for (Operation* o : granted)
        o->unconfirmed(failed);
}

}  // namespace holdfast::redis
