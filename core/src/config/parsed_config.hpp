// A configuration as read from a URL or from holdfast.toml, before it is checked against the
// backend's tables. Both forms meet here, so every rule exists once.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/config.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/reference.hpp"

namespace holdfast::config {

using spi::nearest;

inline constexpr std::size_t largest_file = std::size_t{64} * 1024;

/// The form that the user wrote, so that a remedy has the same form.
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
    std::string folder;  ///< start of relative paths; empty: the current directory
};

/// Checks everything and adds one entry per mistake; returns the settings when there is none.
std::optional<spi::Settings> finish(const ParsedConfig&, Diagnostics&);

/// All options of this backend: its own, core's, and those for credentials. Its own rows win.
std::vector<spi::OptionSpec> options_of(const spi::Descriptor&);
/// Checks one value against its row. Returns the text to keep, or nullopt after adding an entry.
std::optional<std::string> check_option(const spi::OptionSpec&, const Item&, Diagnostics&);
/// How to write a Unix socket, for a backend that has a host_option.
std::string socket_remedy(const spi::Descriptor&);
/// Adds the entry for an unknown key; `others` are further keys that are valid there.
void unknown_option(const spi::Descriptor&, const Item&, const std::vector<std::string>& others,
                    Diagnostics&);
/// "ttl=10s" or "ttl = "10s"".
std::string assignment(Form, const spi::OptionSpec&, std::string_view value);
/// "100ms to 24h", "at most 128 bytes"; empty without limits.
std::string limits(const spi::OptionSpec&);

/// Every host of the configuration, with ports filled in.
std::vector<spi::Endpoint> check_hosts(const ParsedConfig&, Diagnostics&);
using spi::parse_endpoint;

/// The backend of a scheme. Null after an entry was added: `error` is then not_supported if linking
/// another target helps, else bad_config. With `show` false the text does not contain the scheme,
/// which may be part of a secret.
const spi::Descriptor* backend_for(std::string_view scheme, const std::string& where,
                                   const spi::Registry&, Diagnostics&, error_code& error,
                                   bool show = true);
/// "Holdfast::redis" for schemes of Holdfast's own backends, linked or not; else empty.
std::string target_of(std::string_view scheme);
/// The same for what a file has as `type`: a scheme, or a backend's name.
std::string target_of_type(std::string_view type);
/// The remedy for a backend that is not linked.
std::string link_remedy(std::string_view target);

/// Splits a URL; nullopt after an entry was added. With an empty `where` entries name the URL
/// itself, without user and password.
std::optional<ParsedConfig> split_url(std::string_view url, const std::string& where,
                                      const spi::Registry&, Diagnostics&, error_code& error);
/// As parse_url, for a URL from another source: "HOLDFAST_URL".
result<ResolvedBackend> parse_url_from(std::string_view url, const std::string& source,
                                       const spi::Registry&, Diagnostics&);

}  // namespace holdfast::config
