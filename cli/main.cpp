// The `holdfast` command: global options, and the choice of the subcommand.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <exception>

#include "args.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "help_formatter.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace {

using namespace holdfast::cli;

void add_globals(CLI::App& app, Globals& g, std::string& color) {
    auto* url = app.add_option("--url", g.url, "Backend by URL: redis://host:6379, sqlite:///path");
    auto* backend = app.add_option("--backend", g.backend, "Backend by its name in holdfast.toml");
    auto* local = app.add_flag("--local", g.local, "Backend for this machine only: a SQLite file");
    url->type_name("URL");
    backend->type_name("NAME");
    url->excludes(backend)->excludes(local);
    backend->excludes(local);
    app.add_option("--config", g.config_file, "Configuration file instead of the search path")
        ->type_name("FILE");
    auto* quiet = app.add_flag("-q,--quiet", voice().quiet, "Say only what went wrong");
    app.add_flag("-v,--verbose", voice().verbose, "Say more")->excludes(quiet);
    app.add_option("--color", color, "auto, always or never; NO_COLOR is respected")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    app.add_flag("--json", g.json, "Data as JSON on standard output");
    app.set_version_flag("--version", "holdfast " HOLDFAST_VERSION, "Print the version");
}

/// Descriptors of ours must not take the places of the command's standard ones.
void fill_standard_descriptors() {
    int fd = 0;
    do
        fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) ::close(fd);
}

int run_main(int argc, char** argv) {
    const Split split = split_arguments(argc, argv);
    const bool password = blank_passwords(argc, argv);

    CLI::App app(
        "One command at a time, on all machines that ask the same server for the same name.",
        "holdfast");
    auto formatter = std::make_shared<HelpFormatter>();
    formatter->column_width(34);
    app.formatter(formatter);
    app.fallthrough();  // subcommands inherit it: global options may come later, too
    Globals globals;
    globals.command = split.command;
    std::string color = "auto";
    add_globals(app, globals, color);
    add_run(app, globals);
    add_check(app, globals);
    add_inspect(app, globals);
    add_list(app, globals);
    add_break(app, globals);
    add_backends(app, globals);
    add_config(app, globals);
    add_schema(app, globals);
    add_demo(app, globals);
    app.require_subcommand(1);
    app.footer("holdfast COMMAND --help says more; the manual page is holdfast(1).");

    if (const auto refused = refuse_subcommand(app, split)) return *refused;
    try {
        std::vector<std::string> reversed(split.ours.rbegin(), split.ours.rend());
        app.parse(reversed);
    } catch (const CLI::Success& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        return usage_error(app, split, e);
    }
    voice().color = color == "always"  ? Color::always
                    : color == "never" ? Color::never
                                       : Color::automatic;
    if (password)
        warn(
            "other users of this machine could read the password in --url for a moment\n"
            "use password_file or password_env instead");
    return globals.action();
}

}  // namespace

int main(int argc, char** argv) {
    fill_standard_descriptors();
    try {
        if (const auto exit = demo_worker(argc, argv)) return *exit;
        return run_main(argc, argv);
    } catch (const std::exception& e) {
        complain(e.what());
        return exit_internal;
    }
}
