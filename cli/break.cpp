// `holdfast break`: an operator ends what somebody holds, or one of several who hold it.
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
    std::string name, note;
    std::optional<std::string> owner;
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

void report(const TypedBreak& t, const Broken& broken, bool json) {
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
}

/// The holders that are meant; complains and returns none when there are none.
std::vector<Holder> chosen(const TypedBreak& t, const Inspection& seen) {
    std::vector<Holder> all;
    for (const Holder& h : seen.holders)
        if ((!t.owner || t.owner == h.owner) &&
            (t.if_token == 0 || !h.token || t.if_token == h.token.value))
            all.push_back(h);
    if (!all.empty()) return all;
    if (seen.holders.empty())
        complain(fmt::format("{} is not held: nothing was broken", in_quotes(t.name)));
    else if (t.owner)
        complain(fmt::format("{} is not held by {}: nothing was broken", in_quotes(t.name),
                             in_quotes(*t.owner)));
    else
        complain(fmt::format("{} is held with token {}, not {}: nothing was broken",
                             in_quotes(t.name), seen.holders.front().token.value, t.if_token));
    return all;
}

std::string question(const TypedBreak& t, const std::vector<Holder>& holders) {
    std::string text = fmt::format("{} is held", in_quotes(t.name));
    for (const Holder& h : holders)
        text += fmt::format("{} by {}.\n  {}", &h == &holders.front() ? "" : "\n  and",
                            described(h), consequence(t, h));
    return text + "\n  Break it?";
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
    const std::vector<Holder> holders = chosen(t, *seen);
    if (holders.empty()) return exit_no;
    if (!t.force && !agreed(question(t, holders))) {
        note("nothing was broken");
        return exit_no;
    }
    int ended = exit_ok;
    for (const Holder& h : holders) {
        // What was shown is what is broken, not a later grant; of several holders, this one.
        BreakOptions options;
        if (h.token) options.if_token = h.token;
        options.now = t.now;
        if (t.if_token != 0) options.if_token = FencingToken{t.if_token};
        options.note = t.note;
        if (seen->holders.size() > 1 || t.owner) options.owner = h.owner;
        if (t.force && t.now) warn(consequence(t, h));
        const auto broken = client->break_lock(t.name, options, &mistakes);
        if (broken) {
            report(t, broken->front(), g.json);
        } else if (broken.error() == errc::not_held) {
            complain(fmt::format("{} no longer holds {}: nothing was broken", who(h),
                                 in_quotes(t.name)));
            ended = exit_no;
        } else {
            complain(broken.error(), mistakes);
            return exit_code(broken.error());
        }
    }
    return ended;
}

}  // namespace

void add_break(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("break", "Revoke a lock from its holders");
    auto t = std::make_shared<TypedBreak>();
    sub->add_option("NAME", t->name, "Name of the lock")->required();
    sub->add_option("--if-token", t->if_token, "Break it only if held with this token")
        ->type_name("TOKEN");
    sub->add_option("--owner", t->owner, "Break only the holder with this owner id")
        ->type_name("ID");
    sub->add_option("--note", t->note, "Who breaks it and why; default: the user's name")
        ->type_name("TEXT");
    sub->add_flag("--now", t->now, "Free it at once; two holders are possible");
    sub->add_flag("--force", t->force, "Do not ask; required without a terminal");
    sub->footer("Exit codes: 0 broken; 1 nothing was broken; 64, 65, 69, 77, 78 as for run.");
    sub->callback([t, &g] { g.action = [t, &g] { return break_lock(g, *t); }; });
}

}  // namespace holdfast::cli
