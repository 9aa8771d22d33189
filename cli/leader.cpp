// `holdfast leader`: who leads an election, once or with each change.
#include <fmt/format.h>

#include <iostream>

#include "as_json.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "holdfast/election.hpp"
#include "holdfast/log.hpp"
#include "json_text.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

struct TypedLeader {
    std::string name;
    bool watch = false;
};

void print(const std::string& name, const std::optional<Leader>& leader, bool json) {
    if (json) {
        std::cout << json_text(led(name, leader)) << std::endl;
    } else if (leader) {
        // A foreign client has neither value nor host, but an id at the server.
        const std::string& text = !leader->value.empty()  ? leader->value
                                  : !leader->host.empty() ? leader->host
                                                          : leader->owner;
        std::cout << shown(text) << std::endl;
    } else {
        note(fmt::format("{} has no leader", in_quotes(name)));
    }
}

int leader(const Globals& g, const TypedLeader& t) {
    int exit = 0;
    // With --watch it outlasts an interruption.
    const auto client = open_client(g, exit, {}, [](const Event& e) {
        const bool interrupted = e.kind == Event::Kind::unreachable;
        if (interrupted || e.kind == Event::Kind::reachable) warn(log_line(e));
    });
    if (!client) return exit;
    Diagnostics mistakes;
    const auto fail = [&](error_code ec) {
        complain(ec, mistakes);
        return exit_code(ec);
    };
    const auto election = client->make_election(t.name, {}, &mistakes);
    if (!election) return fail(election.error());
    auto now = election->leader(&mistakes);
    if (!now) return fail(now.error());
    print(t.name, *now, g.json);
    while (t.watch && std::cout) {
        auto next = election->observe(*now);
        if (!next) return fail(next.error());
        now = std::move(next);
        print(t.name, *now, g.json);
    }
    return *now ? exit_ok : exit_no;
}

}  // namespace

void add_leader(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("leader", "Show who leads an election");
    auto t = std::make_shared<TypedLeader>();
    sub->add_option("NAME", t->name, "Name of the election")->required();
    sub->add_flag("--watch", t->watch, "Keep running; print each change");
    sub->footer(
        "Prints the leader's value. Exit codes: 0 there is a leader; 1 there is none;\n"
        "64, 65, 69, 77, 78 as for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return leader(g, *t); }; });
}

}  // namespace holdfast::cli
