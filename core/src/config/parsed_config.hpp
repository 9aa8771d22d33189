// A configuration as its parts were read from a URL or from holdfast.toml, before anything of it is
// checked against the backend's tables. Both ways meet here, so every rule exists once.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/config.hpp"
#include "holdfast/spi/reference.hpp"

namespace holdfast::config {

using spi::nearest;

inline constexpr std::size_t largest_file = std::size_t{64} * 1024;

/// How the user wrote it, so that a remedy can be written the same way.
enum class Form : unsigned char { url, toml };

/// One value, with the place to name in a message.
struct Item {
    std::string key, value, where;
    Form form = Form::url;
};

struct ParsedConfig {
    const spi::Descriptor* backend = nullptr;
    std::string scheme, name;
    std::string where;        ///< of the whole, without user and password
    std::vector<Item> hosts;  ///< "host", "host:port", "[::1]:port", as written
    std::optional<Item> path;
    std::optional<Item> user;
    std::optional<std::string> password;
    std::vector<Item> options;
    std::string folder;  ///< relative files count from here; empty: the current directory
};

/// Checks everything, adds one entry per mistake, and returns the settings when there was none.
std::optional<spi::Settings> finish(const ParsedConfig&, Diagnostics&);

/// Every row that this backend has: its own, core's, and those for credentials; own rows win.
std::vector<spi::OptionSpec> options_of(const spi::Descriptor&);
/// One value against its row: the text to keep, or nothing after an entry was added.
std::optional<std::string> check_option(const spi::OptionSpec&, const Item&, Diagnostics&);
/// Adds the entry for a key that is no option; `others` are further keys that may stand there.
void unknown_option(const spi::Descriptor&, const Item&, const std::vector<std::string>& others,
                    Diagnostics&);
/// "ttl=10s" or "ttl = "10s"".
std::string assignment(Form, const spi::OptionSpec&, std::string_view value);
/// "100ms to 24h", "at most 128 bytes"; empty without limits.
std::string limits(const spi::OptionSpec&);

/// Every host of the draft; ports filled in.
std::vector<spi::Endpoint> check_hosts(const ParsedConfig&, Diagnostics&);
/// One "host:port" (port 0: none written); nothing when it is malformed.
std::optional<spi::Endpoint> parse_endpoint(std::string_view, std::string* problem = nullptr);

/// The backend of a scheme that the user wrote; null after an entry was added: `error` is then
/// not_supported when linking another target would help, else bad_config. `show` false keeps the
/// scheme out of the text, since it may be part of a secret.
const spi::Descriptor* backend_for(std::string_view scheme, const std::string& where,
                                   const spi::Registry&, Diagnostics&, error_code& error,
                                   bool show = true);
/// "Holdfast::redis" for the schemes of Holdfast's own backends, linked or not; else empty.
std::string target_of(std::string_view scheme);
/// The remedy for a backend that is not linked.
std::string link_remedy(std::string_view target);

/// The parts of a URL; nothing after an entry was added. `where` empty: the URL itself is named,
/// without its user and password.
std::optional<ParsedConfig> split_url(std::string_view url, const std::string& where,
                                      const spi::Registry&, Diagnostics&, error_code& error);
/// As parse_url, for a URL from elsewhere: "HOLDFAST_URL".
result<ResolvedBackend> parse_url_from(std::string_view url, const std::string& source,
                                       const spi::Registry&, Diagnostics&);

}  // namespace holdfast::config
