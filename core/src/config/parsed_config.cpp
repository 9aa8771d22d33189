// Rules for hosts, paths and credentials; builds the Settings.
#include <algorithm>
#include <boost/url/authority_view.hpp>
#include <filesystem>
#include <map>

#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast::config {
namespace {

using spi::Descriptor;
using spi::OptionSpec;
using spi::Secret;
using spi::Settings;

std::string as_in(const Descriptor& backend) {
    return "Write it as in " + backend.example + ".";
}

bool has_socket(const ParsedConfig& parsed) {
    return std::any_of(parsed.options.begin(), parsed.options.end(),
                       [&](const Item& item) { return item.key == parsed.backend->host_option; });
}

void check_path(const ParsedConfig& parsed, Settings& settings, Diagnostics& diagnostics) {
    const Descriptor& backend = *parsed.backend;
    const bool hosted = backend.hosts != Descriptor::Hosts::none;
    std::string path = parsed.path ? parsed.path->value : std::string();
    if (hosted && path == "/") path.clear();
    const std::string& where = parsed.path ? parsed.path->where : parsed.where;
    if (path.empty()) {
        if (backend.path == Descriptor::Path::required)
            diagnostics.add(where, backend.name + " needs a path: " + backend.path_meaning + ".",
                            as_in(backend));
        return;
    }
    if (backend.path == Descriptor::Path::none) {
        diagnostics.add(where, backend.name + " takes no path.", as_in(backend));
        return;
    }
    if (has_control(path) || path.size() > 4096) {
        diagnostics.add(where, "The path has a control character or is longer than 4096 bytes.",
                        as_in(backend));
        return;
    }
    if (backend.path_is_file && path == ":memory:") {
        diagnostics.add(where, "This would be a file with the name :memory:.",
                        "Write memory: for locks in one process, or ./:memory: for that file.");
        return;
    }
    if (hosted && path.front() != '/') path.insert(path.begin(), '/');
    if (backend.path_is_file && path.front() != '/' && !parsed.folder.empty())
        path.insert(0, parsed.folder + "/");
    settings.path = std::move(path);
}

// Keeps what was given and right, and fills in the defaults.
void check_options(const ParsedConfig& parsed, Settings& settings, Diagnostics& diagnostics) {
    const std::vector<OptionSpec> table = options_of(*parsed.backend);
    for (const OptionSpec& spec : table)
        settings.values.emplace(spec.name, spec.fallback);
    for (const Item& item : parsed.options) {
        const auto spec = std::find_if(table.begin(), table.end(),
                                       [&](const OptionSpec& s) { return s.name == item.key; });
        if (spec == table.end()) {
            unknown_option(*parsed.backend, item,
                           item.form == Form::toml
                               ? std::vector<std::string>{"url", "type", "hosts", "path", "user"}
                               : std::vector<std::string>{},
                           diagnostics);
            continue;
        }
        if (settings.given(item.key)) {
            diagnostics.add(item.where, item.key + " is given twice.", "Keep one of the two.");
            continue;
        }
        settings.given_options.push_back(item.key);
        auto value = check_option(*spec, item, diagnostics);
        if (!value) continue;
        // Read later as well, when the process may be in another directory.
        if (error_code ec; spec->type == spi::OptionType::path)
            if (auto file =
                    std::filesystem::absolute(std::filesystem::path(parsed.folder) / *value, ec);
                !ec)
                value = file.string();
        settings.values[item.key] = std::move(*value);
    }
}

void check_credentials(const ParsedConfig& parsed, Settings& settings, Diagnostics& diagnostics) {
    const Descriptor& backend = *parsed.backend;
    if (!backend.takes_credentials) {
        if (parsed.user || parsed.password)
            diagnostics.add(parsed.user ? parsed.user->where : parsed.where,
                            backend.name + " takes no user and no password.", as_in(backend));
        return;
    }
    if (parsed.user) settings.user = parsed.user->value;
    if (settings.user.find('\0') != std::string::npos ||
        (parsed.password && parsed.password->find('\0') != std::string::npos))
        diagnostics.add(parsed.where, "The user or the password has a zero byte.", "Leave it out.");
    const bool file = settings.given("password_file"), variable = settings.given("password_env");
    if (int{parsed.password.has_value()} + int{file} + int{variable} > 1) {
        diagnostics.add(parsed.where, "The password is given in more than one way.",
                        "Keep one of: the password in the URL, password_file, password_env.");
        return;
    }
    settings.password = parsed.password ? Secret(Secret::Source::literal, *parsed.password)
                                        : settings.named_password("");
}

void check_together(const ParsedConfig& parsed, const Settings& settings,
                    Diagnostics& diagnostics) {
    if (settings.duration("backoff_min") > settings.duration("backoff_max"))
        diagnostics.add(
            parsed.where,
            "backoff_min = " + std::string(settings.text("backoff_min")) +
                " is more than backoff_max = " + std::string(settings.text("backoff_max")) + ".",
            "Lower the one or raise the other.");
    if (!parsed.backend->check) return;
    const std::size_t before = diagnostics.entries.size();
    parsed.backend->check(settings, diagnostics);
    for (std::size_t i = before; i < diagnostics.entries.size(); ++i)
        if (diagnostics.entries[i].where.empty()) diagnostics.entries[i].where = parsed.where;
}

}  // namespace

std::vector<spi::Endpoint> check_hosts(const ParsedConfig& parsed, Diagnostics& diagnostics) {
    const Descriptor& backend = *parsed.backend;
    std::vector<spi::Endpoint> hosts;
    if (backend.hosts == Descriptor::Hosts::none) {
        if (!parsed.hosts.empty()) {
            // sqlite://file.db is the usual slip.
            std::string remedy = as_in(backend);
            if (backend.path_is_file)
                remedy = "Write " + parsed.scheme + ":relative.file or " + parsed.scheme +
                         ":///absolute/file.";
            diagnostics.add(parsed.hosts.front().where, backend.name + " takes no host.",
                            std::move(remedy));
        }
        return hosts;
    }
    if (parsed.hosts.empty()) {
        if (has_socket(parsed)) return hosts;
        diagnostics.add(parsed.where, "The host is missing.", as_in(backend));
        return hosts;
    }
    const bool many = parsed.hosts.size() > 1;
    if (many && backend.hosts == Descriptor::Hosts::one) {
        diagnostics.add(
            parsed.hosts[1].where,
            backend.name + " takes one host, not " + std::to_string(parsed.hosts.size()) + ".",
            as_in(backend));
    }
    for (std::size_t i = 0; i < parsed.hosts.size(); ++i) {
        const Item& item = parsed.hosts[i];
        const std::string which = many ? "Host " + std::to_string(i + 1) : "The host";
        std::string problem;
        auto endpoint = parse_endpoint(item.value, &problem);
        if (!endpoint) {
            // libpq takes a directory for a host: host=/run/postgresql, or %2Frun%2Fpostgresql.
            const bool directory = item.value.starts_with('/') || item.value.starts_with('%');
            diagnostics.add(item.where, which + " " + problem + ".",
                            directory && !backend.host_option.empty()
                                ? socket_remedy(backend)
                                : "Write HOST:PORT, or [ADDRESS]:PORT for IPv6.");
            continue;
        }
        if (endpoint->port == 0) endpoint->port = backend.default_port;
        if (endpoint->port == 0)
            diagnostics.add(item.where, which + " has no port.", "Write HOST:PORT.");
        if (std::find(hosts.begin(), hosts.end(), *endpoint) != hosts.end())
            diagnostics.add(item.where, which + " is given twice.", "Name each server once.");
        hosts.push_back(std::move(*endpoint));
    }
    return hosts;
}

std::optional<Settings> finish(const ParsedConfig& parsed, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.entries.size();
    Settings settings;
    settings.scheme = parsed.scheme;
    settings.name = parsed.name;
    settings.hosts = check_hosts(parsed, diagnostics);
    check_path(parsed, settings, diagnostics);
    check_options(parsed, settings, diagnostics);
    check_credentials(parsed, settings, diagnostics);
    if (diagnostics.entries.size() == before) check_together(parsed, settings, diagnostics);
    if (diagnostics.entries.size() != before) return std::nullopt;
    return settings;
}

}  // namespace holdfast::config

namespace holdfast {

std::optional<spi::Endpoint> spi::parse_endpoint(std::string_view text, std::string* problem) {
    const auto fail = [problem](const char* words) {
        if (problem) *problem = words;
        return std::nullopt;
    };
    if (text.empty()) return fail("is empty");
    const std::size_t bracket = text.rfind(']');
    const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    spi::Endpoint endpoint;
    if (colon != std::string_view::npos) {
        const std::string_view port = text.substr(colon + 1);
        const bool digits = !port.empty() && port.size() <= 5 &&
                            port.find_first_not_of("0123456789") == std::string_view::npos;
        const int value = digits ? std::stoi(std::string(port)) : 0;
        // The port is never shown: in USER:PASSWORD without a host it is the password.
        if (value < 1 || value > 65535) return fail("has a port that is no number from 1 to 65535");
        endpoint.port = static_cast<std::uint16_t>(value);
    }
    const std::string_view host = text.substr(0, colon);
    const auto authority =
        boost::urls::parse_authority(boost::core::string_view(host.data(), host.size()));
    if (!authority || authority->has_userinfo() || authority->has_port() ||
        authority->host_type() == boost::urls::host_type::ipvfuture)
        return fail("is malformed");
    endpoint.host = authority->host_address();
    if (endpoint.host.empty()) return fail("is empty");
    if (config::has_control(endpoint.host) ||
        endpoint.host.find_first_of(" /@,") != std::string::npos || endpoint.host.size() > 255)
        return fail("is malformed");
    return endpoint;
}

}  // namespace holdfast
