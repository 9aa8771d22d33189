// The answer of `holdfast inspect`, in words and as JSON.
#include "inspection_text.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "as_json.hpp"
#include "duration.hpp"
#include "holder_text.hpp"
#include "holdfast/spi/holder.hpp"
#include "message.hpp"
#include "renewals.hpp"

namespace holdfast::cli {
namespace {

std::string in_words(const std::optional<Renewals::Seen>& seen) {
    if (!seen) return {};
    return seen->renewed ? fmt::format(", last renewal at most {} ago", spoken(seen->ago))
                         : fmt::format(", no renewal for {}", spoken(seen->ago));
}

std::string in_words(const BreakRecord& r) {
    Holder by;
    by.host = r.host;
    by.pid = r.pid;
    by.note = r.note;
    std::string text = fmt::format("  broken {}{} by {}: the lease of {}", utc_text(r.at),
                                   r.now ? " (--now)" : "", who(by), who(spi::holder_of(r.owner)));
    if (r.token) text += fmt::format(", token {}", r.token.value);
    return text + '\n';
}

}  // namespace

std::string as_text(const Inspection& i, const Renewals* renewals) {
    std::string text = in_quotes(i.name);
    if (i.holders.empty()) text += " is " + described_holders(i) + '\n';
    std::uint32_t permits = 0;
    for (const Holder& h : i.holders) {
        text += (permits == 0 ? " is held by " : "  and by ") + described(h);
        if (renewals) text += in_words(renewals->of(h.owner));
        text += '\n';
        permits += h.permits;
    }
    if (i.kind == Kind::semaphore && permits > 0)
        text += fmt::format("  {} of {} permits are in use\n", permits, i.limit);
    for (std::size_t n = 0; n < i.waiters.size(); ++n) {
        const Holder& w = i.waiters[n];
        text += fmt::format("  {}. waits: {}", n + 1, who(w));
        if (w.mode == Mode::shared) text += ", shared";
        if (w.permits > 1) text += fmt::format(", {} permits", w.permits);
        text += '\n';
    }
    for (const NodeView& n : i.nodes) {
        text += fmt::format("  {}: ", shown(n.node));
        if (n.error)
            text += shown(n.error.message());
        else if (n.owner.empty())
            text += "free";
        else
            text += shown(n.owner);
        if (n.ttl_left) text += fmt::format(", {} left", spoken(*n.ttl_left));
        text += '\n';
    }
    if (voice().verbose && !i.server.empty())
        text += fmt::format("  served by {}\n", shown(i.server));
    if (i.holders.empty() && i.last_token)
        text += fmt::format("  last token {}\n", i.last_token.value);
    if (i.last_break) text += in_words(*i.last_break);
    return text;
}

boost::json::object as_json(const Inspection& i, const std::string& url, const Renewals& renewals) {
    boost::json::object o = as_json(i, url);
    for (std::size_t n = 0; n < i.holders.size(); ++n)
        if (const auto seen = renewals.of(i.holders[n].owner))
            o["holders"].as_array()[n].as_object()[seen->renewed ? "renewed_within_ms"
                                                                 : "not_renewed_for_ms"] =
                seen->ago.count();
    return o;
}

}  // namespace holdfast::cli
