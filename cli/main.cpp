// The `holdfast` command: global options, and the choice of the subcommand.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <exception>
#include <iostream>

#include "args.hpp"
#include "complete.hpp"
#include "exit_code.hpp"
#include "failure.hpp"
#include "globals.hpp"
#include "help_formatter.hpp"
#include "message.hpp"
#include "option_values.hpp"
#include "usage_error.hpp"

namespace {

using namespace holdfast::cli;

void add_globals(CLI::App& app, Globals& g, std::string& color) {
    auto* url = app.add_option("--url", g.url, "Backend by URL: redis://host:6379, sqlite:///path");
    auto* backend = app.add_option("--backend", g.backend, "Backend by its name in holdfast.toml");
    auto* local = app.add_flag("--local", g.local, "A SQLite file of this user on this machine");
    url->type_name("URL");
    backend->type_name("NAME");
    url->excludes(backend)->excludes(local);
    backend->excludes(local);
    app.add_option("--config", g.config_file, "Read this configuration file")->type_name("FILE");
    auto* quiet = app.add_flag("-q,--quiet", voice().quiet, "Print errors and warnings only");
    app.add_flag("-v,--verbose", voice().verbose, "Print more")->excludes(quiet);
    app.add_option("--color", color, "auto, always or never; NO_COLOR is respected")
        ->type_name("WHEN")
        ->check(one_of({"auto", "always", "never"}));
    app.add_flag("--json", g.json, "Write data as JSON to standard output");
    app.set_version_flag("--version", "holdfast " HOLDFAST_VERSION, "Print the version");
}

/// Descriptors of ours must not take the places of the command's standard ones. True when standard
/// output was closed.
bool fill_standard_descriptors() {
    const bool no_output = ::fcntl(STDOUT_FILENO, F_GETFD) < 0;
    int fd = 0;
    do
        fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) ::close(fd);
    return no_output;
}

/// What was printed has arrived; complains when it has not.
bool printed() {
    std::cout.flush();
    if (std::cout) return true;
    complain("cannot write to standard output: what it says is not complete");
    return false;
}

int run_main(int argc, char** argv, bool no_output) {
    const Split split = split_arguments(argc, argv);
    const bool password = blank_passwords(argc, argv);
    for (const std::string& secret : passwords_in(split.ours))
        never_say(secret);

    CLI::App app("Runs a command under a lock that all machines share.", "holdfast");
    auto formatter = std::make_shared<HelpFormatter>();
    formatter->column_width(34);
    app.formatter(formatter);
    app.fallthrough();  // subcommands inherit it: global options may come later, too
    Globals globals;
    globals.command = split.command;
    std::string color = "auto";
    add_globals(app, globals, color);
    add_run(app, globals);
    add_elect(app, globals);
    add_check(app, globals);
    add_inspect(app, globals);
    add_leader(app, globals);
    add_list(app, globals);
    add_ask(app, globals);
    add_break(app, globals);
    add_backends(app, globals);
    add_doctor(app, globals);
    add_config(app, globals);
    add_schema(app, globals);
    add_demo(app, globals);
    app.require_subcommand(1);
    app.footer("Run holdfast COMMAND --help for details, or see holdfast(1).");

    // Writes fail, as they would with nothing there; a command that we start gets /dev/null.
    if (no_output && split.command.empty()) {
        const int closed = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(closed, STDOUT_FILENO);
        ::close(closed);
    }
    if (const auto exit = complete(argc, argv, app, globals)) return *exit;
    if (const auto refused = refuse_subcommand(app, split)) return *refused;
    try {
        std::vector<std::string> reversed(split.ours.rbegin(), split.ours.rend());
        app.parse(reversed);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        return usage_error(app, split, e);
    }
    if (const auto refused = refuse_empty(app, split)) return *refused;
    voice().color = color == "always"  ? Color::always
                    : color == "never" ? Color::never
                                       : Color::automatic;
    if (password)
        warn(
            "other users of this machine could briefly read the password in the URL\n"
            "Use password_file or password_env instead.");
    return globals.action();
}

}  // namespace

int main(int argc, char** argv) {
    const bool no_output = fill_standard_descriptors();
    try {
        if (const auto exit = demo_worker(argc, argv)) return *exit;
        const int exit = run_main(argc, argv, no_output);
        return printed() || exit != exit_ok ? exit : exit_output;
    } catch (const WrongEnvironment& e) {
        complain(e.what());
        return exit_config;
    } catch (const std::exception& e) {
        const int exit = failed(e);
        finish_messages();
        return exit;
    }
}
