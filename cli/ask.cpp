// `holdfast ask`: asks the holders of a lock to release it. They decide.
#include <fmt/format.h>

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

struct TypedAsk {
    std::string name;
    std::optional<std::string> owner;
    std::optional<std::uint64_t> if_token;
};

void print(const std::string& name, const std::vector<Holder>& holders) {
    std::cout << json_text(asked(name, holders)) << std::endl;
}

int ask(const Globals& g, const TypedAsk& t) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    HolderFilter which;
    if (t.if_token) which.if_token = FencingToken{*t.if_token};
    which.owner = t.owner;
    const auto holders = client->request_release(t.name, which, &mistakes);
    if (!holders && holders.error() == errc::not_held) {
        complain(fmt::format("{} has no{} holder: no request was sent", in_quotes(t.name),
                             !t.owner && !t.if_token ? "" : " such"));
        if (g.json) print(t.name, {});
        return exit_no;
    }
    if (!holders) {
        complain(holders.error(), mistakes);
        return exit_code(holders.error());
    }
    if (g.json) {
        print(t.name, *holders);
        return exit_ok;
    }
    for (const Holder& h : *holders)
        std::cout << "asked " << who(h) << " to release " << in_quotes(t.name) << '\n';
    std::cout << std::flush;
    return exit_ok;
}

}  // namespace

void add_ask(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("ask", "Ask the holders of a lock to release it");
    auto t = std::make_shared<TypedAsk>();
    sub->add_option("NAME", t->name, "Name of the lock")->required();
    sub->add_option("--owner", t->owner, "Ask only the holder with this owner id")->type_name("ID");
    sub->add_option("--if-token", t->if_token, "Ask only holders with this token")
        ->type_name("TOKEN")
        ->transform(number(1));
    sub->footer(
        "Nothing is forced: a program watches for the request, and run has --on-ask.\n"
        "Exit codes: 0 asked; 1 no holder; 64, 65, 69, 77, 78 as for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return ask(g, *t); }; });
}

}  // namespace holdfast::cli
