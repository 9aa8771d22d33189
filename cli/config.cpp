// `holdfast config`: checks, shows and begins a configuration.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "config_template.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "json_text.hpp"
#include "message.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {
namespace {

std::string chosen_file(const Globals& g, const std::string& file) {
    if (!file.empty()) return file;
    return g.config_file.empty() ? find_config() : g.config_file;
}

/// The password, and those of other servers than the ones with the data.
std::vector<spi::Secret> secrets_of(const ResolvedBackend& c) {
    constexpr std::string_view file = "password_file";
    std::vector<spi::Secret> all{c.settings.password};
    for (const spi::OptionSpec& o : c.backend->options)
        if (const std::string_view name = o.name; name.ends_with(file))
            all.push_back(c.settings.named_password(name.substr(0, name.size() - file.size())));
    return all;
}

int check(const Globals& g, const std::string& argument) {
    const std::string path = chosen_file(g, argument);
    if (path.empty()) {
        complain("found no configuration file\nTo write one:  holdfast config init");
        return exit_config;
    }
    Diagnostics mistakes;
    const auto file = read_config(path, spi::Registry::linked(), mistakes);
    if (!file) {
        complain(file.error(), mistakes);
        return exit_config;
    }
    bool readable = true;
    for (const ResolvedBackend& c : file->backends)
        for (const spi::Secret& secret : secrets_of(c)) {
            const auto password = secret.read();
            if (password) continue;
            complain(fmt::format("{}: backend {}: {}", shown(path), in_quotes(c.settings.name),
                                 password.error().detail));
            readable = false;
        }
    if (!readable) return exit_config;
    if (g.json) {
        boost::json::object o{{"schema", "holdfast.config.check/1"}, {"path", clean_utf8(path)}};
        o["backends"] = file->backends.size();
        o["default"] = clean_utf8(file->default_name);
        boost::json::array absent;
        for (const auto& u : file->unlinked)
            absent.push_back({{"name", clean_utf8(u.name)}, {"link", u.target}});
        o["not_built_in"] = std::move(absent);
        std::cout << json_text(o) << std::endl;
        return exit_ok;
    }
    std::cout << shown(path) << ": " << file->backends.size()
              << (file->backends.size() == 1 ? " backend" : " backends");
    if (!file->default_name.empty()) std::cout << ", default " << in_quotes(file->default_name);
    std::cout << '\n';
    for (const ResolvedBackend& c : file->backends)
        std::cout << "  " << shown(c.settings.name) << "  " << shown(c.settings.display()) << '\n';
    for (const auto& u : file->unlinked)
        std::cout << fmt::format("  {}  not built into this program ({})\n", shown(u.name),
                                 u.target);
    std::cout << std::flush;
    return exit_ok;
}

std::string_view secret_text(const spi::Secret& s) {
    switch (s.source()) {
        case spi::Secret::Source::none:
            return "(none)";
        case spi::Secret::Source::literal:
            return "(set)";
        case spi::Secret::Source::file:
            return "(set, from a file)";
        case spi::Secret::Source::environment:
            return "(set, from the environment)";
    }
    return "(set)";
}

int show(const Globals& g) {
    int exit = 0;
    const auto resolved = choose_backend(g, exit);
    if (!resolved) return exit;
    const spi::Settings& s = resolved->settings;
    std::vector<const spi::OptionSpec*> specs;
    for (const spi::OptionSpec& o : spi::common_options())
        specs.push_back(&o);
    for (const spi::OptionSpec& o : resolved->backend->options)
        specs.push_back(&o);
    if (g.json) {
        boost::json::object options;
        for (const spi::OptionSpec* o : specs)
            options[o->name] = {{"value", clean_utf8(s.text(o->name))},
                                {"default", !s.given(o->name)}};
        boost::json::object all{{"schema", "holdfast.config.show/1"},
                                {"backend", resolved->backend->name},
                                {"url", clean_utf8(s.display())},
                                {"source", clean_utf8(resolved->source)},
                                {"password", secret_text(s.password)}};
        all["options"] = std::move(options);
        std::cout << json_text(all) << std::endl;
        return exit_ok;
    }
    std::cout << fmt::format("backend   {}\nurl       {}\nfrom      {}\n", resolved->backend->name,
                             shown(s.display()), shown(resolved->source));
    if (resolved->backend->takes_credentials)
        std::cout << fmt::format("user      {}\npassword  {}\n",
                                 s.user.empty() ? "(none)" : shown(s.user),
                                 secret_text(s.password));
    for (const spi::OptionSpec* o : specs) {
        const std::string value = shown(s.text(o->name));
        std::cout << fmt::format("{:<20} {}{}\n", o->name, value.empty() ? "(none)" : value,
                                 s.given(o->name) ? "" : "   (default)");
    }
    std::cout << std::flush;
    return exit_ok;
}

/// Where holdfast reads a configuration of this user.
std::string path_to_read(const Globals& g) {
    if (!g.config_file.empty()) return g.config_file;
    if (const char* named = std::getenv("HOLDFAST_CONFIG"); named && *named != '\0') return named;
    std::filesystem::path folder;
    const char* config = std::getenv("XDG_CONFIG_HOME");
    const char* home = std::getenv("HOME");
    if (config && *config == '/')
        folder = config;
    else if (home && *home == '/')
        folder = std::filesystem::path(home) / ".config";
    else
        throw WrongEnvironment("name the file to write: neither HOME nor XDG_CONFIG_HOME is set");
    folder /= "holdfast";
    make_private(folder);
    return (folder / "holdfast.toml").string();
}

int init(const Globals& g, const std::string& argument) {
    const std::string path = argument.empty() ? path_to_read(g) : argument;
    // For its owner alone: a password may be written into it.
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) {
        complain(errno == EEXIST
                     ? fmt::format("{} exists: nothing was written", in_quotes(path))
                     : fmt::format("cannot write {}: {}", in_quotes(path), std::strerror(errno)));
        return exit_config;
    }
    const std::string text = config_template(spi::Registry::linked());
    if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        complain(fmt::format("cannot write {}: {}", in_quotes(path), std::strerror(errno)));
        ::unlink(path.c_str());
        return exit_config;
    }
    note(fmt::format("wrote {}\nTo check it:  holdfast config check {}\n{}", in_quotes(path),
                     in_shell(path, "FILE"),
                     argument.empty()
                         ? "holdfast reads this file where no other is named."
                         : "holdfast reads the file that --config or HOLDFAST_CONFIG names, else\n"
                           "~/.config/holdfast/holdfast.toml, else /etc/holdfast/holdfast.toml."));
    return exit_ok;
}

}  // namespace

void add_config(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("config", "Check, show or write a configuration");
    sub->require_subcommand(1);
    auto path = std::make_shared<std::string>();
    auto* c = sub->add_subcommand("check", "Report all mistakes in a configuration file");
    c->add_option("FILE", *path, "Default: --config, else the file that holdfast finds");
    c->callback([path, &g] { g.action = [path, &g] { return check(g, *path); }; });
    auto* s = sub->add_subcommand("show", "Show the chosen backend, its source and every option");
    s->callback([&g] { g.action = [&g] { return show(g); }; });
    auto* i = sub->add_subcommand("init", "Write a commented configuration file");
    i->add_option("PATH", *path,
                  "File to write, which must not exist; default: the one that holdfast reads");
    i->callback([path, &g] { g.action = [path, &g] { return init(g, *path); }; });
    sub->footer("Exit codes: 0; 78 if there is a mistake.");
}

}  // namespace holdfast::cli
