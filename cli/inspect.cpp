// `holdfast inspect`: the holders of a name, and its waiters.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "as_json.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "inspect_watch.hpp"
#include "inspection_text.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

/// Each look is a request of its own.
constexpr milliseconds least_interval{100};

struct TypedInspect {
    std::string name;
    std::string watch;  ///< a time, or "true" of an option without one
};

int inspect_once(const Client& client, const std::string& name, bool json) {
    Diagnostics mistakes;
    const auto seen = client.inspect(name, &mistakes);
    if (!seen) {
        complain(seen.error(), mistakes);
        return exit_code(seen.error());
    }
    std::cout << (json ? json_text(as_json(*seen, client.url())) + '\n' : as_text(*seen))
              << std::flush;
    return exit_ok;
}

int inspect(const Globals& g, const TypedInspect& t) {
    std::optional<Signals> signals;
    std::optional<milliseconds> interval;
    if (!t.watch.empty()) {
        interval = parse_wait(t.watch == "true" ? "1" : t.watch);
        if (!interval || *interval < least_interval)
            return usage(fmt::format("--watch={}: write a time of at least {}, such as --watch=0.5 "
                                     "or --watch=5s",
                                     shown(t.watch), spoken(least_interval)),
                         "inspect");
        signals.emplace();  // before the client starts its threads
    }
    int exit = 0;
    auto client = open_client(g, exit);
    if (!client) return exit;
    if (signals) return watch(*client, t.name, *interval, g.json, *signals);
    return inspect_once(*client, t.name, g.json);
}

}  // namespace

void add_inspect(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("inspect", "Show the holders and the waiters of a lock");
    auto t = std::make_shared<TypedInspect>();
    sub->add_option("NAME", t->name, "Name of the lock")->required();
    sub->add_flag("--watch", t->watch,
                  "Look again every second (--watch=0.5s: twice a second): redraw on a terminal, "
                  "else write each change");
    sub->footer(
        "Exit codes: 0 the server answered, held or not, or ^C ended --watch; 64, 65, 69, 77, 78 "
        "as\n"
        "for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return inspect(g, *t); }; });
}

}  // namespace holdfast::cli
