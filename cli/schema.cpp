// `holdfast schema`: what an administrator runs at a server before Holdfast may use it.
#include <fmt/format.h>

#include <iostream>

#include "exit_code.hpp"
#include "globals.hpp"
#include "message.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {

std::vector<std::string> backends_with_tables() {
    std::vector<std::string> names;
    for (const auto& one : spi::Registry::linked().all())
        if (!one->schema.empty()) names.push_back(one->name);
    return names;
}

namespace {

int schema(const std::string& name) {
    if (name.empty()) {
        for (const auto& one : backends_with_tables())
            std::cout << one << '\n';
        std::cout << std::flush;
        return exit_ok;
    }
    const auto& linked = spi::Registry::linked();
    const spi::Descriptor* d = linked.find(name);
    if (d == nullptr) d = linked.find_scheme(name);
    if (d != nullptr && !d->schema.empty()) {
        std::cout << d->schema << std::flush;
        return exit_ok;
    }
    const auto names = backends_with_tables();
    const auto those =
        names.empty() ? "none in this build" : fmt::format("{}", fmt::join(names, ", "));
    return usage(d != nullptr
                     ? fmt::format("{} has no tables; backends with tables: {}", d->name, those)
                     : fmt::format("this build has no backend {}; backends with "
                                   "tables: {}",
                                   in_quotes(name), those),
                 "schema");
}

}  // namespace

void add_schema(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("schema", "Print the SQL that creates a backend's tables");
    auto name = std::make_shared<std::string>();
    sub->add_option("BACKEND", *name, "Without it: the names of the backends that have tables");
    sub->footer(
        "Holdfast creates its tables if it has permission. Otherwise run, as their owner:\n"
        "  holdfast schema postgresql | psql -d DATABASE\n"
        "and then GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO ROLE.");
    sub->callback([name, &g] { g.action = [name] { return schema(*name); }; });
}

}  // namespace holdfast::cli
