// `holdfast schema`: what an administrator runs at a server before Holdfast may use it.
#include <fmt/format.h>

#include <iostream>

#include "exit_code.hpp"
#include "globals.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

int schema(const std::string& name) {
    const auto& linked = spi::Registry::linked();
    const spi::Descriptor* d = linked.find(name);
    if (d == nullptr) d = linked.find_scheme(name);
    if (d != nullptr && !d->schema.empty()) {
        std::cout << d->schema << std::flush;
        return exit_ok;
    }
    std::string those;
    for (const auto& one : linked.all())
        if (!one->schema.empty()) those += (those.empty() ? "" : ", ") + one->name;
    if (those.empty()) those = "none in this build";
    return usage(d != nullptr ? fmt::format("{} keeps no tables; those that do: {}", d->name, those)
                              : fmt::format("{} is no backend of this build; those that keep "
                                            "tables: {}",
                                            in_quotes(name), those),
                 "schema");
}

}  // namespace

void add_schema(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("schema", "Print the SQL that makes a backend's tables");
    auto name = std::make_shared<std::string>();
    sub->add_option("BACKEND", *name, "postgresql or sqlite")->required();
    sub->footer(
        "Holdfast makes its tables by itself where it may. Where it may not:\n"
        "  holdfast schema postgresql | psql -d DATABASE\n"
        "as their owner, then GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO ROLE.");
    sub->callback([name, &g] { g.action = [name] { return schema(*name); }; });
}

}  // namespace holdfast::cli
