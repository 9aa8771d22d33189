#include "operation.hpp"

namespace oracle {
namespace {

using Kind = Operation::Kind;
using hf::milliseconds;

constexpr const char* words[] = {"attempt", "withdraw", "renew",           "downgrade", "release",
                                 "begin",   "break",    "request release", "inspect",   "pass"};

}  // namespace

std::string Operation::text() const {
    std::string out = "+" + std::to_string(time.count()) + " ms: ";
    if (kind < Kind::break_lock) out += "client " + std::to_string(client) + " ";
    out += words[static_cast<int>(kind)];
    if (kind == Kind::attempt || kind == Kind::begin) {
        if (units.permits())
            out += " " + std::to_string(units.take) + " of " + std::to_string(units.of);
        else
            out += units.exclusive() ? " exclusive" : " shared";
        out += ", ttl " + std::to_string(ttl.count()) + " ms";
        if (lock_delay.count() != 0) out += ", lock_delay " + std::to_string(lock_delay.count());
        if (min_hold.count() != 0) out += ", min_hold " + std::to_string(min_hold.count());
        if (queue) out += ", waits";
    }
    if (lane) out += ", by a lane";
    if (kind == Kind::break_lock || kind == Kind::request_release)
        out += all ? " all" : " client " + std::to_string(client);
    if (kind == Kind::break_lock && now) out += ", now";
    if (abandon) out += ", abandoned";
    return out;
}

std::vector<Operation> schedule(std::mt19937& random, int steps, const hf::Capabilities& can) {
    const auto below = [&](int n) {
        return static_cast<int>(random() % static_cast<std::mt19937::result_type>(n));
    };
    const auto has = [&](hf::Capability c) { return can.has(c); };
    const bool shared = has(hf::Capability::shared) && below(3) != 0;
    const bool permits = !shared && has(hf::Capability::semaphore) && below(2) == 0;
    const auto limit = static_cast<std::uint32_t>(2 + below(4));
    const bool waits = below(4) != 0;
    std::vector<Operation> out;
    for (int i = 0; i < steps; ++i) {
        Operation o;
        o.client = below(clients);
        if (permits) {
            // Now and then one with another limit, or of another kind.
            const auto of = below(40) == 0 ? limit + 1 : limit;
            o.units = {1 + static_cast<std::uint32_t>(below(static_cast<int>(of))), of,
                       hf::Mode::exclusive};
        } else if (shared && below(3) != 0) {
            o.units = {1, spi::Units::all, hf::Mode::shared};
        }
        o.ttl = milliseconds(1500 + below(9000));
        if (has(hf::Capability::lock_delay) && below(6) == 0)
            o.lock_delay = milliseconds(500 + below(6000));
        if (has(hf::Capability::min_hold) && below(6) == 0)
            o.min_hold = milliseconds(500 + below(12'000));
        o.queue = waits && below(3) != 0;
        o.abandon = below(4) == 0;
        o.all = below(3) == 0;
        o.now = below(2) == 0;
        o.time = milliseconds(below(3) == 0 ? 0 : below(2) == 0 ? below(400) : below(4000));
        constexpr int weights[] = {34, 5, 12, 4, 16, 12, 3, 3, 6, 5};
        int at = below(100);
        int kind = 0;
        while (at >= weights[kind])
            at -= weights[kind++];
        o.kind = static_cast<Kind>(kind);
        if (o.kind == Kind::downgrade && !(shared && has(hf::Capability::downgrade)))
            o.kind = Kind::renew;
        const bool operators = o.kind == Kind::break_lock && !has(hf::Capability::break_lock);
        const bool asks = o.kind == Kind::request_release && !has(hf::Capability::release_request);
        const bool looks = o.kind == Kind::inspect && !has(hf::Capability::inspect);
        if (operators || asks || looks) o.kind = Kind::pass;
        if (o.kind == Kind::attempt && below(4) == 0) o.queue = false, o.lane = true;
        o.lane = o.lane || (o.kind == Kind::release && below(3) == 0);
        if (o.kind == Kind::pass) o.time = milliseconds(500 + below(20'000));
        out.push_back(o);
    }
    return out;
}

}  // namespace oracle
