// Writes docs/configuration.md from the tables that the program itself uses.
#include <algorithm>

#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast::spi {
namespace {

std::string type_name(OptionType type) {
    switch (type) {
        case OptionType::duration:
            return "duration";
        case OptionType::integer:
            return "whole number";
        case OptionType::boolean:
            return "true or false";
        case OptionType::text:
            return "text";
        case OptionType::choice:
            return "choice";
        case OptionType::path:
            return "file";
        case OptionType::list:
            return "list";
    }
    return {};
}

std::string code(std::string_view text) {
    return text.empty() ? "" : "`" + std::string(text) + "`";
}

std::string range(const OptionSpec& spec) {
    if (spec.type != OptionType::choice) return config::limits(spec);
    std::string out;
    for (const std::string& choice : config::split(spec.choices, '|'))
        out += (out.empty() ? "" : ", ") + code(choice);
    return out;
}

std::string table(const std::vector<OptionSpec>& options) {
    std::string out =
        "| option | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n";
    for (const OptionSpec& spec : options)
        out += "| `" + std::string(spec.name) + "` | " + type_name(spec.type) + " | " +
               code(spec.fallback) + " | " + table_cell(range(spec)) + " | " +
               table_cell(spec.meaning) + " |\n";
    return out;
}

std::string hosts(const Descriptor& backend) {
    switch (backend.hosts) {
        case Descriptor::Hosts::none:
            return "none";
        case Descriptor::Hosts::one:
            break;
        case Descriptor::Hosts::many:
            return "one or more, separated by commas";
    }
    return "one";
}

std::string path(const Descriptor& backend) {
    if (backend.path == Descriptor::Path::none) return "none";
    return backend.path_meaning +
           (backend.path == Descriptor::Path::required ? " (required)" : " (optional)");
}

std::string section(const Descriptor& backend) {
    std::string out = "\n## " + backend.name + "\n\n" + backend.summary + "\n\n";
    out += "- Example: `" + backend.example + "`\n";
    out += "- Schemes: ";
    for (const std::string& scheme : backend.schemes)
        out += (&scheme == &backend.schemes.front() ? "" : ", ") + code(scheme);
    out += "\n- Hosts: " + hosts(backend);
    if (backend.default_port != 0)
        out += "; port " + std::to_string(backend.default_port) + " by default";
    out += "\n- Path: " + path(backend) + "\n";
    out += std::string("- User and password: ") + (backend.takes_credentials ? "yes" : "no") + "\n";
    out += backend.options.empty() ? "\nNo options of its own.\n" : "\n" + table(backend.options);
    return out;
}

constexpr std::string_view introduction = R"(# Configuration

Holdfast takes the backend from the first of these:

1. an argument: a URL, or the name of a backend in `holdfast.toml` (`holdfast --url`, `--backend`,
   `Client::open`);
2. the environment variable `HOLDFAST_URL`, unless an argument names a configuration file
   (`holdfast --config`, `ClientOptions::config_file`);
3. the `default` of `holdfast.toml`, or its only backend.

`holdfast.toml` is the file that `HOLDFAST_CONFIG` names, else
`$XDG_CONFIG_HOME/holdfast/holdfast.toml` (`~/.config` if that variable is not set), else
`/etc/holdfast/holdfast.toml`. Holdfast never searches the current directory. If no backend is
configured, opening a client fails; there is no fallback to another backend.

Holdfast checks the whole configuration before it connects, and reports all mistakes at once.

## URLs

```
scheme://[user[:password]@]host[:port][,host2[:port2]...][/path][?option=value&...]
```

Write an IPv6 address in brackets: `[::1]:6379`. Write a space, and `@ / ? # %` in a user or password,
as `%` and two hexadecimal digits. An option occurs once. Holdfast never prints a password of a URL,
but other users of the machine can read it in the arguments of a process: prefer `password_file` or
`password_env`.

## holdfast.toml

```toml
default = "main"

[backends.main]
url = "redis://cache1:6379"     # either a url ...
ttl = "10s"                     # ... and options beside it

[backends.local]
type = "sqlite"                 # or a type, with hosts, path and user as keys
path = "/var/lib/holdfast/locks.db"
require = ["fencing"]
```

`hosts` is a string or an array of strings. Relative file names start at the directory of
`holdfast.toml`; those of a URL from elsewhere, as `sqlite:locks.db`, at the directory in which the
client is opened. Write an option in the `url` or beside it, not in both. A backend that is not linked
into a program is an error only if that program chooses it. Holdfast refuses files larger than 64 KiB,
files that are not regular, and files that every user of the machine may write.

## Values

A duration is one or more numbers with the units `ms`, `s`, `m` or `h`: `10s`, `250ms`, `1m30s`. A
number without a unit is refused. In a URL, commas separate the items of a list, and `true`, `on`,
`yes` and `1` are synonyms, as are `false`, `off`, `no` and `0`. In `holdfast.toml`, a list is an array
of strings, and `true` and `false` have no quotes.

)";

}  // namespace

std::string table_cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

std::string configuration_reference(const Registry& registry) {
    std::vector<const Descriptor*> backends;
    for (const auto& backend : registry.all())
        backends.push_back(backend.get());
    std::sort(backends.begin(), backends.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    std::string out(introduction);
    out += "## Options of every backend\n\n" + table(common_options());
    out += "\nOptions of the backends that take a user and a password:\n\n" +
           table(credential_options());
    for (const Descriptor* backend : backends)
        out += section(*backend);
    return out;
}

}  // namespace holdfast::spi
