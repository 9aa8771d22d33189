// From the global options to an open client.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

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

/// mkdir -p, every new folder with mode 0700.
void make_private(const fs::path& folder) {
    if (fs::is_directory(folder)) return;
    if (folder.has_parent_path() && folder.parent_path() != folder)
        make_private(folder.parent_path());
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw std::system_error(errno, std::generic_category(), "cannot create " + folder.string());
}

}  // namespace

std::string local_url() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    fs::path folder;
    if (state && *state == '/')
        folder = state;
    else if (home && *home == '/')
        folder = fs::path(home) / ".local" / "state";
    else
        throw std::system_error(
            std::make_error_code(std::errc::no_such_file_or_directory),
            "--local needs HOME or XDG_STATE_HOME for the path of its database");
    folder /= "holdfast";
    make_private(folder);
    return "sqlite://" + percent_encoded((folder / "local.db").string()) + "?private=yes";
}

std::string Globals::target() const {
    if (!url.empty()) return url;
    if (!backend.empty()) return backend;
    return local ? local_url() : std::string();
}

std::string Globals::target_source() const {
    if (!url.empty()) return "--url";
    if (!backend.empty()) return "--backend";
    return local ? "--local" : std::string();
}

std::optional<ResolvedBackend> choose_backend(const Globals& g, int& exit,
                                              std::string_view consequence) {
    Diagnostics mistakes;
    auto resolved = resolve(g.target(), g.config_file, spi::Registry::linked(), mistakes);
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
    auto client = Client::open(g.target(), options);
    if (!client) {
        exit = exit_code(client.error());
        complain(client.error(), mistakes, consequence);
        return {};
    }
    return *std::move(client);
}

}  // namespace holdfast::cli
