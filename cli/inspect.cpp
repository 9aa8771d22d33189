// `holdfast inspect`: the holders of a name, and its waiters.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>

#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "holder_text.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

std::string as_text(const Inspection& i) {
    std::string text = in_quotes(i.name);
    if (i.holders.empty()) text += " is " + described_holders(i) + '\n';
    std::uint32_t permits = 0;
    for (const Holder& h : i.holders) {
        text += (permits == 0 ? " is held by " : "  and by ") + described(h) + '\n';
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
    return text;
}

std::string as_json_text(const Inspection& i, const Client& client) {
    boost::json::array holders, waiters;
    for (const Holder& h : i.holders)
        holders.push_back(as_json(h));
    for (const Holder& w : i.waiters)
        waiters.push_back(as_json(w));
    boost::json::object o{{"schema", "holdfast.inspect/1"},
                          {"name", clean_utf8(i.name)},
                          {"url", clean_utf8(client.url())},
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
    return boost::json::serialize(o) + '\n';
}

int inspect(const Globals& g, const std::string& name) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    const auto seen = client->inspect(name, &mistakes);
    if (!seen) {
        complain(seen.error(), mistakes);
        return exit_code(seen.error());
    }
    std::cout << (g.json ? as_json_text(*seen, *client) : as_text(*seen)) << std::flush;
    return exit_ok;
}

}  // namespace

void add_inspect(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("inspect", "Show the holders and the waiters of a lock");
    auto name = std::make_shared<std::string>();
    sub->add_option("NAME", *name, "Name of the lock")->required();
    sub->footer("Exit codes: 0 the server answered, held or not; 64, 65, 69, 77, 78 as for run.");
    sub->callback([name, &g] { g.action = [name, &g] { return inspect(g, *name); }; });
}

}  // namespace holdfast::cli
