// holdfast.toml, and which configuration is chosen.
#include <sys/stat.h>

#include "config_fixture.hpp"

using namespace config_test;

namespace {

std::string mistakes(const std::string& text) {
    Diagnostics diagnostics;
    const auto file = read_config_text(text, "f.toml", registry(), diagnostics);
    CHECK(file.has_value() == diagnostics.entries.empty());
    if (!file) CHECK(file.error() == errc::bad_config);
    return lines(diagnostics);
}

// Nothing of the machine's own configuration is seen.
struct Clean {
    Folder folder;
    Variable url{"HOLDFAST_URL", nullptr}, config{"HOLDFAST_CONFIG", nullptr};
    Variable xdg{"XDG_CONFIG_HOME", folder.path.c_str()};
};

}  // namespace

TEST_CASE("a file's backends arrive with their options, in the file's order", "[config]") {
    Diagnostics diagnostics;
    const auto file = read_config_text(R"(default = "main"
[backends.main]
url = "redis://cache1:6379?wait=poll"
ttl = "30s"
pool = 8
verify = false
require = ["fencing", "fifo"]
[backends.local]
type = "sqlite"
path = "locks.db"
[backends.all]
type = "quorum"
hosts = ["a:1", "[::1]"]
[backends.login]
type = "rediss"
hosts = "h"
path = "3"
user = "bob"
password_file = "secret"
)",
                                       "/etc/h/f.toml", registry(), diagnostics);
    INFO(lines(diagnostics));
    REQUIRE(file.has_value());
    CHECK(file->default_name == "main");
    REQUIRE(file->backends.size() == 4);
    const auto& main = file->backends[0];
    CHECK(main.source == "/etc/h/f.toml:2");
    CHECK(main.settings.name == "main");
    CHECK(main.settings.duration("ttl") == milliseconds(30000));
    CHECK(main.settings.text("wait") == "poll");
    CHECK(main.settings.integer("pool") == 8);
    CHECK_FALSE(main.settings.flag("verify"));
    CHECK(main.settings.list("require") == std::vector<std::string>{"fencing", "fifo"});
    CHECK(file->backends[1].settings.path == "/etc/h/locks.db");
    CHECK(file->backends[2].settings.display() == "quorum://a:1,[::1]:7000");
    const auto& login = file->backends[3].settings;
    CHECK(login.display() == "rediss://h:6379/3");
    CHECK(login.user == "bob");
    CHECK(login.text("password_file") == "/etc/h/secret");
}

TEST_CASE("each mistake in a file has its place and its words", "[config]") {
    const std::string head = "[backends.a]\nurl = \"redis://h\"\n";
    CHECK(mistakes("") ==
          "f.toml: The file names no backend. | Write [backends.main] and url = "
          "\"redis://HOST:6379\" below it.\n");
    CHECK(mistakes("defalt = \"a\"\n" + head) ==
          "f.toml:1:1: \"defalt\" is not a key of this file. | Did you mean default?\n");
    CHECK(mistakes("default = 3\n" + head) ==
          "f.toml:1:11 default: default is a number, not a string. | Write default = \"NAME\".\n");
    CHECK(mistakes("default = \"b\"\n" + head) ==
          "f.toml:1:11 default: There is no [backends.b]. | Did you mean a?\n");
    CHECK(mistakes(head + "ttl = 10\n") ==
          "f.toml:3:7 backends.a.ttl: ttl = 10 has no unit. | Write ttl = \"10s\".\n");
    CHECK(mistakes(head + "ttl = \"10\"\n") ==
          "f.toml:3:7 backends.a.ttl: ttl = 10 has no unit. | Write ttl = \"10s\".\n");
    CHECK(mistakes(head + "ttl = true\n") ==
          "f.toml:3:7 backends.a.ttl: ttl is true or false, not a string. | Write ttl = "
          "\"10s\".\n");
    CHECK(mistakes(head + "pool = \"4\"\n") ==
          "f.toml:3:8 backends.a.pool: pool is a string, not a whole number. | Write pool = 5.\n");
    CHECK(mistakes(head + "verify = \"yes\"\n") ==
          "f.toml:3:10 backends.a.verify: verify is a string, not true or false. | Write verify = "
          "true.\n");
    CHECK(mistakes(head + "require = \"fifo\"\n") ==
          "f.toml:3:11 backends.a.require: require is a string, not an array of strings. | Write "
          "require = [\"...\"].\n");
    CHECK(mistakes(head + "require = [\"fifa\"]\n") ==
          "f.toml:3:11 backends.a.require: require names \"fifa\", which is not a capability. | "
          "Did you mean fifo?\n");
    CHECK(mistakes(head + "nmespace = \"x\"\n") ==
          "f.toml:3:1 backends.a.nmespace: \"nmespace\" is not an option of redis. | Did you mean "
          "namespace?\n");
    CHECK(mistakes(head + "path = \"/1\"\n") ==
          "f.toml:3:1 backends.a.path: path stands beside url. | Write it into the url, or write "
          "type instead of url.\n");
    CHECK(mistakes("[backends.a]\nurl = \"redis://h?ttl=1s\"\nttl = \"2s\"\n") ==
          "f.toml:3:7 backends.a.ttl: ttl is given twice. | Keep one of the two.\n");
    CHECK(mistakes("[backends.a]\nttl = \"2s\"\n") ==
          "f.toml:1:11 backends.a: Neither url nor type is given. | Write for example url = "
          "\"redis://HOST:6379\".\n");
    CHECK(mistakes(head + "type = \"redis\"\n") ==
          "f.toml:1:11 backends.a: Both url and type are given. | Keep one of the two.\n");
    CHECK(mistakes("[backends.a]\ntype = \"rdis\"\n") ==
          "f.toml:2:8 backends.a.type: There is no backend for the scheme \"rdis\". | Did you mean "
          "redis? Linked in: quorum, redis, rediss, sqlite.\n");
    CHECK(mistakes("[backends.a]\nurl = 3\n") ==
          "f.toml:2:7 backends.a.url: url is a number, not a string. | Write url = "
          "\"redis://HOST:6379\".\n");
    CHECK(mistakes("[backends.a]\ntype = \"quorum\"\nhosts = [\"x\", 3, \"u:p@y\"]\n") ==
          "f.toml:3:15 backends.a.hosts: A host is a number, not a string. | Write hosts = "
          "[\"HOST:PORT\"].\n"
          "f.toml:3:18 backends.a.hosts: Host 2 has a port that is no number from 1 to 65535. | "
          "Write HOST:PORT, or [ADDRESS]:PORT for IPv6.\n");
    CHECK(mistakes("default = \"a\"\n[\n") ==
          "f.toml: This is not TOML. | Look for a [ or a name without its other half.\n");
    CHECK(mistakes("default = \"a\"\n[" + std::string(1, '\0') + "a]\n") ==
          "f.toml:2: There is a control character in the file. | Remove it.\n");
    CHECK(mistakes("# \xFF\n" + head) == "f.toml: The file is not UTF-8. | Save it as UTF-8.\n");
    CHECK(mistakes("backends = 3\n") ==
          "f.toml:1:12 backends: backends is a number, not a table. | Write [backends.NAME] and "
          "its keys below.\n");
    CHECK(mistakes("backends.a = 3\n") ==
          "f.toml:1:14 backends.a: backends.a is a number, not a table. | Write [backends.a] and "
          "its keys below.\n");
    CHECK(mistakes("[backends.\"a:b\"]\nurl = \"redis://h\"\n") ==
          "f.toml:1:11 backends: \"a:b\" cannot be the name of a backend. | Use at most 64 "
          "letters, digits and -_.\n");
    CHECK(mistakes(head + "password_file = \"x\"\npassword_env = \"Y\"\n") ==
          "f.toml:2:7 backends.a.url: The password is given in more than one way. | Keep one of: "
          "the password in the URL, password_file, password_env.\n");
}

TEST_CASE("all mistakes of a file are told at once", "[config]") {
    Diagnostics diagnostics;
    const auto file = read_config_text(
        "defalt = 1\n[backends.a]\nurl = \"redis://h:x?tl=1s\"\n[backends.b]\ntype = \"sqlite\"\n"
        "ttl = 1\n[backends.c]\n",
        "f.toml", registry(), diagnostics);
    CHECK_FALSE(file.has_value());
    INFO(lines(diagnostics));
    CHECK(diagnostics.entries.size() == 6);
}

TEST_CASE("a broken file shows its place and none of its secrets", "[config]") {
    for (const std::string& line :
         std::vector<std::string>{"url = redis://bob:hunter2@h",
                                  "url = \"redis://bob:hunter2@h",
                                  "url = 'hunter2\n",
                                  "url = \"hunter2\" hunter2",
                                  "password_env = hunter2",
                                  "x = \"\\hunter2\"",
                                  "hunter2 hunter2",
                                  "x = 12hunter2",
                                  "x = 2020-hunter2",
                                  "x = [hunter2",
                                  "x = {hunter2",
                                  "url = \"redis://bob:hunter2@h\"\nurl = \"hunter2\"",
                                  "password = \"hunter2\"",
                                  "x = 0xhunter2",
                                  "x = thunter2",
                                  "x = ihunter2",
                                  "url = \"redis://bob:hun@ter2@h\"",
                                  "url = \"redis://bob:hunter2@h:x?ttl=1&a=hunter2\"",
                                  "url = \"bob:hunter2@h\"",
                                  "type = \"redis\"\nhosts = \"bob:hunter2@h\"",
                                  "x = \"\x01hunter2\""}) {
        const std::string all = mistakes("[backends.a]\n" + line + "\n");
        INFO(line << "\n" << all);
        CHECK_THAT(all, ContainsSubstring("f.toml:"));
        if (line.rfind("hunter2", 0) == 0) continue;  // a key, which is no secret
        CHECK(all.find("hunter") == std::string::npos);
        CHECK(all.find("ter2") == std::string::npos);
        CHECK(all.find("bob") == std::string::npos);
    }
}

TEST_CASE("an entry that is not linked in is an error only when chosen", "[config]") {
    Clean clean;
    Registry some;
    some.add(sqlite());
    const std::string path = clean.folder.write(
        "f.toml", "[backends.a]\nurl = \"redis://h\"\n[backends.b]\nurl = \"sqlite:x.db\"\n");
    Diagnostics diagnostics;
    const auto b = resolve("b", path, some, diagnostics);
    INFO(lines(diagnostics));
    REQUIRE(b.has_value());
    CHECK(b->settings.path == (clean.folder.path / "x.db").string());
    const auto a = resolve("a", path, some, diagnostics);
    REQUIRE_FALSE(a.has_value());
    CHECK(a.error() == errc::not_supported);
    CHECK_THAT(lines(diagnostics), ContainsSubstring("link Holdfast::redis"));
    // Also by the name of a backend that is no scheme.
    const std::string by_type =
        clean.folder.write("g.toml",
                           "[backends.a]\ntype = \"redis-sentinel\"\nhosts = [\"h\"]\n"
                           "[backends.b]\nurl = \"sqlite:x.db\"\n");
    CHECK(resolve("b", by_type, some, diagnostics).has_value());
    CHECK(resolve("a", by_type, some, diagnostics).error() == errc::not_supported);
}

TEST_CASE("what is chosen, from an argument, the environment or a file", "[config]") {
    Clean clean;
    const auto chosen = [](std::string_view what, const std::string& file = {}) {
        Diagnostics diagnostics;
        const auto c = resolve(what, file, registry(), diagnostics);
        return c ? c->source + " " + c->settings.display() : lines(diagnostics);
    };
    CHECK(chosen("") ==
          ": No backend is configured. | Set "
          "HOLDFAST_URL=redis://HOST:6379, write a holdfast.toml (see `holdfast config init`), or "
          "use --local for locks of this user on this machine.\n");
    CHECK(chosen("redis") ==
          ": \"redis\" is not a URL, and there is no holdfast.toml that could define it. | "
          "For a URL, write it as in redis://127.0.0.1:6379.\n");
    CHECK(chosen("redis://h") == "URL redis://h:6379");

    const std::string one = clean.folder.write("one.toml", "[backends.a]\nurl = \"redis://a\"\n");
    const std::string two = clean.folder.write(
        "two.toml", "[backends.aa]\nurl = \"redis://a\"\n[backends.bb]\nurl = \"redis://b\"\n");
    CHECK(chosen("", one) == one + ":1 redis://a:6379");
    CHECK(chosen("bb", two) == two + ":3 redis://b:6379");
    CHECK(chosen("", two) == two +
                                 ": The file names 2 backends and no default. | Write default = "
                                 "\"aa\" at its top, or name one of: "
                                 "aa, bb.\n");
    CHECK(chosen("bbb", two) == two + ": There is no backend named \"bbb\". | Did you mean bb?\n");
    CHECK(chosen("", clean.folder.path) == clean.folder.path.string() +
                                               ": The configuration file is a directory. | Name a "
                                               "file that exists and is readable.\n");
    {
        const Variable url("HOLDFAST_URL", "redis://env");
        CHECK(chosen("") == "HOLDFAST_URL redis://env:6379");
        CHECK(chosen("", one) == one + ":1 redis://a:6379");
        CHECK(chosen("redis://h") == "URL redis://h:6379");
    }
    {
        const Variable url("HOLDFAST_URL", "redis://bob:hunter2@h?ttl=1");
        CHECK(chosen("") == "HOLDFAST_URL: ttl = 1 has no unit. | Write ttl=1s.\n");
    }
    const std::string home =
        clean.folder.write("holdfast/holdfast.toml", "[backends.home]\nurl = \"redis://home\"\n");
    CHECK(find_config() == home);
    CHECK(chosen("") == home + ":1 redis://home:6379");
    const std::string missing = (clean.folder.path / "missing.toml").string();
    const Variable config("HOLDFAST_CONFIG", missing.c_str());
    CHECK(find_config() == missing);
    CHECK(chosen("") == missing +
                            ": The configuration file cannot be read (No such file or directory). "
                            "| Set HOLDFAST_CONFIG to a readable file, or unset it.\n");
}

TEST_CASE("the current directory is never searched", "[config]") {
    Clean clean;
    clean.folder.write("holdfast/holdfast.toml", "[backends.home]\nurl = \"redis://home\"\n");
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(clean.folder.path);
    const Variable relative("XDG_CONFIG_HOME", ".");
    const std::string found = find_config();
    std::filesystem::current_path(before);
    CHECK((found.empty() || found.starts_with("/etc/")));
}

TEST_CASE("a file too deep or too large for anybody's good is refused", "[config]") {
    std::string deep = "a";
    for (int n = 0; n < 200'000; ++n)
        deep += ".a";
    CHECK(mistakes(deep + " = 1\n") ==
          "f.toml: The file is larger than 64 KiB. | Is it the right file?\n");
    CHECK(mistakes(deep.substr(0, 60'001) + " = 1\n") ==
          "f.toml: The file has more than 2048 dots. | Is it the right file?\n");
    // What remains is read on any stack.
    std::string most = deep.substr(0, 4'097) + " = 1\n";
    CHECK_THAT(mistakes(most), ContainsSubstring("\"a\" is not a key of this file."));
}

TEST_CASE("only a regular file is read, and nothing is waited for", "[config]") {
    const Clean clean;
    const auto problem = [](const std::string& path) {
        Diagnostics diagnostics;
        CHECK_FALSE(read_config(path, registry(), diagnostics).has_value());
        return lines(diagnostics);
    };
    const std::string fifo = (clean.folder.path / "fifo").string();
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const std::string& path : {fifo, std::string("/dev/zero")})
        CHECK_THAT(problem(path), ContainsSubstring("is not a regular file."));
}

TEST_CASE("what every user may write is not trusted", "[config]") {
    const Clean clean;
    const std::string path = clean.folder.write("h.toml", "[backends.main]\nurl = \"redis://h\"\n");
    Diagnostics diagnostics;
    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    CHECK(read_config(path, registry(), diagnostics).has_value());
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
    CHECK_FALSE(read_config(path, registry(), diagnostics).has_value());
    CHECK(lines(diagnostics) == path +
                                    ": The configuration file may be written by every user of "
                                    "this machine. | Run chmod o-w " +
                                    path + ".\n");
}

TEST_CASE("the reference has every option once, sorted, whatever the order of linking",
          "[config]") {
    Registry other;
    other.add(quorum());
    other.add(sqlite());
    other.add(redis());
    const std::string text = holdfast::spi::configuration_reference(registry());
    CHECK(text == holdfast::spi::configuration_reference(other));
    CHECK_THAT(text, ContainsSubstring("| `ttl` | duration | `10s` | 100ms to 24h |"));
    CHECK_THAT(text, ContainsSubstring("| `wait` | choice | `queue` | `queue`, `poll` |"));
    CHECK(text.find("## quorum") < text.find("## redis"));
    CHECK(text.find("## redis") < text.find("## sqlite"));
}
