// `holdfast break`: an operator ends a lock that somebody holds.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <iostream>

#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "holder_text.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

struct Typed {
    std::string name;
    std::uint64_t if_token = 0;
    bool now = false;
    bool force = false;
};

/// Asks on the terminal; only "y" and "yes" are a yes.
bool agreed(const std::string& question) {
    std::cerr << "holdfast: " << question << " [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes" || answer == "Y";
}

std::string consequence(const Typed& t, const Holder& h) {
    const std::string left = h.ttl_left.count() < 0 ? std::string("it ends by itself")
                                                    : spoken(h.ttl_left) + " from now";
    if (t.now) return fmt::format("It is freed AT ONCE: until {} two holders are possible.", left);
    return fmt::format(
        "Its holder is told; nobody else gets it before its last validity has run "
        "out, {}.",
        left);
}

int report(const Typed& t, const Broken& broken, bool json) {
    if (json) {
        boost::json::object o{{"schema", "holdfast.break/1"},
                              {"name", clean_utf8(t.name)},
                              {"free_in_ms", broken.free_in.count()}};
        o["holder"] = as_json(broken.holder);
        std::cout << boost::json::serialize(o) << std::endl;
    } else {
        std::cout << in_quotes(t.name) << " was broken; it was held by " << who(broken.holder)
                  << ". "
                  << (broken.free_in.count() > 0 ? "Free in " + spoken(broken.free_in) + "."
                                                 : std::string("Free now."))
                  << std::endl;
    }
    return exit_ok;
}

int break_lock(const Globals& g, const Typed& t) {
    const bool tty = ::isatty(STDIN_FILENO) == 1;
    if (!t.force && !tty) return usage("without a terminal to ask on, --force is needed", "break");
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    const auto seen = client->inspect(t.name, &mistakes);
    if (!seen) {
        complain(seen.error(), mistakes);
        return exit_code(seen.error());
    }
    if (seen->holders.empty()) {
        complain(fmt::format("nobody holds {}: there is nothing to break", in_quotes(t.name)));
        return exit_no;
    }
    const Holder& holder = seen->holders.front();
    // What was shown is what is broken, not a later grant.
    std::optional<FencingToken> token;
    if (holder.token) token = holder.token;
    if (t.if_token != 0) token = FencingToken{t.if_token};
    if (token && holder.token && *token != holder.token) {
        complain(fmt::format("{} is held with token {}, not {}: nothing was broken",
                             in_quotes(t.name), holder.token.value, token->value));
        return exit_no;
    }
    if (!t.force && !agreed(fmt::format("{} is held by {}.\n  {}\n  Break it?", in_quotes(t.name),
                                        described(holder), consequence(t, holder)))) {
        note("nothing was broken");
        return exit_no;
    }
    if (t.force && t.now) warn(consequence(t, holder));
    const auto broken = client->break_lock(t.name, token, t.now, &mistakes);
    if (broken) return report(t, *broken, g.json);
    if (broken.error() == errc::not_held) {
        complain(
            fmt::format("{} has changed hands meanwhile: nothing was broken", in_quotes(t.name)));
        return exit_no;
    }
    complain(broken.error(), mistakes);
    return exit_code(broken.error());
}

}  // namespace

void add_break(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("break", "Revoke a lock that somebody holds");
    auto t = std::make_shared<Typed>();
    sub->add_option("NAME", t->name, "The lock")->required();
    sub->add_option("--if-token", t->if_token, "Only the grant with this token")
        ->type_name("TOKEN");
    sub->add_flag("--now", t->now, "Free it at once: two holders are possible for a while");
    sub->add_flag("--force", t->force, "Do not ask");
    sub->footer(
        "Exit codes: 0 broken; 1 nobody holds it, another token, or the answer was no;\n"
        "64, 65, 69, 77, 78 as for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return break_lock(g, *t); }; });
}

}  // namespace holdfast::cli
