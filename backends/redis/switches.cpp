// A server that another one replaces is left at once: the Sentinels name that one, or the name of
// the host leads to it. Under Sentinels what a server says counts only as long as they name it.
#include <algorithm>

#include "../resp/errors.hpp"
#include "backend.hpp"
#include "confirmation.hpp"

namespace holdfast::redis {

awaitable<void> RedisBackend::count(const Operations& granted, unsigned move) {
    auto brief = granted.front()->ttl;
    auto deadline = granted.front()->deadline;
    for (const Operation* o : granted) {
        brief = std::min(brief, o->ttl);
        deadline = std::min(deadline, o->deadline);
    }
    const auto begun = boot_clock::now();
    // Asked anew now and then, so that a lease loses a tenth of its length at most.
    if (const auto since = shared_->confirmed(move);
        since == boot_clock::time_point::min() || since + brief / 10 < begun) {
        auto asking = sentinels_->confirm(move, deadline);
        co_await std::move(asking);
    }
    const auto since = shared_->confirmed(move);
    const auto now = boot_clock::now();
    spi::Failure doubt;
    for (Operation* o : granted) {
        if (!o->granted() || count_from(*o, since, now)) continue;
        if (!doubt) doubt = sentinels_->judged(sentinels_->doubt());
        o->unconfirmed(doubt);
    }
}

void RedisBackend::leave() {
    shared_->moved();
    connection_->leave();
    elsewhere();
}

void RedisBackend::moved(const std::string& from, const std::string& to) {
    connection_->leave();
    elsewhere();
    context_.events.moved(from, to);
}

}  // namespace holdfast::redis
