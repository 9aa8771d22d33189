#include "owner_state.hpp"

#include <algorithm>

#include "../../resp/codec.hpp"
#include "holdfast/spi/drift.hpp"

namespace holdfast::redis {
namespace {

using Attempt = spi::Attempt;

// How far the server's clock may have run ahead of what we know of it. Beyond that its answers to
// requests, whose deadlines are in its time, correct us.
constexpr std::uint64_t clock_slack_us = 2'000'000;

}  // namespace

PreviousHolder previous_from(char letter) noexcept {
    switch (letter) {
        case 'n':
            return PreviousHolder::none;
        case 'r':
            return PreviousHolder::released;
        case 'a':
            return PreviousHolder::abandoned;
        case 'c':
            return PreviousHolder::crashed;
        default:
            return PreviousHolder::unknown;
    }
}

void hear(OwnerState& p, std::uint64_t number, std::string_view told, const Shared& shared,
          boot_clock::time_point now) {
    // Tokens are ahead of a clock that was set back, and grow by one then.
    const auto clock =
        static_cast<std::uint64_t>(std::max<std::int64_t>(shared.clock.server_us(now), 0));
    if (told.empty() || number > std::max(clock, p.seen) + clock_slack_us) return;
    std::uint64_t token = number;
    if (told.size() > 1) token = static_cast<std::uint64_t>(redis::number(told.substr(1)));
    if (token <= number) p.handed = OwnerState::Handed{number, token, previous_from(told.front())};
}

void begin_hold(Attempt& a, boot_clock::time_point now) {
    if (a.min_hold <= milliseconds::zero()) return;
    // Counted by this clock, which may be faster than the server's.
    state_of(a.place).closed_until = now + a.min_hold + spi::drift(a.min_hold);
}

bool take_handed(Attempt& a, const Shared& shared, boot_clock::time_point now) {
    // A message says nothing of replicas or of its writer: the look that it causes does.
    if (shared.options.replicas > 0 || shared.options.confirm_handover) return false;
    OwnerState* p = find_state(a.place);
    if (p == nullptr || !p->queued || !p->handed) return false;
    const OwnerState::Handed handed = *p->handed;
    p->handed.reset();
    // Not newer than what the last look saw: that hand-over was over before it.
    if (handed.number <= p->seen) return false;
    const auto until = p->base + p->window - spi::drift(p->window);
    if (until - now < p->window / 3) return false;
    Attempt::Granted g;
    if (!a.units.permits()) {
        g.token.value = handed.token;
        g.previous = handed.previous;
    }
    g.ttl = p->window;
    g.base = p->base;
    a.outcome = g;
    p->queued = false;
    p->unclaimed = true;
    begin_hold(a, now);
    return true;
}

}  // namespace holdfast::redis
