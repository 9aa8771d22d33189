#include "as_json.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <ctime>

#include "holdfast/spi/safe_text.hpp"

namespace holdfast {
namespace {

using spi::clean_utf8;

boost::json::array list_of(const std::vector<Holder>& holders) {
    boost::json::array all;
    for (const Holder& h : holders)
        all.push_back(as_json(h));
    return all;
}

boost::json::object as_json(const NodeView& n) {
    boost::json::object o{{"node", clean_utf8(n.node)}, {"owner", clean_utf8(n.owner)}};
    if (n.ttl_left) o["ttl_left_ms"] = n.ttl_left->count();
    if (n.error) o["error"] = n.error.message();
    return o;
}

boost::json::object as_json(const BreakRecord& r) {
    boost::json::object o{{"at", utc_text(r.at)}, {"host", clean_utf8(r.host)}};
    o["pid"] = r.pid;
    o["note"] = clean_utf8(r.note);
    o["now"] = r.now;
    o["owner"] = clean_utf8(r.owner);
    if (r.token) o["token"] = r.token.value;
    return o;
}

bool is_accepted(const Finding& f, const std::vector<std::string>& accepted) {
    return std::find(accepted.begin(), accepted.end(), f.id) != accepted.end();
}

boost::json::object as_json(const Finding& f, bool accepted) {
    boost::json::object o{
        {"id", f.id}, {"verdict", to_string(f.verdict)}, {"found", clean_utf8(f.found)}};
    if (!f.where.empty()) o["where"] = clean_utf8(f.where);
    if (!f.consequence.empty()) o["consequence"] = clean_utf8(f.consequence);
    if (!f.remedy.empty()) o["remedy"] = clean_utf8(f.remedy);
    if (accepted) o["accepted"] = true;
    return o;
}

}  // namespace

boost::json::object as_json(const Holder& h) {
    boost::json::object o{{"owner", clean_utf8(h.owner)}, {"host", clean_utf8(h.host)}};
    o["pid"] = h.pid;
    o["note"] = clean_utf8(h.note);
    if (h.token) o["token"] = h.token.value;
    if (h.ttl_left) o["ttl_left_ms"] = h.ttl_left->count();
    if (h.held_for) o["held_for_ms"] = h.held_for->count();
    o["foreign"] = h.foreign;
    o["revoked"] = h.revoked;
    o["mode"] = to_string(h.mode);
    o["permits"] = h.permits;
    o["asked"] = h.asked;
    return o;
}

boost::json::object as_json(const Inspection& i, const std::string& url) {
    boost::json::object o{{"schema", "holdfast.inspect/1"},
                          {"name", clean_utf8(i.name)},
                          {"url", clean_utf8(url)},
                          {"held", !i.holders.empty()},
                          {"kind", to_string(i.kind)}};
    if (i.kind == Kind::semaphore) o["limit"] = i.limit;
    if (i.closed_for) o["closed_for_ms"] = i.closed_for->count();
    o["holders"] = list_of(i.holders);
    o["waiters"] = list_of(i.waiters);
    if (!i.nodes.empty()) {
        boost::json::array nodes;
        for (const NodeView& n : i.nodes)
            nodes.push_back(as_json(n));
        o["nodes"] = std::move(nodes);
    }
    if (!i.server.empty()) o["server"] = clean_utf8(i.server);
    if (i.last_token) o["last_token"] = i.last_token.value;
    if (i.last_break) o["last_break"] = as_json(*i.last_break);
    return o;
}

boost::json::object listed(std::string_view name, const Inspection* seen) {
    boost::json::object o{{"schema", "holdfast.list/1"}, {"name", clean_utf8(name)}};
    if (seen == nullptr) return o;
    if (!seen->holders.empty()) o["holder"] = as_json(seen->holders.front());
    o["holders"] = list_of(seen->holders);
    o["kind"] = to_string(seen->kind);
    o["waiters"] = seen->waiters.size();
    return o;
}

boost::json::object asked(std::string_view name, const std::vector<Holder>& holders) {
    boost::json::object o{{"schema", "holdfast.ask/1"}, {"name", clean_utf8(name)}};
    o["holders"] = list_of(holders);
    return o;
}

boost::json::object broken(std::string_view name, const Broken& b) {
    boost::json::object o{{"schema", "holdfast.break/1"},
                          {"name", clean_utf8(name)},
                          {"broken", true},
                          {"free_in_ms", b.free_in.count()}};
    o["holder"] = as_json(b.holder);
    return o;
}

boost::json::object not_broken(std::string_view name, std::string_view why) {
    return {{"schema", "holdfast.break/1"},
            {"name", clean_utf8(name)},
            {"broken", false},
            {"reason", clean_utf8(why)}};
}

boost::json::object led(std::string_view name, const std::optional<Leader>& leader) {
    boost::json::object o{
        {"schema", "holdfast.leader/1"}, {"name", clean_utf8(name)}, {"led", leader.has_value()}};
    if (!leader) return o;
    o["value"] = clean_utf8(leader->value);
    o["host"] = clean_utf8(leader->host);
    o["owner"] = clean_utf8(leader->owner);
    if (leader->token) o["token"] = leader->token.value;
    return o;
}

boost::json::object as_json(const Examination& e, const Client& client,
                            const std::vector<std::string>& accepted) {
    boost::json::array findings;
    for (const Finding& f : e.findings)
        findings.push_back(as_json(f, is_accepted(f, accepted)));
    boost::json::object o{{"schema", "holdfast.doctor/1"},
                          {"backend", client.backend()},
                          {"url", clean_utf8(client.url())},
                          {"verdict", to_string(verdict_without(e, accepted))},
                          {"safety", to_string(e.capabilities.safety)}};
    if (!e.server.empty()) o["server"] = clean_utf8(e.server);
    o["findings"] = std::move(findings);
    return o;
}

Verdict verdict_without(const Examination& e, const std::vector<std::string>& accepted) {
    Examination rest = e;
    std::erase_if(rest.findings, [&](const Finding& f) { return is_accepted(f, accepted); });
    return rest.verdict();
}

std::string utc_text(std::chrono::system_clock::time_point at) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace holdfast
