// From the global options to an open client.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "exit_code.hpp"
#include "globals.hpp"
#include "holdfast/log.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

std::string percent_encoded(std::string_view path) {
    std::string out;
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') ||
                           std::string_view("/-._~").find(c) != std::string_view::npos;
        if (plain)
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace

void make_private(const std::filesystem::path& folder) {
    if (fs::is_directory(folder)) return;
    if (folder.has_parent_path() && folder.parent_path() != folder)
        make_private(folder.parent_path());
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw WrongEnvironment(fmt::format("cannot create the folder {}: {}",
                                           in_quotes(folder.string()), std::strerror(errno)));
}

std::string local_url() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    fs::path folder;
    if (state && *state == '/')
        folder = state;
    else if (home && *home == '/')
        folder = fs::path(home) / ".local" / "state";
    else
        throw WrongEnvironment(
            "--local needs HOME or XDG_STATE_HOME, an absolute path, for its database");
    folder /= "holdfast";
    make_private(folder);
    return "sqlite://" + percent_encoded((folder / "local.db").string()) + "?private=yes";
}

std::string Globals::target() const {
    // A user that sets them to nothing has hardly meant "another backend, if there is one".
    for (const char* const name : {"HOLDFAST_URL", "HOLDFAST_CONFIG"}) {
        const bool passed_over = !url.empty() || local || !config_file.empty() ||
                                 (!backend.empty() && name == std::string_view("HOLDFAST_URL"));
        const char* const value = std::getenv(name);
        if (!passed_over && value && *value == '\0')
            throw WrongEnvironment(
                fmt::format("{} is set and empty\nGive it a value, or unset it.", name));
    }
    if (!url.empty()) return url;
    if (!backend.empty()) return backend;
    return local ? local_url() : std::string();
}

std::string Globals::target_source() const {
    if (!url.empty()) return "--url";
    if (!backend.empty()) return "--backend";
    return local ? "--local" : std::string();
}

namespace {

/// As Globals::target(); complains and returns nothing on error.
std::optional<std::string> named_target(const Globals& g, int& exit, std::string_view consequence) {
    try {
        return g.target();
    } catch (const WrongEnvironment& e) {
        exit = exit_config;
        complain(consequence.empty() ? std::string(e.what())
                                     : fmt::format("{}\n{}", e.what(), consequence));
        return {};
    }
}

}  // namespace

std::optional<ResolvedBackend> choose_backend(const Globals& g, int& exit,
                                              std::string_view consequence) {
    const auto target = named_target(g, exit, consequence);
    if (!target) return {};
    Diagnostics mistakes;
    auto resolved = resolve(*target, g.config_file, spi::Registry::linked(), mistakes);
    if (!resolved) {
        exit = exit_code(resolved.error());
        complain(resolved.error(), mistakes, consequence);
        return {};
    }
    if (!g.target_source().empty() && g.backend.empty()) resolved->source = g.target_source();
    return *std::move(resolved);
}

std::optional<Client> open_client(const Globals& g, int& exit, std::string_view consequence,
                                  EventSink events) {
    const auto target = named_target(g, exit, consequence);
    if (!target) return {};
    Diagnostics mistakes;
    ClientOptions options;
    options.config_file = g.config_file;
    options.diagnostics = &mistakes;
    options.events = [events = std::move(events)](const Event& e) {
        if (e.kind == Event::Kind::warning)
            warn(log_line(e));
        else if (events)
            events(e);
    };
    auto client = Client::open(*target, options);
    if (!client) {
        exit = exit_code(client.error());
        complain(client.error(), mistakes, consequence);
        return {};
    }
    return *std::move(client);
}

}  // namespace holdfast::cli
