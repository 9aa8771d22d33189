#include "state.hpp"

#include <algorithm>
#include <type_traits>

#include "holdfast/spi/drift.hpp"

namespace model {

void forget(State& s) {
    std::sort(s.gone.begin(), s.gone.end());
    const auto now = at(s.store.now);
    for (Client& c : s.clients) {
        if (!listens(c)) c.mail.clear(), c.place.handed.reset();
        OwnerState& p = c.place;
        if (p.ghost <= s.store.now) p.ghost = 0;
        p.unanswered = false;  // of mode=plain
        const bool over = p.base + p.window - spi::drift(p.window) - now < p.window / 3;
        const bool waits = c.phase == Phase::waiting || c.phase == Phase::asked;
        if (!waits || over) p.seen = 0, p.base = {}, p.handed.reset();
        if (!waits) p.ticket.clear(), p.queued = false, c.asks = 0;
        if (c.phase != Phase::held || c.valid_until <= s.store.now) c.valid_until = 0;
        if (c.phase == Phase::leaving) p.unclaimed = false, c.renewals = 0;
        if (c.phase != Phase::held) c.shared = c.shared && c.phase == Phase::leaving;
        if (c.out && c.request.kind == Kind::leave) c.request.sent = c.request.deadline = 0;
        if (c.answered) c.request.arguments.clear();
        for (Request& r : c.late)
            r.sent = r.deadline = 0;
        if (c.phase != Phase::left && c.phase != Phase::gone) continue;
        p = OwnerState();
        c.token = 0;
        c.how = 'u';
        c.renewals = c.breaks = c.leaves = 0;
    }
}

std::string text_of(const State& s) {
    std::string out;
    const auto put = [&](const auto& x) {
        if constexpr (requires { out += x; } && !std::is_arithmetic_v<std::decay_t<decltype(x)>>)
            out += x;
        else
            out += std::to_string(static_cast<long long>(x));
        out += '|';
    };
    const auto put_request = [&](const Request& r) {
        put(std::string(1, static_cast<char>(r.kind)) + (r.units ? 'u' : 'm'));
        put(r.sent);
        put(r.deadline);
        for (const auto& a : r.arguments)
            put(a);
    };
    put(s.store.now);
    for (const auto& [key, v] : s.store.keys) {
        put(key);
        put(v.text);
        put(v.expires);
        for (const auto& [m, score] : v.scores)
            put(m), put(static_cast<std::int64_t>(score));
        for (const auto& [f, x] : v.fields)
            put(f), put(x);
    }
    put(s.best);
    put(s.best_owner);
    put(s.written);
    put((s.revoked ? 1 : 0) + 2 * s.refusals);
    put(s.moves);
    for (const auto& o : s.gone)
        put(o);
    for (const Client& c : s.clients) {
        put(std::string(1, static_cast<char>(c.phase)) + c.how);
        put(c.valid_until);
        put(c.token);
        const OwnerState& p = c.place;
        put(p.ghost);
        put(p.ticket);
        put((p.queued ? 1 : 0) + (p.unclaimed ? 2 : 0) + (p.unanswered ? 4 : 0) +
            (p.units ? 8 : 0) + (c.shared ? 16 : 0));
        put(p.seen);
        put(p.base.time_since_epoch().count());
        put(p.handed ? p.handed->number : 0);
        put(p.handed ? p.handed->token : 0);
        if (c.out) put_request(c.request);
        put((c.out ? 1 : 0) + (c.answered ? 2 : 0));
        put(c.reply);
        for (const auto& r : c.late)
            put_request(r);
        for (const auto& m : c.mail)
            put(m);
        for (const int n : {c.asks, c.renewals, c.breaks, c.leaves, c.acquisition})
            put(n);
    }
    return out;
}

}  // namespace model
