// What operators are shown, from what a backend's survey() and tell() return: the same for all.
#include <algorithm>

#include "holdfast/spi/backend.hpp"

namespace holdfast::spi {
namespace {

Holder shown(Survey::Member& m) {
    Holder h = std::move(m.holder);
    h.mode = m.units.mode;
    h.permits = m.units.permits() ? m.units.take : 1;
    return h;
}

void add_kind(Inspection& to, const Units& units) {
    if (units.permits()) to.kind = Kind::semaphore, to.limit = units.of;
    if (units.mode == Mode::shared) to.kind = Kind::shared_mutex;
}

}  // namespace

Inspection Survey::inspection(std::string_view name) && {
    Inspection out;
    out.name = name;
    out.closed_for = closed_for;
    out.last_token = last_token;
    out.nodes = std::move(nodes);
    for (const Member& w : waiters)
        add_kind(out, w.units);
    add_kind(out, units);
    for (Member& h : holders) {
        add_kind(out, h.units);
        out.last_token = std::max(out.last_token, h.holder.token);
        out.holders.push_back(shown(h));
    }
    for (Member& w : waiters) {
        out.waiters.push_back(shown(w));
        out.waiters.back().token = {};
        out.waiters.back().ttl_left.reset();
    }
    return out;
}

std::vector<Broken> Survey::broken(Tell what) && {
    std::vector<Broken> out;
    for (Member& h : holders) {
        out.push_back({shown(h), what == Tell::gone ? milliseconds(0) : h.free_in});
        out.back().holder.revoked = true;
    }
    return out;
}

std::vector<Holder> Survey::asked() && {
    std::vector<Holder> out;
    for (Member& h : holders) {
        out.push_back(shown(h));
        out.back().asked = true;
    }
    return out;
}

awaitable<Answer<Inspection>> Backend::inspect(std::string_view name,
                                               boot_clock::time_point deadline) {
    auto asking = survey(name, deadline);
    auto found = co_await std::move(asking);
    if (!found) co_return found.error();
    auto out = std::move(*found).inspection(name);
    out.server = serving();
    co_return out;
}

awaitable<Answer<std::vector<Broken>>> Backend::break_lock(std::string_view name,
                                                           const BreakOptions& options,
                                                           boot_clock::time_point deadline) {
    const Tell what = options.now ? Tell::gone : Tell::revoked;
    const HolderFilter which = options.which();
    auto telling = tell(name, which, what, deadline);
    auto reached = co_await std::move(telling);
    if (!reached) co_return reached.error();
    co_return std::move(*reached).broken(what);
}

awaitable<Answer<std::vector<Holder>>> Backend::request_release(std::string_view name,
                                                                const HolderFilter& which,
                                                                boot_clock::time_point deadline) {
    auto telling = tell(name, which, Tell::asked, deadline);
    auto reached = co_await std::move(telling);
    if (!reached) co_return reached.error();
    co_return std::move(*reached).asked();
}

}  // namespace holdfast::spi
