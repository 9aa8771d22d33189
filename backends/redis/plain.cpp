#include "plain.hpp"

#include "errors.hpp"

namespace holdfast::redis {

void add_plain_set(Command& c, const std::string& key, const spi::Attempt& a) {
    c.clear();
    c.add("SET").add(key).add(a.owner).add("NX").add("PX").add_number(a.ttl.count());
}

void take_plain_set(const Reply& r, spi::Attempt& a) {
    if (r.is(Reply::Type::status)) {
        spi::Attempt::Granted g;
        g.ttl = a.ttl;
        a.outcome = g;
    } else if (r.is(Reply::Type::nil)) {
        a.outcome = spi::Attempt::Busy{std::min(a.ttl / 3, milliseconds(1000)), true};
    } else if (r.is(Reply::Type::error)) {
        take_error(r.text, a);
    } else {
        a.outcome = spi::Attempt::Doubt{make(Error::protocol)};
    }
}

std::optional<ReleaseResult> take_plain_release(const Reply& r) noexcept {
    if (!r.is(Reply::Type::integer)) return ReleaseResult::unreachable;
    if (r.integer == 1) return ReleaseResult::released;
    return std::nullopt;
}

ReleaseResult take_plain_get(const Reply& r) noexcept {
    return r.is(Reply::Type::nil)    ? ReleaseResult::already_expired
           : r.is(Reply::Type::bulk) ? ReleaseResult::owned_by_other
                                     : ReleaseResult::unreachable;
}

}  // namespace holdfast::redis
