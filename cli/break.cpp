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

struct TypedBreak {
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

std::string consequence(const TypedBreak& t, const Holder& h) {
    const bool ends = h.ttl_left.has_value();
    const std::string left = ends ? spoken(*h.ttl_left) + " from now" : "its holder releases it";
    if (t.now)
        return fmt::format("This frees the lock AT ONCE: two holders are possible until {}.", left);
    return fmt::format("The holder's next renewal fails. The lock is free {}.",
                       ends ? "at the latest " + left : "when " + left);
}

int report(const TypedBreak& t, const Broken& broken, bool json) {
    if (json) {
        boost::json::object o{{"schema", "holdfast.break/1"},
                              {"name", clean_utf8(t.name)},
                              {"free_in_ms", broken.free_in.count()}};
        o["holder"] = as_json(broken.holder);
        std::cout << boost::json::serialize(o) << std::endl;
    } else {
        std::cout << in_quotes(t.name) << " was broken; its holder was " << who(broken.holder)
                  << ". "
                  << (broken.free_in.count() > 0 ? "Free in " + spoken(broken.free_in) + "."
                                                 : std::string("Free now."))
                  << std::endl;
    }
    return exit_ok;
}

int break_lock(const Globals& g, const TypedBreak& t) {
    const bool tty = ::isatty(STDIN_FILENO) == 1;
    if (!t.force && !tty) return usage("--force is required without a terminal", "break");
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
        complain(fmt::format("nobody holds {}: nothing was broken", in_quotes(t.name)));
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
    const auto broken = client->break_lock(t.name, {token, t.now}, &mistakes);
    if (broken) return report(t, broken->front(), g.json);
    if (broken.error() == errc::not_held) {
        complain(fmt::format("{} now has another holder or none: nothing was broken",
                             in_quotes(t.name)));
        return exit_no;
    }
    complain(broken.error(), mistakes);
    return exit_code(broken.error());
}

}  // namespace

void add_break(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("break", "Revoke a lock that a client holds");
    auto t = std::make_shared<TypedBreak>();
    sub->add_option("NAME", t->name, "Name of the lock")->required();
    sub->add_option("--if-token", t->if_token, "Break it only if held with this token")
        ->type_name("TOKEN");
    sub->add_flag("--now", t->now, "Free it at once; two holders are possible");
    sub->add_flag("--force", t->force, "Do not ask; required without a terminal");
    sub->footer("Exit codes: 0 broken; 1 nothing was broken; 64, 65, 69, 77, 78 as for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return break_lock(g, *t); }; });
}

}  // namespace holdfast::cli
