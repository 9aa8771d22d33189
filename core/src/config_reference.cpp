// docs/configuration.md, written from the tables that the program itself uses.
#include <algorithm>

#include "config_draft.hpp"
#include "config_text.hpp"

namespace holdfast {
namespace {

using spi::Descriptor;
using spi::OptionSpec;
using spi::OptionType;

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

// '|' ends a cell of a table.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
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
               code(spec.fallback) + " | " + cell(range(spec)) + " | " + cell(spec.meaning) +
               " |\n";
    return out;
}

std::string hosts(const Descriptor& backend) {
    switch (backend.hosts) {
        case Descriptor::Hosts::none:
            return "none";
        case Descriptor::Hosts::one:
            break;
        case Descriptor::Hosts::many:
            return "one or more, with commas between";
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
        out += "; port " + std::to_string(backend.default_port) + " where none is written";
    out += "\n- Path: " + path(backend) + "\n";
    out += std::string("- User and password: ") + (backend.takes_credentials ? "yes" : "no") + "\n";
    out += backend.options.empty() ? "\nNo options of its own.\n" : "\n" + table(backend.options);
    return out;
}

constexpr std::string_view introduction = R"(# Configuration

A program names a backend in one of three ways, and this is the order in which they are looked at:

1. an argument: a URL, or the name of a backend in `holdfast.toml` (`holdfast --url`, `--backend`,
   `Client::open`);
2. the environment variable `HOLDFAST_URL`, unless a file was named by an argument
   (`holdfast --config`, `ClientOptions::config_file`);
3. the `default` of `holdfast.toml`, or its only backend.

`holdfast.toml` is the file that `HOLDFAST_CONFIG` names, else
`$XDG_CONFIG_HOME/holdfast/holdfast.toml` (`~/.config` when that variable is not set), else
`/etc/holdfast/holdfast.toml`. The current directory is never searched. Where nothing is configured,
opening fails: no lock is ever taken in another place than the one that was asked for.

The whole configuration is checked before anything connects, and all mistakes are told at once.

## URLs

```
scheme://[user[:password]@]host[:port][,host2[:port2]...][/path][?option=value&...]
```

An IPv6 address stands in brackets, `[::1]:6379`. Other characters are written as `%` and two
hexadecimal digits: in a user or password `@ / ? # %`, anywhere a space. An option stands once.
A password in a URL is never shown, but other users of the machine may see it among the arguments of
a process: prefer `password_file` or `password_env`.

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

`hosts` is a string or an array of strings. Relative names of files count from the folder of
`holdfast.toml`. An option stands in the `url` or beside it, not in both. An entry whose backend is
not linked into a program is an error only when that program chooses it.

## Values

A duration is a number with its unit, `ms`, `s`, `m` or `h`, or several: `10s`, `250ms`, `1m30s`. A
bare number is refused. In a URL a list has commas between its items, and `true`, `on`, `yes` and `1`
mean the same; in `holdfast.toml` a list is an array of strings, and `true` and `false` are written
bare.

)";

}  // namespace

std::string configuration_reference(const spi::Registry& registry) {
    std::vector<const Descriptor*> backends;
    for (const auto& backend : registry.all())
        backends.push_back(backend.get());
    std::sort(backends.begin(), backends.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    std::string out(introduction);
    out += "## Options of every backend\n\n" + table(spi::common_options());
    out +=
        "\nWhere the backend takes a user and a password:\n\n" + table(spi::credential_options());
    for (const Descriptor* backend : backends)
        out += section(*backend);
    return out;
}

}  // namespace holdfast
