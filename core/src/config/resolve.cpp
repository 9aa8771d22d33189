// Chooses the configuration: an argument, the environment, or a file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t most_to_read = config::largest_file + 1;

// Also true when we may not look: taking another server in silence would be worse than an error.
bool there(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

constexpr const char* world_writable = "may be written by every user of this machine";

// The text of the file; `problem` is set when there is none.
std::string contents(const std::string& path, std::string& problem) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat facts {};
    std::string text;
    if (fd < 0 || ::fstat(fd, &facts) != 0) {
        problem = "cannot be read (" + std::system_category().message(errno) + ")";
    } else if (S_ISDIR(facts.st_mode)) {
        problem = "is a directory";
    } else if (!S_ISREG(facts.st_mode)) {
        problem = "is not a regular file";  // a FIFO might never be written
    } else if ((facts.st_mode & S_IWOTH) != 0) {
        problem = world_writable;
    } else {
        std::array<char, 16384> block{};
        while (text.size() < most_to_read) {
            const ssize_t n = ::read(fd, block.data(), block.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) problem = "cannot be read (" + std::system_category().message(errno) + ")";
            if (n <= 0) break;
            text.append(block.data(), static_cast<std::size_t>(n));
        }
    }
    if (fd >= 0) ::close(fd);
    return text;
}

std::vector<std::string> names_in(const ConfigFile& file) {
    std::vector<std::string> names;
    for (const ResolvedBackend& resolved : file.backends)
        names.push_back(resolved.settings.name);
    for (const auto& unlinked : file.unlinked)
        names.push_back(unlinked.name);
    return names;
}

result<ResolvedBackend> pick(const ConfigFile& file, std::string_view name,
                             Diagnostics& diagnostics) {
    for (const ResolvedBackend& resolved : file.backends)
        if (resolved.settings.name == name) return resolved;
    for (const auto& unlinked : file.unlinked) {
        if (unlinked.name != name) continue;
        diagnostics.add(unlinked.source,
                        "This program was built without the backend for " + unlinked.scheme + ".",
                        config::link_remedy(unlinked.target));
        return make_error_code(errc::not_supported);
    }
    const std::vector<std::string> names = names_in(file);
    const std::string near = config::nearest(name, names);
    diagnostics.add(file.path, "There is no backend named " + config::in_quotes(name) + ".",
                    near.empty() ? "Named there: " + config::join(names, ", ") + "."
                                 : "Did you mean " + near + "?");
    return make_error_code(errc::bad_config);
}

result<ResolvedBackend> pick_default(const ConfigFile& file, Diagnostics& diagnostics) {
    if (!file.default_name.empty()) return pick(file, file.default_name, diagnostics);
    const std::vector<std::string> names = names_in(file);
    if (names.size() == 1) return pick(file, names.front(), diagnostics);
    diagnostics.add(file.path,
                    "The file names " + std::to_string(names.size()) + " backends and no default.",
                    "Write default = \"" + names.front() +
                        "\" at its top, or name one of: " + config::join(names, ", ") + ".");
    return make_error_code(errc::bad_config);
}

error_code no_file(std::string_view name, const spi::Registry& registry, Diagnostics& diagnostics) {
    std::string remedy =
        "Write a holdfast.toml (see `holdfast config init`), or use a URL such as "
        "redis://HOST:6379.";
    const spi::Descriptor* backend = registry.find_scheme(name);
    if (!backend) backend = registry.find(name);
    if (backend) remedy = "For a URL, write it as in " + backend->example + ".";
    diagnostics.add({},
                    config::in_quotes(name) +
                        " is not a URL, and there is no holdfast.toml that "
                        "could define it.",
                    std::move(remedy));
    return make_error_code(errc::bad_config);
}

}  // namespace

result<ConfigFile> read_config(const std::string& path, const spi::Registry& registry,
                               Diagnostics& diagnostics) {
    std::string problem;
    const std::string text = contents(path, problem);
    if (problem.empty()) return read_config_text(text, path, registry, diagnostics);
    const bool environment = !path.empty() && config::environment("HOLDFAST_CONFIG") == path;
    diagnostics.add(path, "The configuration file " + problem + ".",
                    problem == world_writable ? "Run chmod o-w " + path + "."
                    : environment ? "Set HOLDFAST_CONFIG to a readable file, or unset it."
                                  : "Name a file that exists and is readable.");
    return make_error_code(errc::bad_config);
}

std::string find_config() {
    if (std::string path = config::environment("HOLDFAST_CONFIG"); !path.empty()) return path;
    std::string folder = config::environment("XDG_CONFIG_HOME");
    if (folder.empty()) {
        const std::string home = config::environment("HOME");
        if (!home.empty()) folder = home + "/.config";
    }
    // A relative folder would make the answer depend on the current directory.
    if (folder.starts_with('/')) {
        std::string path = folder + "/holdfast/holdfast.toml";
        if (there(path)) return path;
    }
    std::string path = "/etc/holdfast/holdfast.toml";
    return there(path) ? path : std::string();
}

result<ResolvedBackend> resolve(std::string_view what, const std::string& config_file,
                                const spi::Registry& registry, Diagnostics& diagnostics) {
    if (what.find(':') != std::string_view::npos) return parse_url(what, registry, diagnostics);
    if (what.empty() && config_file.empty()) {
        const std::string url = config::environment("HOLDFAST_URL");
        if (!url.empty()) return config::parse_url_from(url, "HOLDFAST_URL", registry, diagnostics);
    }
    const std::string path = config_file.empty() ? find_config() : config_file;
    if (path.empty()) {
        if (!what.empty()) return no_file(what, registry, diagnostics);
        diagnostics.add({}, "No backend is configured.",
                        "Set HOLDFAST_URL=redis://HOST:6379, write a holdfast.toml (see `holdfast "
                        "config init`), or use --local for locks of this user on this machine.");
        return make_error_code(errc::bad_config);
    }
    const auto file = read_config(path, registry, diagnostics);
    if (!file) return file.error();
    return what.empty() ? pick_default(*file, diagnostics) : pick(*file, what, diagnostics);
}

}  // namespace holdfast
