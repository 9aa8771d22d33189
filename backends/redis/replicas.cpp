// min_replicas_ack: what the server has granted or renewed is believed only once enough replicas
// say that they have it (Redis' manual, WAIT). A replica that was promoted all the same may be
// another one than those that answered, so this narrows what a failover can give twice and does not
// end it.
#include <algorithm>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::redis {
namespace {

template <class Item>
Bounds bounds_of(const std::vector<Item*>& some) {
    Bounds b{some.front()->ttl, some.front()->deadline};
    for (const Item* i : some) {
        b.ttl = std::min(b.ttl, i->ttl);
        b.deadline = std::max(b.deadline, i->deadline);
    }
    return b;
}

}  // namespace

awaitable<error_code> RedisBackend::replicated(Bounds within, std::string* detail) {
    // A server looks at such time-outs ten times a second; its answer must be here in time, or the
    // connection counts as silent.
    const auto left =
        std::chrono::floor<milliseconds>(within.deadline - boot_clock::now()) - milliseconds(150);
    const auto patience = std::min({within.ttl / 10, left, milliseconds(1000)});
    if (patience < milliseconds(1)) {  // 0 would be for ever
        *detail = shared_->options.display +
                  ": no time was left to hear of the replicas (min_replicas_ack)";
        co_return make(Error::not_replicated);
    }
    Command c;
    c.add("WAIT").add_number(shared_->options.replicas);
    c.add_number(patience.count());
    auto reply = co_await ask(c, nullptr, within.deadline, detail);
    if (!reply) co_return reply.error();
    if (!reply->is(Reply::Type::integer)) co_return make(Error::protocol);
    if (reply->integer >= shared_->options.replicas) co_return error_code();
    *detail = shared_->options.display + ": " + std::to_string(reply->integer) + " of " +
              std::to_string(shared_->options.replicas) +
              " replicas have confirmed it (min_replicas_ack)";
    co_return make(Error::not_replicated);
}

awaitable<void> RedisBackend::confirm(std::span<spi::Attempt* const> all) {
    std::vector<spi::Attempt*> granted;
    for (spi::Attempt* a : all)
        if (std::holds_alternative<spi::Attempt::Granted>(a->outcome)) granted.push_back(a);
    if (granted.empty()) co_return;
    std::string detail;
    const Bounds within = bounds_of(granted);
    const error_code why = co_await replicated(within, &detail);
    if (!why) co_return;
    for (spi::Attempt* a : granted) {
        place_of(a->place);  // the next attempt finds our own owner there
        a->outcome = spi::Attempt::Doubt{why};
        a->detail = detail;
    }
}

awaitable<void> RedisBackend::confirm(std::span<spi::Held* const> all) {
    std::vector<spi::Held*> renewed;
    for (spi::Held* h : all)
        if (h->renewal == spi::Held::Renewal::renewed) renewed.push_back(h);
    if (renewed.empty()) co_return;
    std::string detail;
    const Bounds within = bounds_of(renewed);
    const error_code why = co_await replicated(within, &detail);
    if (!why) co_return;
    for (spi::Held* h : renewed) {
        h->renewal = spi::Held::Renewal::unknown;
        h->renewal_error = why;
    }
}

}  // namespace holdfast::redis
