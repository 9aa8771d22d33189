// Configuration: a URL, a name in holdfast.toml, or the environment, checked as a whole before
// anything connects. All mistakes are reported at once, each with its place and a remedy.
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
    std::string source;  ///< where it came from: "URL", "HOLDFAST_URL", "/etc/.../holdfast.toml:4"
};

/// A configuration file as read: the backends that it names, in the file's order.
struct ConfigFile {
    /// An entry for a backend of Holdfast's that this program was not linked with: no mistake,
    /// since programs with different backends may share one file; an error when it is chosen.
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

/// Reads one URL. Errors: bad_config, not_supported (scheme not linked in: the text says which
/// target to link); all mistakes go to `diagnostics`.
HOLDFAST_EXPORT result<ResolvedBackend> parse_url(std::string_view url, const spi::Registry&,
                                                  Diagnostics&);

/// Reads and checks a whole holdfast.toml, with file:line:column for each mistake. Relative paths
/// of files in it count from the folder of the configuration file. Errors: bad_config.
HOLDFAST_EXPORT result<ConfigFile> read_config(const std::string& path, const spi::Registry&,
                                               Diagnostics&);
/// The same for text that was read already; `source_name` stands for the path.
HOLDFAST_EXPORT result<ConfigFile> read_config_text(std::string_view text,
                                                    const std::string& source_name,
                                                    const spi::Registry&, Diagnostics&);

/// The file that would be used: $HOLDFAST_CONFIG (whether it exists or not), else the first that
/// exists of $XDG_CONFIG_HOME/holdfast/holdfast.toml (~/.config when that variable is not set) and
/// /etc/holdfast/holdfast.toml. Empty when there is none. Never the current directory.
HOLDFAST_EXPORT std::string find_config();

/// What Client::open does with its argument: a URL (it has a ':'), a name in the configuration
/// file, or empty. Empty means the default of `config_file` where that is given, else HOLDFAST_URL,
/// else the default of find_config(). Errors: bad_config, not_supported (as parse_url).
HOLDFAST_EXPORT result<ResolvedBackend> resolve(std::string_view what,
                                                const std::string& config_file,
                                                const spi::Registry&, Diagnostics&);

}  // namespace holdfast
