// `holdfast check`: asked by the command itself, is the lock still held?
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "deadline_file.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

int check(const Globals& g) {
    const char* path = std::getenv("HOLDFAST_DEADLINE_FILE");
    const char* name = std::getenv("HOLDFAST_LOCK");
    if (!path || !name)
        return usage(fmt::format("not under holdfast run: {} is not set",
                                 path ? "HOLDFAST_LOCK" : "HOLDFAST_DEADLINE_FILE"),
                     "check");
    // A missing file means that holdfast has ended, and with it the lock.
    const auto reading = read_deadline(path);
    const milliseconds left = reading ? reading->left : milliseconds::zero();
    const bool held = left > milliseconds::zero();
    if (g.json) {
        boost::json::object o{{"schema", "holdfast.check/1"},
                              {"name", clean_utf8(name)},
                              {"held", held},
                              {"left_ms", held ? left.count() : 0}};
        if (reading && reading->token) o["token"] = reading->token.value;
        std::cout << json_text(o) << std::endl;
    } else {
        std::cout << (held ? left.count() : 0) << std::endl;
    }
    if (held) return exit_ok;
    note(fmt::format("the lock {} is no longer held", in_quotes(name)));
    return exit_lost;
}

}  // namespace

void add_check(CLI::App& app, Globals& g) {
    auto* sub =
        app.add_subcommand("check", "In a command under run: test whether the lock is still held");
    sub->footer(
        "Prints the milliseconds until the lock's deadline, which renewals extend.\n"
        "Exit codes: 0 held, 76 lost or released, 64 not under holdfast run.");
    sub->callback([&g] { g.action = [&g] { return check(g); }; });
}

}  // namespace holdfast::cli
