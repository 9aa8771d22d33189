// A backend's options: declared in a table, checked by core, read with their types. The table also
// generates docs/configuration.md, so a default is written once.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/spi/failure.hpp"

namespace holdfast::spi {

enum class OptionType : std::uint8_t { duration, integer, boolean, text, choice, path, list };

/// Whether two clients with different values of an option may mean different locks by one name.
enum class Identity : std::uint8_t { undeclared, part, apart };

/// One row of the option table. The views must be to static storage.
struct OptionSpec {
    std::string_view name;  ///< "request_timeout"; the key in TOML and in a URL's query
    OptionType type{};
    std::string_view fallback;      ///< default as a user would write it; empty: none
    std::string_view meaning;       ///< one sentence for the documentation
    std::string_view choices = {};  ///< "queue|poll", for OptionType::choice
    long long min = 0, max = 0;     ///< ms, the integer itself, a text's bytes; both 0: no limit
    Identity identity = Identity::undeclared;
};

struct Endpoint {
    std::string host;
    std::uint16_t port = 0;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// A secret that is read anew each time it is needed, and never printed.
class HOLDFAST_EXPORT Secret {
public:
    enum class Source : std::uint8_t { none, literal, file, environment };
    Secret() = default;
    Secret(Source s, std::string where) : source_(s), where_(std::move(where)) {}
    bool empty() const noexcept { return source_ == Source::none; }
    /// The secret as it is now: a file's first line, or an environment variable. Errors: bad_config
    /// when the file or the variable is missing; the text names it (never the content).
    Answer<std::string> read() const;
    Source source() const noexcept { return source_; }

private:
    Source source_ = Source::none;
    std::string where_;
};

/// One backend's checked configuration, with defaults filled in. A value, safe to share as const.
class HOLDFAST_EXPORT Settings {
public:
    std::string scheme;           ///< "redis", "rediss", "sqlite", ...
    std::string name;             ///< of the entry in holdfast.toml; empty from a URL
    std::vector<Endpoint> hosts;  ///< ports filled in
    std::string path;  ///< after the authority, decoded: "/0", "/var/lib/x.db", "/chroot"
    std::string user;
    Secret password;
    std::map<std::string, std::string, std::less<>> values;  ///< checked; every declared option

    /// Values by type. The option must be declared by the backend or by core (else
    /// std::out_of_range). One without a default that was not given is empty, zero or false, except
    /// request_timeout: a third of the ttl, at most 2 s.
    std::string_view text(std::string_view option) const;
    milliseconds duration(std::string_view option) const;
    long long integer(std::string_view option) const;
    bool flag(std::string_view option) const;
    std::vector<std::string> list(std::string_view option) const;  ///< comma-separated
    /// True when the user gave it, false when it is the default.
    bool given(std::string_view option) const;
    std::vector<std::string> given_options;
    /// What the options PREFIXpassword_file and PREFIXpassword_env name, which must be declared.
    Secret named_password(std::string_view prefix) const;

    /// "redis://cache1:6379/2", without user, password and options: for people and logs.
    std::string display() const;
};

/// The options of every backend: ttl, request_timeout, namespace, require, ... A backend's own row
/// of the same name replaces one of these.
HOLDFAST_EXPORT const std::vector<OptionSpec>& common_options();
/// The options of every backend that takes credentials: password_file, password_env.
HOLDFAST_EXPORT const std::vector<OptionSpec>& credential_options();
/// Adds a mistake where there is a user without a password, and with `user_needed` where there is a
/// password without a user.
HOLDFAST_EXPORT void check_credentials(const Settings&, bool user_needed, Diagnostics&);

/// "10s", "250ms", "1m30s", "1.5s", "2h". Refuses a bare number, since its unit would be a guess.
/// Errors: bad_config.
HOLDFAST_EXPORT result<milliseconds> parse_duration(std::string_view);
/// Text that parse_duration reads, largest unit first: "1m30s". `forever` is "forever".
HOLDFAST_EXPORT std::string format_duration(milliseconds);

}  // namespace holdfast::spi
