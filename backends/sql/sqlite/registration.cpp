// What makes sqlite:// open in every program that links Holdfast::sqlite.
#include "backend.hpp"
#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/register_backend.hpp"
#include "statements.hpp"

namespace holdfast::sqlite {
namespace {

void check(const spi::Settings& settings, Diagnostics& diagnostics) {
    const std::string& path = settings.path;
    if (path.find('\0') != std::string::npos)
        diagnostics.add("path", "The path of the database file contains a NUL character.");
    else if (!path.empty() && path.back() == '/')
        diagnostics.add("path", "The path of the database file ends with a slash.",
                        "Name a file that Holdfast may create: sqlite:///var/lib/app/locks.db");
}

/// One statement a line, for people.
std::string sql_script() {
    std::string text = create_schema();
    for (auto at = text.find(';'); at != text.npos; at = text.find(';', at + 2))
        text.insert(at + 1, "\n");
    return text;
}

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "sqlite";
    d.schemes = {"sqlite"};
    d.summary = "a file that the processes of one machine share";
    d.example = "sqlite:///var/lib/app/locks.db";
    d.options = {
        {.name = "synchronous",
         .type = spi::OptionType::choice,
         .fallback = "full",
         .meaning = "SQLite's PRAGMA synchronous: how each commit is synced to disk.",
         .choices = "full|extra",
         .identity = spi::Identity::apart},
        {.name = "private",
         .type = spi::OptionType::boolean,
         .fallback = "no",
         .meaning = "Refuse files that another user could have placed: symbolic links, other "
                    "owners, directories that others may write. --local sets this.",
         .identity = spi::Identity::apart}};
    d.hosts = spi::Descriptor::Hosts::none;
    d.path = spi::Descriptor::Path::required;
    d.path_is_file = true;
    d.path_meaning = "the database file, created on demand in an existing directory";
    d.schema = sql_script();
    d.check = check;
    d.identity = [](const spi::Settings& s) {
        const std::string path = spi::canonical_path(s.path);
        // Without a working directory a relative path may be any.
        return path.empty() ? spi::IdentityText().open("path", s.path).text()
                            : spi::IdentityText().part("path", path).text();
    };
    d.capabilities = [](const spi::Settings&) { return promised(); };
    d.make = spi::make_backend<Backend>;
    d.checks = all_checks();
    return d;
}

}  // namespace
}  // namespace holdfast::sqlite

HOLDFAST_REGISTER_BACKEND(sqlite, holdfast::sqlite::describe())
