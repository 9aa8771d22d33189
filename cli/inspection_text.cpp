// The answer of `holdfast inspect`, in words and as JSON.
#include "inspection_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/array.hpp>

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

/// In UTC, to the second.
std::string in_words(std::chrono::system_clock::time_point at) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(at)));
}

std::string in_words(const BreakRecord& r) {
    Holder by;
    by.host = r.host;
    by.pid = r.pid;
    by.note = r.note;
    std::string text = fmt::format("  broken {}{} by {}: the lease of {}", in_words(r.at),
                                   r.now ? " (--now)" : "", who(by), who(spi::holder_of(r.owner)));
    if (r.token) text += fmt::format(", token {}", r.token.value);
    return text + '\n';
}

boost::json::object record_as_json(const BreakRecord& r) {
    boost::json::object o{{"at", in_words(r.at)}, {"host", clean_utf8(r.host)}};
    o["pid"] = r.pid;
    o["note"] = clean_utf8(r.note);
    o["now"] = r.now;
    o["owner"] = clean_utf8(r.owner);
    if (r.token) o["token"] = r.token.value;
    return o;
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
    if (i.holders.empty() && i.last_token)
        text += fmt::format("  last token {}\n", i.last_token.value);
    if (i.last_break) text += in_words(*i.last_break);
    return text;
}

boost::json::object as_json(const Inspection& i, const std::string& url, const Renewals* renewals) {
    boost::json::array holders, waiters;
    for (const Holder& h : i.holders) {
        boost::json::object one = as_json(h);
        const auto seen = renewals ? renewals->of(h.owner) : std::nullopt;
        if (seen)
            one[seen->renewed ? "renewed_within_ms" : "not_renewed_for_ms"] = seen->ago.count();
        holders.push_back(std::move(one));
    }
    for (const Holder& w : i.waiters)
        waiters.push_back(as_json(w));
    boost::json::object o{{"schema", "holdfast.inspect/1"},
                          {"name", clean_utf8(i.name)},
                          {"url", clean_utf8(url)},
                          {"held", !i.holders.empty()},
                          {"kind", to_string(i.kind)}};
    if (i.kind == Kind::semaphore) o["limit"] = i.limit;
    if (i.closed_for) o["closed_for_ms"] = i.closed_for->count();
    o["holders"] = std::move(holders);
    o["waiters"] = std::move(waiters);
    if (!i.nodes.empty()) {
        boost::json::array nodes;
        for (const NodeView& n : i.nodes) {
            boost::json::object one{{"node", clean_utf8(n.node)}, {"owner", clean_utf8(n.owner)}};
            if (n.ttl_left) one["ttl_left_ms"] = n.ttl_left->count();
            if (n.error) one["error"] = n.error.message();
            nodes.push_back(std::move(one));
        }
        o["nodes"] = std::move(nodes);
    }
    if (i.last_token) o["last_token"] = i.last_token.value;
    if (i.last_break) o["last_break"] = record_as_json(*i.last_break);
    return o;
}

}  // namespace holdfast::cli
