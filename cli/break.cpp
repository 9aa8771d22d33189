// `holdfast break`: an operator ends what somebody holds, or one of several who hold it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "as_json.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "holder_text.hpp"
#include "holdfast/spi/holder.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "option_values.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

struct TypedBreak {
    std::string name, note;
    std::optional<std::string> owner;
    std::optional<std::uint64_t> if_token;
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

void report(const TypedBreak& t, const Broken& one, bool json) {
    if (json) {
        std::cout << json_text(broken(t.name, one)) << std::endl;
    } else {
        std::cout << in_quotes(t.name) << " was broken; its holder was " << who(one.holder) << ". "
                  << (one.free_in.count() > 0 ? "Free in " + spoken(one.free_in) + "."
                                              : std::string("Free now."))
                  << std::endl;
    }
}

/// Why nothing was broken: for people, and with --json for programs.
void say_nothing_broken(const TypedBreak& t, std::string_view why, bool json) {
    complain(fmt::format("{}: nothing was broken", why));
    if (json) std::cout << json_text(not_broken(t.name, why)) << std::endl;
}

/// Why none of the holders is meant.
std::string why_none(const TypedBreak& t, const Inspection& seen) {
    const std::string name = in_quotes(t.name);
    if (seen.holders.empty()) return name + " is not held";
    if (t.owner && std::none_of(seen.holders.begin(), seen.holders.end(),
                                [&t](const Holder& h) { return h.owner == *t.owner; }))
        return fmt::format("{} is not held by {}", name, in_quotes(*t.owner));
    const Holder& first = seen.holders.front();
    if (!first.token)
        return fmt::format(
            "{} is held by {} without a token, so --if-token {} does not fit (name it "
            "with --owner)",
            name, who(first), *t.if_token);
    return fmt::format("{} is held with token {}, not {}", name, first.token.value, *t.if_token);
}

/// The holders that are meant; complains and returns none when there are none.
std::vector<Holder> chosen(const TypedBreak& t, const Inspection& seen, bool json) {
    HolderFilter which;
    if (t.if_token) which.if_token = FencingToken{*t.if_token};
    which.owner = t.owner;
    std::vector<Holder> all;
    for (const Holder& h : seen.holders)
        if (spi::is_meant(which, h.owner, h.token)) all.push_back(h);
    if (all.empty()) say_nothing_broken(t, why_none(t, seen), json);
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
    const std::vector<Holder> holders = chosen(t, *seen, g.json);
    if (holders.empty()) return exit_no;
    if (!t.force && !agreed(question(t, holders))) {
        say_nothing_broken(t, "the question was not answered with yes", g.json);
        return exit_no;
    }
    int ended = exit_ok;
    for (const Holder& h : holders) {
        // What was shown is what is broken, not a later grant; of several holders, this one.
        BreakOptions options;
        if (h.token) options.if_token = h.token;
        options.now = t.now;
        if (t.if_token) options.if_token = FencingToken{*t.if_token};
        options.note = t.note;
        const bool by_owner = !h.token && !h.foreign;  // a foreign one may not be text
        if (seen->holders.size() > 1 || t.owner || by_owner) options.owner = h.owner;
        if (t.force && t.now) warn(consequence(t, h));
        const auto broken = client->break_lock(t.name, options, &mistakes);
        if (broken) {
            report(t, broken->front(), g.json);
        } else if (broken.error() == errc::not_held) {
            say_nothing_broken(t, fmt::format("{} no longer holds {}", who(h), in_quotes(t.name)),
                               g.json);
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
        ->type_name("TOKEN")
        ->transform(number(1));
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
