// A commented holdfast.toml, written from the option tables so that no default is stated twice.
#include "config_template.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

void add_option(std::string& text, const spi::OptionSpec& o) {
    if (o.fallback.empty()) {
        text += fmt::format("# {}: not set\n#     {}\n", o.name, o.meaning);
        return;
    }
    std::string value(o.fallback);
    if (o.type == spi::OptionType::boolean)  // TOML has no other words for these
        value = value == "yes" || value == "on" || value == "true" ? "true" : "false";
    else if (o.type != spi::OptionType::integer)
        value = '"' + value + '"';
    text += fmt::format("# {} = {}\n#     {}\n", o.name, value, o.meaning);
}

void add_backend(std::string& text, const spi::Descriptor& d) {
    std::string url = d.example;
    if (d.takes_credentials) url.insert(url.find("://") + 3, "jobs@");
    text += fmt::format("\n# {}\n# [backends.my-{}]\n# url = \"{}\"\n", d.summary, d.name, url);
    if (d.takes_credentials) text += "# password_file = \"/etc/holdfast/password\"\n";
    for (const spi::OptionSpec& o : d.options)
        add_option(text, o);
}

}  // namespace

std::string config_template(const spi::Registry& registry) {
    std::string text =
        "# Holdfast: the server that keeps the locks. All machines that must exclude each other "
        "name\n"
        "# the same server. Check this file with `holdfast config check`.\n\n";
    const spi::Descriptor* first = registry.find("redis");
    if (!first && !registry.all().empty()) first = registry.all().front().get();
    if (!first) return text;
    text += "default = \"main\"\n\n[backends.main]\n";
    text += fmt::format("url = \"{}\"\n", first->example);
    text += "# Options of every backend, with their defaults.\n";
    for (const spi::OptionSpec& o : spi::common_options())
        add_option(text, o);
    for (const auto& d : registry.all())
        add_backend(text, *d);
    return text;
}

}  // namespace holdfast::cli
