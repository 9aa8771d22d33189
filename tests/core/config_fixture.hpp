// A registry of pretended backends, so that configuration is tested apart from the real ones.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "../support/catch.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/reference.hpp"

namespace config_test {

using namespace holdfast;
using holdfast::spi::Descriptor;
using holdfast::spi::OptionType;
using holdfast::spi::Registry;

inline Descriptor redis() {
    Descriptor d;
    d.name = "redis";
    d.schemes = {"redis", "rediss"};
    d.summary = "One Redis server.";
    d.example = "redis://127.0.0.1:6379";
    d.options = {{.name = "wait",
                  .type = OptionType::choice,
                  .fallback = "queue",
                  .meaning = "How a waiter learns of a release.",
                  .choices = "queue|poll"},
                 {.name = "verify",
                  .type = OptionType::boolean,
                  .fallback = "true",
                  .meaning = "Check the certificate."},
                 {.name = "pool",
                  .type = OptionType::integer,
                  .fallback = "4",
                  .meaning = "Connections.",
                  .min = 1,
                  .max = 64}};
    d.default_port = 6379;
    d.takes_credentials = true;
    d.path_meaning = "the number of the database";
    d.check = [](const spi::Settings& s, Diagnostics& diagnostics) {
        if (s.flag("verify") && s.path == "/99")
            diagnostics.add({}, "Database 99 is refused by the check.");
    };
    return d;
}

inline Descriptor sqlite() {
    Descriptor d;
    d.name = "sqlite";
    d.schemes = {"sqlite"};
    d.summary = "One file.";
    d.example = "sqlite:///var/lib/locks.db";
    d.hosts = Descriptor::Hosts::none;
    d.path = Descriptor::Path::required;
    d.path_meaning = "the database file";
    d.path_is_file = true;
    return d;
}

inline Descriptor quorum() {
    Descriptor d;
    d.name = "quorum";
    d.schemes = {"quorum"};
    d.summary = "Several servers.";
    d.example = "quorum://a,b,c";
    d.hosts = Descriptor::Hosts::many;
    d.default_port = 7000;
    d.path = Descriptor::Path::none;
    return d;
}

inline const Registry& registry() {
    static const Registry* const all = [] {
        auto* made = new Registry;
        made->add(redis());
        made->add(sqlite());
        made->add(quorum());
        return made;
    }();
    return *all;
}

/// "where: what | remedy", one line per entry.
inline std::string lines(const Diagnostics& diagnostics) {
    std::string all;
    for (const auto& e : diagnostics.entries)
        all += e.where + ": " + e.what + " | " + e.remedy + "\n";
    return all;
}

/// A folder that is removed again.
struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string write(const std::string& name, const std::string& text) const {
        const auto file = path / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return file.string();
    }
    std::filesystem::path path;
};

/// Sets a variable, or unsets it (null), and puts back what it was.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) {
            had_ = true;
            old_ = old;
        }
        set(value);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() { set(had_ ? old_.c_str() : nullptr); }

private:
    void set(const char* value) {
        if (value)
            ::setenv(name_, value, 1);
        else
            ::unsetenv(name_);
    }
    const char* name_;
    std::string old_;
    bool had_ = false;
};

}  // namespace config_test
