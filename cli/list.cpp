// `holdfast list`: the names that are held now.
#include <iostream>

#include "as_json.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "holder_text.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "option_values.hpp"

namespace holdfast::cli {
namespace {

struct TypedList {
    std::string prefix;
    std::size_t limit = 10000;
    bool long_form = false;
};

void print(const std::string& name, const Inspection* seen, bool json) {
    if (json) {
        std::cout << json_text(listed(name, seen)) << '\n';
        return;
    }
    std::cout << shown(name);
    if (seen) std::cout << "  " << described(*seen);
    std::cout << '\n';
}

int list(const Globals& g, const TypedList& t) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    const auto names = client->list(t.prefix, t.limit, &mistakes);
    if (!names) {
        complain(names.error(), mistakes);
        return exit_code(names.error());
    }
    for (const std::string& name : *names) {
        if (!t.long_form) {
            print(name, nullptr, g.json);
            continue;
        }
        const auto seen = client->inspect(name, &mistakes);
        if (!seen) {
            complain(seen.error(), mistakes);
            return exit_code(seen.error());
        }
        if (!seen->holders.empty()) print(name, &*seen, g.json);
    }
    std::cout << std::flush;
    if (names->size() == t.limit) warn("there may be more names: the list ends at --limit");
    return exit_ok;
}

}  // namespace

void add_list(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("list", "List the locks that are held now");
    auto t = std::make_shared<TypedList>();
    sub->add_option("PREFIX", t->prefix, "List only names that begin with this");
    sub->add_option("--limit", t->limit, "List at most this many names (10000)")
        ->type_name("N")
        ->transform(number(1));
    sub->add_flag("-l,--long", t->long_form, "Show the holders and the number of waiters");
    sub->footer("With --json it writes one object per line.");
    sub->callback([t, &g] { g.action = [t, &g] { return list(g, *t); }; });
}

}  // namespace holdfast::cli
