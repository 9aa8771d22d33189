// Configuration: a URL, a name in holdfast.toml, or the environment. All of it is checked before
// anything connects, and all mistakes are reported at once, each with its place and a remedy.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/registry.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast {

/// One backend, chosen and checked.
struct ResolvedBackend {
    const spi::Descriptor* backend = nullptr;
    spi::Settings settings;
    std::string source;  ///< "URL", "HOLDFAST_URL", "/etc/.../holdfast.toml:4"
};

/// A configuration file as read: its backends, in the file's order.
struct ConfigFile {
    /// An entry for a backend of Holdfast's that this program was not linked with. It is an error
    /// only when chosen, since programs with different backends may share one file.
    struct Unlinked {
        std::string name, scheme;
        std::string target;  ///< "Holdfast::redis"
        std::string source;  ///< "/etc/.../holdfast.toml:4"
    };
    std::string path;
    std::string default_name;
    std::vector<ResolvedBackend> backends;
    std::vector<Unlinked> unlinked;
};

/// Reads one URL. Errors: bad_config, not_supported (the scheme is not linked in; the text names
/// the target to link). All mistakes go to `diagnostics`.
HOLDFAST_EXPORT result<ResolvedBackend> parse_url(std::string_view url, const spi::Registry&,
                                                  Diagnostics&);

/// Reads and checks a holdfast.toml, and gives file:line:column for each mistake. Relative paths in
/// it start at its folder. Errors: bad_config.
HOLDFAST_EXPORT result<ConfigFile> read_config(const std::string& path, const spi::Registry&,
                                               Diagnostics&);
/// As read_config, for text that was read already; `source_name` stands for the path.
HOLDFAST_EXPORT result<ConfigFile> read_config_text(std::string_view text,
                                                    const std::string& source_name,
                                                    const spi::Registry&, Diagnostics&);

/// The file to use: $HOLDFAST_CONFIG (even if it does not exist), else the first that exists of
/// $XDG_CONFIG_HOME/holdfast/holdfast.toml (~/.config when that variable is not set) and
/// /etc/holdfast/holdfast.toml. Empty when there is none. Never in the current directory.
HOLDFAST_EXPORT std::string find_config();

/// What Client::open does with its argument: a URL (has a ':'), a name in the configuration file,
/// or empty. Empty means the default of `config_file` if that is given, else HOLDFAST_URL, else the
/// default of find_config(). Errors: bad_config, not_supported (as parse_url).
HOLDFAST_EXPORT result<ResolvedBackend> resolve(std::string_view what,
                                                const std::string& config_file,
                                                const spi::Registry&, Diagnostics&);

}  // namespace holdfast
