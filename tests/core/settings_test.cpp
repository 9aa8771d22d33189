// Typed access to options, durations, secrets, and the nearest word.
#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>

#include "config/secret.hpp"
#include "config_fixture.hpp"

using namespace config_test;
using namespace holdfast::spi;

TEST_CASE("durations are read with their unit only", "[settings]") {
    const std::vector<std::pair<std::string, long>> good{
        {"10s", 10000}, {"250ms", 250}, {"1m30s", 90000},       {"2h", 7200000},
        {"1.5s", 1500}, {"0.5ms", -1},  {"1h1m1s1ms", 3661001}, {"0s", 0}};
    for (const auto& [text, ms] : good) {
        INFO(text);
        const auto parsed = parse_duration(text);
        REQUIRE(parsed.has_value() == (ms >= 0));
        if (ms >= 0) CHECK(parsed->count() == ms);
    }
    for (const char* bad :
         {"", "10", "s", "-1s", "10 s", " 10s", "10S", "1s1s", "30s1m", "1.s", ".5s", "1e3s", "10d",
          "99999999999999999999s", "9999999999h", "1s ", "1.5", "0.1234567890s"}) {
        INFO(bad);
        REQUIRE_FALSE(parse_duration(bad).has_value());
        CHECK(parse_duration(bad).error() == errc::bad_config);
    }
    for (const long ms : {0L, 1L, 999L, 1000L, 90000L, 3661001L, 86400000L})
        CHECK(parse_duration(format_duration(milliseconds(ms)))->count() == ms);
    CHECK(format_duration(milliseconds(90000)) == "1m30s");
    CHECK(format_duration(milliseconds(86400000)) == "24h");
    CHECK(format_duration(milliseconds(-1500)) == "-1s500ms");
    CHECK(format_duration(milliseconds::min()).front() == '-');
    CHECK(format_duration(forever) == "forever");
}

TEST_CASE("the default of every option is right by its own row", "[settings]") {
    for (const auto* table : {&common_options(), &credential_options()})
        for (const OptionSpec& spec : *table) {
            if (spec.fallback.empty()) continue;
            Diagnostics diagnostics;
            const std::string url =
                "redis://h?" + std::string(spec.name) + "=" + std::string(spec.fallback);
            const auto chosen = parse_url(url, registry(), diagnostics);
            INFO(url << "\n" << lines(diagnostics));
            REQUIRE(chosen.has_value());
            CHECK(chosen->settings.text(spec.name) == spec.fallback);
        }
}

TEST_CASE("options that were not given have their defaults", "[settings]") {
    Settings s;
    CHECK(s.duration("ttl") == milliseconds(10000));
    CHECK(s.duration("request_timeout") == milliseconds(2000));
    s.values["ttl"] = "3s";
    CHECK(s.duration("request_timeout") == milliseconds(1000));
    CHECK(s.list("require").empty());
    CHECK_THROWS_AS(s.text("no_such_option"), std::out_of_range);
}

TEST_CASE("a secret is read anew each time, and its absence is named", "[settings]") {
    const Folder folder;
    const std::string path = folder.write("secret", "first\r\nrest\n");
    const Secret file(Secret::Source::file, path);
    CHECK(file.read().value() == "first");
    folder.write("secret", "second");
    CHECK(file.read().value() == "second");

    folder.write("secret", "\xef\xbb\xbfthird\r\n");  // as some editors begin a file
    CHECK(file.read().value() == "third");
    folder.write("secret", "\xef\xbb\xbf\n");
    CHECK(file.read().error().why == errc::bad_config);
    folder.write("secret", "\n");
    CHECK(file.read().error().why == errc::bad_config);
    CHECK(file.read().error().detail ==
          "The password file \"" + path + "\" has an empty first line.");
    std::filesystem::remove(path);
    REQUIRE_FALSE(file.read().has_value());
    CHECK(file.read().error().detail ==
          "The password file \"" + path + "\" cannot be read (No such file or directory).");
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    REQUIRE_FALSE(file.read().has_value());  // and does not hang
    CHECK(file.read().error().detail ==
          "The password file \"" + path + "\" is not a regular file.");

    const Secret variable(Secret::Source::environment, "HOLDFAST_TEST_SECRET");
    const Variable unset("HOLDFAST_TEST_SECRET", nullptr);
    REQUIRE_FALSE(variable.read().has_value());
    CHECK(variable.read().error().detail ==
          "The environment variable HOLDFAST_TEST_SECRET is not set.");
    const Variable set("HOLDFAST_TEST_SECRET", "x");
    CHECK(variable.read().value() == "x");
    const Variable line("HOLDFAST_TEST_SECRET", "\xef\xbb\xbfy\r\n");
    CHECK(variable.read().value() == "y");
    const Variable empty("HOLDFAST_TEST_SECRET", "\n");
    REQUIRE_FALSE(variable.read().has_value());
    CHECK(variable.read().error().detail ==
          "The environment variable HOLDFAST_TEST_SECRET has an empty first line.");
    CHECK(Secret().empty());
    CHECK(Secret().read().value().empty());
    CHECK(Secret(Secret::Source::literal, "y").read().value() == "y");
}

TEST_CASE("the nearest word", "[settings]") {
    const std::vector<std::string> words{"ttl", "namespace", "require", "request_timeout"};
    CHECK(nearest("tttl", words) == "ttl");
    CHECK(nearest("tlt", words) == "ttl");
    CHECK(nearest("TTL", words) == "ttl");
    CHECK(nearest("namspace", words) == "namespace");
    CHECK(nearest("reqiure", words) == "require");
    CHECK(nearest("banana", words).empty());
    CHECK(nearest("", words).empty());
    CHECK(nearest(std::string(10000, 'x'), words).empty());
}

TEST_CASE("a password file that every user may write is refused", "[settings]") {
    const Folder folder;
    const std::string path = folder.write("secret", "word\n");
    const Secret file(Secret::Source::file, path);
    for (const mode_t mode : {0600U, 0640U, 0660U, 0644U}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        CHECK(file.read().value() == "word");
    }
    for (const mode_t mode : {0602U, 0666U, 0777U}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        CHECK(file.read().error().why == errc::bad_config);
        CHECK(file.read().error().detail ==
              "The password file \"" + path +
                  "\" may be written by every user of this machine (chmod 600 it).");
    }
}

TEST_CASE("a relative file is one of the directory in which the client was opened", "[settings]") {
    Diagnostics diagnostics;
    const auto chosen = parse_url("redis://h?password_file=secret", registry(), diagnostics);
    REQUIRE(chosen.has_value());
    CHECK(chosen->settings.text("password_file") ==
          (std::filesystem::current_path() / "secret").string());
}

TEST_CASE("a password file that every user may read is remarked on", "[settings]") {
    const Folder folder;
    const std::string path = folder.write("secret", "word\n");
    const auto remark = [&] {
        Diagnostics diagnostics;
        const auto chosen = parse_url("redis://h?password_file=" + path, registry(), diagnostics);
        REQUIRE(chosen.has_value());
        return exposure(chosen->settings);
    };
    for (const mode_t mode : {0600U, 0640U, 0660U}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        CHECK(remark().empty());
    }
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    CHECK(remark() == "The password file \"" + path +
                          "\" may be read by every user of this machine (chmod 600 it).");
    std::filesystem::remove(path);
    CHECK(remark().empty());  // which is an error when it is needed
    Diagnostics diagnostics;
    CHECK(exposure(parse_url("redis://h", registry(), diagnostics).value().settings).empty());
}

TEST_CASE("a private key that every user may read is remarked on", "[settings]") {
    const Folder folder;
    const std::string path = folder.write("client.key", "any\n");
    const auto remark = [](const std::string& file) {
        Settings settings;
        settings.values["tls_key_file"] = file;
        return key_exposure(settings);
    };
    REQUIRE(::chmod(path.c_str(), 0640) == 0);
    CHECK(remark(path).empty());
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    CHECK(remark(path) == "The private key \"" + path +
                              "\" may be read by every user of this machine (chmod 600 it).");
    CHECK(remark("").empty());
}

TEST_CASE("two namespaces never meet", "[settings]") {
    // Every namespace and every name of up to three of these letters.
    std::vector<std::string> words{""};
    for (std::size_t at = 0; at < words.size(); ++at)
        if (words[at].size() < 3)
            for (const char c : {'a', '2', ':', '/'})
                words.push_back(words[at] + c);
    std::map<std::string, std::string> owners;  // what the server sees, and whose it is
    int accepted = 0;
    for (const std::string& space : words) {
        if (space.empty()) continue;
        Diagnostics diagnostics;
        const auto chosen = parse_url("redis://h?namespace=" + space, registry(), diagnostics);
        if (!chosen) continue;
        ++accepted;
        for (const std::string& name : words) {
            const auto [at, first] = owners.emplace(space + name, space);
            INFO(space << " + " << name << " is also a name of " << at->second);
            CHECK((first || at->second == space));
        }
    }
    CHECK(accepted == 2 * (1 + 2 + 4));  // at most two letters, then : or /
}

TEST_CASE("a namespace that could meet another says how to mend it", "[settings]") {
    const auto said = [](const std::string& space) {
        Diagnostics diagnostics;
        (void)parse_url("redis://h?namespace=" + space, registry(), diagnostics);
        return lines(diagnostics);
    };
    CHECK(said("app:").empty());
    CHECK(said("team.app-2/").empty());
    CHECK(said("").empty());
    CHECK(said("app") ==
          "redis://h: namespace \"app\" does not end in : or /, so its names could collide with "
          "another namespace's. | Write namespace=app:.\n");
    CHECK(said("my:app:") ==
          "redis://h: namespace \"my:app:\" has a : or / before its end, so its names could "
          "collide with another namespace's. | Keep the last one only, or put such a prefix into "
          "the names.\n");
}
