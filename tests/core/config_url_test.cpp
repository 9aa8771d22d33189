// URLs: what is accepted, the exact words for each mistake, and that no secret is ever shown.
#include <random>

#include "config_fixture.hpp"

using namespace config_test;

namespace {

spi::Settings good(const std::string& url) {
    Diagnostics diagnostics;
    const auto chosen = parse_url(url, registry(), diagnostics);
    INFO(url << "\n" << lines(diagnostics));
    REQUIRE(chosen.has_value());
    CHECK(diagnostics.entries.empty());
    return chosen->settings;
}

struct Mistake {
    std::string url, words;
};

}  // namespace

TEST_CASE("a URL's parts arrive decoded, with defaults filled in", "[config]") {
    const auto s = good("redis://us%40er:p%3Aw:x@cache1/2?ttl=30s&namespace=a%20b:&verify=off");
    CHECK(s.scheme == "redis");
    CHECK(s.hosts == std::vector<spi::Endpoint>{{"cache1", 6379}});
    CHECK(s.path == "/2");
    CHECK(s.user == "us@er");
    CHECK(s.password.read().value() == "p:w:x");
    CHECK(s.duration("ttl") == milliseconds(30000));
    CHECK(s.text("namespace") == "a b:");
    CHECK_FALSE(s.flag("verify"));
    CHECK(s.text("wait") == "queue");
    CHECK(s.integer("pool") == 4);
    CHECK(s.given("ttl"));
    CHECK_FALSE(s.given("pool"));
    CHECK(s.display() == "redis://cache1:6379/2");
}

TEST_CASE("hosts, lists of hosts and files in a URL", "[config]") {
    CHECK(good("redis://[::1]:7").hosts == std::vector<spi::Endpoint>{{"::1", 7}});
    CHECK(good("redis://[::1]").display() == "redis://[::1]:6379");
    CHECK(good("redis://h/").path.empty());
    CHECK(good("redis://@h").user.empty());
    CHECK(good("quorum://a:1,b,c:3").display() == "quorum://a:1,b:7000,c:3");
    CHECK(good("sqlite:///var/x.db").path == "/var/x.db");
    CHECK(good("sqlite:///var/x.db").display() == "sqlite:///var/x.db");
    CHECK(good("sqlite:x@y.db").path == "x@y.db");
    CHECK(good("sqlite:x%20y.db").display() == "sqlite:x%20y.db");
    CHECK(good("sqlite:x.db?require=fencing,fifo").list("require") ==
          std::vector<std::string>{"fencing", "fifo"});
}

TEST_CASE("of several hosts the path stands once, behind the last", "[config]") {
    Registry one;
    Descriptor d = quorum();
    d.path = Descriptor::Path::optional;
    one.add(std::move(d));
    for (const char* url : {"quorum://a/app,b/app", "quorum://a/app,b:7", "quorum://a,b/app,c"}) {
        Diagnostics words;
        const auto refused = parse_url(url, one, words);
        CHECK_FALSE(refused.has_value());
        CHECK(lines(words) ==
              std::string(url) +
                  ": There is a comma in the path, and a host behind it would not be asked. | "
                  "Write the path once, behind the last host; a comma that belongs to it is "
                  "%2C.\n");
    }
    Diagnostics words;
    const auto right = parse_url("quorum://a,b/app%2Cx", one, words);
    REQUIRE(right.has_value());
    CHECK(right->settings.hosts.size() == 2);
    CHECK(right->settings.path == "/app,x");
}

TEST_CASE("each mistake in a URL has its own words", "[config]") {
    const std::vector<Mistake> mistakes{
        {"redis://h?ttl=10", "redis://h: ttl = 10 has no unit. | Write ttl=10s.\n"},
        {"redis://h?ttl=10x",
         "redis://h: ttl \"10x\" is not a duration. | Write a number with ms, s, m or h, for "
         "example ttl=10s.\n"},
        {"redis://h?ttl=50ms",
         "redis://h: ttl = 50ms is out of range. | Choose from 100ms to 24h.\n"},
        {"redis://h?ttl", "redis://h: ttl has no value. | Write for example ttl=10s.\n"},
        {"redis://h?tttl=10s",
         "redis://h: \"tttl\" is not an option of redis. | Did you mean ttl?\n"},
        {"redis://h?zzzzzz=1",
         "redis://h: \"zzzzzz\" is not an option of redis. | Options: backoff_max, backoff_min, "
         "namespace, password_env, password_file, pool, request_timeout, require, ttl, verify, "
         "wait.\n"},
        {"redis://h?ttl=1s&ttl=2s", "redis://h: ttl is given twice. | Keep one of the two.\n"},
        {"redis://h?wait=pol",
         "redis://h: wait \"pol\" is not a choice. | Did you mean wait=poll? Choices: queue, "
         "poll.\n"},
        {"redis://h?pool=many",
         "redis://h: pool \"many\" is not a whole number. | Write for example pool=4.\n"},
        {"redis://h?pool=65", "redis://h: pool = 65 is out of range. | Choose from 1 to 64.\n"},
        {"redis://h?pool=99999999999999999999",
         "redis://h: pool = 99999999999999999999 is out of range. | Choose from 1 to 64.\n"},
        {"redis://h?verify=maybe",
         "redis://h: verify \"maybe\" is neither true nor false. | Write verify=true or "
         "verify=false.\n"},
        {"redis://h?require=fencin",
         "redis://h: require names \"fencin\", which is not a capability. | Did you mean "
         "fencing?\n"},
        {"redis://h?require=fifo,,list",
         "redis://h: require has an empty item. | Write the items with single commas between "
         "them.\n"},
        {"redis://h?namespace=%FF", "redis://h: namespace is not UTF-8. | Write it in UTF-8.\n"},
        {"redis://h?namespace=a%0Ab",
         "redis://h: namespace has a control character. | Leave it out.\n"},
        {"redis://h?namespace=" + std::string(129, 'x'),
         "redis://h: namespace is 129 bytes long. | Use at most 128 bytes.\n"},
        {"redis://h?ttl=%1",
         "redis://h: A % in the value of \"ttl\" is not followed by two hexadecimal digits. | "
         "Write % itself as %25.\n"},
        {"redis://h?=1",
         "redis://h: An option after the ? has no name, or a bad escape in it. | Write "
         "OPTION=VALUE, with & between two.\n"},
        {"redis://h?backoff_min=2s",
         "redis://h: backoff_min = 2s is more than backoff_max = 1s. | Lower the one or raise the "
         "other.\n"},
        {"redis://h/99", "redis://h/99: Database 99 is refused by the check. | \n"},
        {"redis://", "redis://: The host is missing. | Write it as in redis://127.0.0.1:6379.\n"},
        {"redis:h",
         "redis:...: A host follows redis://. | Write it as in redis://127.0.0.1:6379.\n"},
        {"redis://:6379",
         "redis://...: The host is empty. | Write HOST:PORT, or [ADDRESS]:PORT for IPv6.\n"},
        {"redis://h:0",
         "redis://...: The host has a port that is no number from 1 to 65535. | Write HOST:PORT, "
         "or [ADDRESS]:PORT for IPv6.\n"},
        {"redis://::1",
         "redis://...: The host has a port that is no number from 1 to 65535. | Write HOST:PORT, "
         "or [ADDRESS]:PORT for IPv6.\n"},
        {"redis://a,b",
         "redis://a,b: redis takes one host, not 2. | Write it as in redis://127.0.0.1:6379.\n"},
        {"quorum://a,,b",
         "quorum://...: Host 2 is empty. | Write HOST:PORT, or [ADDRESS]:PORT for IPv6.\n"},
        {"quorum://a,a:7000",
         "quorum://a,a:7000: Host 2 is given twice. | Name each server once.\n"},
        {"quorum://a/x", "quorum://a/x: quorum takes no path. | Write it as in quorum://a,b,c.\n"},
        {"quorum://u@a",
         "quorum://a: quorum takes no user and no password. | Write it as in quorum://a,b,c.\n"},
        {"sqlite:",
         "sqlite:: sqlite needs a path: the database file. | Write it as in "
         "sqlite:///var/lib/locks.db.\n"},
        {"sqlite::memory:",
         "sqlite::memory:: This would be a file with the name :memory:. | Write memory: for locks "
         "in one process, or ./:memory: for that file.\n"},
        {"sqlite://x.db/",
         "sqlite://x.db/: sqlite takes no host. | Write sqlite:relative.file or "
         "sqlite:///absolute/file.\n"},
        {"redis://h#x", "redis://...: A # has no meaning here. | Write it as %23.\n"},
        {"redis://h/%zz",
         "redis://h/%zz: A % in the path is not followed by two hexadecimal digits. | Write % "
         "itself as %25.\n"},
        {"redis://h\n",
         "URL: The URL contains a space or a control character. | Write a space as %20, and leave "
         "out line ends.\n"},
        {"127.0.0.1:6379",
         "URL: The URL does not begin with a scheme. | Write for example redis://HOST:6379 or "
         "sqlite:///FILE.\n"},
        {"cache:6379",
         "cache:...: There is no backend for the scheme \"cache\". | For a server, write its "
         "scheme first, as in redis://HOST:6379.\n"},
        {"redsi://h",
         "redsi://...: There is no backend for the scheme \"redsi\". | Did you mean redis? Linked "
         "in: quorum, redis, rediss, sqlite.\n"},
        {"redis://h?password_env=not-a-name",
         "redis://h: password_env is not the name of an environment variable. | Write the "
         "variable's name, for example password_env=REDIS_PASSWORD.\n"},
    };
    for (const Mistake& m : mistakes) {
        INFO(m.url);
        Diagnostics diagnostics;
        const auto chosen = parse_url(m.url, registry(), diagnostics);
        REQUIRE_FALSE(chosen.has_value());
        CHECK(chosen.error() == errc::bad_config);
        CHECK(lines(diagnostics) == m.words);
    }
}

TEST_CASE("all mistakes of a URL are told at once", "[config]") {
    Diagnostics diagnostics;
    const auto chosen =
        parse_url("redis://h:x?ttl=10&wait=pol&tttl=1&verify=%", registry(), diagnostics);
    REQUIRE_FALSE(chosen.has_value());
    CHECK(diagnostics.entries.size() == 5);
}

TEST_CASE("a backend of ours that is not linked in says what to link", "[config]") {
    Registry none;
    for (const auto& [url, target] : std::vector<std::pair<std::string, std::string>>{
             {"redis://h", "Holdfast::redis"},
             {"rediss://h", "Holdfast::redis"},
             {"sqlite:x", "Holdfast::sqlite"},
             {"redlocks://h", "Holdfast::redlock"},
             {"postgres://h", "Holdfast::postgresql"},
             {"postgresql://h", "Holdfast::postgresql"},
             {"mysql://h", "Holdfast::mysql"},
             {"mariadb://h", "Holdfast::mysql"},
             {"zookeeper://h", "Holdfast::zookeeper"},
             {"memory:", "Holdfast::memory"}}) {
        Diagnostics diagnostics;
        const auto chosen = parse_url(url, none, diagnostics);
        REQUIRE_FALSE(chosen.has_value());
        CHECK(chosen.error() == errc::not_supported);
        CHECK_THAT(lines(diagnostics),
                   ContainsSubstring("link " + target + " (CMake: target_link_libraries(app " +
                                     target + "))"));
        CHECK_THAT(lines(diagnostics),
                   ContainsSubstring("with -DHOLDFAST_BACKEND_") && ContainsSubstring("=ON; "));
    }
}

TEST_CASE("no part of a user or password is shown, however broken the URL is", "[config]") {
    // Each begins as a password would; where it is cut or unescaped the parser sees other things.
    const std::vector<std::string> urls{"redis://bob:hunter2@h:bad",
                                        "redis://bob:hunter2@h?tttl=1",
                                        "redis://bob:hunter2",
                                        "redis://bob:hun/ter2@h",
                                        "redis://bob:hun?ter2@h",
                                        "redis://bob:hun#ter2@h",
                                        "redis://bob:hun@ter2@h",
                                        "redis://bob:hunter2%@h",
                                        "redis:bob:hunter2@h",
                                        "redis://bob:hunter2@",
                                        "redis://bob:hunter2@a,b",
                                        "bob:hunter2@h:6379",
                                        "redis://bob:hunter2@h?password=hunter2",
                                        "redis://h?password=hunter2",
                                        "redis://bob:hunter2@h,bob:hunter2@b",
                                        "sqlite://bob:hunter2@x/y",
                                        "redsi://bob:hunter2@h",
                                        "redis://bob:hun ter2@h",
                                        "quorum://bob:hunter2@a",
                                        "redis://bob:hunter2@h#x",
                                        "redis://bob:hun/ter2@h?x@y",
                                        "redis://bob:hunter2@h?password_env=hunter2-",
                                        "redis://bob:hunter2,@h:x",
                                        "redis://bob:1234567@h:1234567",
                                        "redis://bob:1234567",
                                        "redis://bob:hunter2@h?password_env=A"};
    for (const std::string& url : urls) {
        INFO(url);
        Diagnostics diagnostics;
        REQUIRE_FALSE(parse_url(url, registry(), diagnostics).has_value());
        REQUIRE_FALSE(diagnostics.entries.empty());
        const std::string all = lines(diagnostics);
        INFO(all);
        for (const char* secret : {"hunter2", "ter2", "hun", "bob", "1234567"})
            CHECK(all.find(secret) == std::string::npos);
    }
}

TEST_CASE("damaged URLs never crash, never pass with words, never leak", "[config]") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::string alphabet = "@:/?#%&=,[].0aZ \n\x80";
    for (int round = 0; round < 20000; ++round) {
        std::string url = "redis://bob:hunter2@cache1:6379/2?ttl=10s&wait=poll";
        // The secret itself stays whole, and the scheme and what is before it: only then is it one.
        for (int change = 0; change < 3; ++change) {
            const std::size_t at = 19 + random() % (url.size() - 19);
            const char c = alphabet[random() % alphabet.size()];
            if (random() % 2 == 0)
                url[at] = c;
            else
                url.insert(at, 1, c);
        }
        Diagnostics diagnostics;
        const bool accepted = parse_url(url, registry(), diagnostics).has_value();
        INFO(url << "\n" << lines(diagnostics));
        REQUIRE(accepted == diagnostics.entries.empty());
        REQUIRE(lines(diagnostics).find("hunter2") == std::string::npos);
    }
}
