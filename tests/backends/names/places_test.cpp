// What makes two locks one is known to the backend alone: Lock::place says it for each of them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <string>

#include "catch.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"

namespace hf = holdfast;
namespace fs = std::filesystem;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<hf::Lock> lock_at(const std::string& url, const char* name = "x") {
    hf::Diagnostics words;
    auto client = hf::Client::open(url, {.diagnostics = &words});
    INFO(url << ": " << words.text());
    REQUIRE(client.has_value());
    return client->make_lock(name).value();
}

std::string place_of(const std::string& url, const char* name = "x") {
    return lock_at(url, name)->place();
}

/// Whether acquire_all refuses the two, without asking a server.
bool refused(const std::string& one, const std::string& two) {
    const auto a = lock_at(one), b = lock_at(two);
    hf::Diagnostics words;
    const auto ec = hf::acquire_all({*a, *b}, {.wait = 0ms, .diagnostics = &words}).error();
    return ec == hf::errc::bad_config &&
           words.text().find("may be one lock or two") != std::string::npos;
}

/// Changes the environment or the working directory for a while.
struct Setting {
    Setting(const char* n, const char* value) : name(n) { ::setenv(name, value, 1); }
    ~Setting() { ::unsetenv(name); }
    const char* name;
};
struct Folder {
    explicit Folder(const fs::path& to) { fs::current_path(to); }
    ~Folder() { fs::current_path(before); }
    const fs::path before = fs::current_path();
};

}  // namespace

TEST_CASE("each option of each backend is a part of a lock's identity, or apart", "[places]") {
    CHECK(spi::Registry::linked().all().size() >= 7);
    const auto declared = [](const std::string& whose, const std::vector<spi::OptionSpec>& table) {
        for (const spi::OptionSpec& o : table) {
            INFO(whose << ": " << o.name);
            CHECK(o.identity != spi::Identity::undeclared);
        }
    };
    declared("every backend", spi::common_options());
    declared("credentials", spi::credential_options());
    for (const auto& backend : spi::Registry::linked().all()) {
        declared(backend->name, backend->options);
        if (!backend->identity) continue;
        // What is a part changes the text; what is apart does not.
        const auto resolved = [&] {
            hf::Diagnostics words;
            return hf::parse_url(backend->example, spi::Registry::linked(), words).value();
        }();
        for (const spi::OptionSpec& o : backend->options) {
            INFO(backend->name << ": " << o.name);
            spi::Settings other = resolved.settings;
            other.values[std::string(o.name)] = o.type == spi::OptionType::boolean    ? "yes"
                                                : o.type == spi::OptionType::integer  ? "7"
                                                : o.type == spi::OptionType::duration ? "7s"
                                                                                      : "other";
            CHECK((backend->identity(other) == backend->identity(resolved.settings)) ==
                  (o.identity == spi::Identity::apart));
        }
    }
}

TEST_CASE("one lock that is written in two ways has one place", "[places]") {
    const std::pair<const char*, const char*> same[] = {
        {"redis://h", "redis://h/"},
        {"redis://h", "redis://h:6379/0"},
        {"redis://H", "redis://h/00"},
        {"redis://h:7000/2", "rediss://user:secret@h:7000/2?mode=plain"},
        {"redis://[::1]", "redis://[0:0:0:0:0:0:0:1]"},
        {"redis+sentinel://a,b,c/m", "rediss+sentinel://me:x@c:26379,B,a/m/0?confirm=no"},
        {"redis+cluster://a,b", "rediss+cluster://me:x@b:6379,A?mode=plain"},
        {"redlock://a,b,c", "redlocks://c,b,a/0?fencing=off"},
        {"redlock://a,b,c?node_set=main", "redlock://c,a,b?node_set=main"},
        {"postgresql://me@h/app", "postgres://me@h:5432/app?sslmode=disable"},
        {"postgresql://me@h", "postgresql://me@h/me"},
        {"postgresql://me@h/app?schema=s", "postgresql://you@h/app?schema=s"},
        {"postgresql://me@h/app?socket=/tmp", "postgresql://me@other/app?socket=/tmp/../tmp"},
        {"mysql://me@h/app", "mariadb://you@h:3306/app"},
        {"zookeeper://a,b/holdfast", "zookeeper://b,a"},
        {"zookeeper://a/locks/", "zookeeper://a/locks?robust=yes"},
        {"etcd://a,b", "etcds://b,a/holdfast/"},
        {"memory:one", "memory:one?ttl=3s"},
    };
    for (const auto& [one, two] : same) {
        INFO(one << " and " << two);
        CHECK(place_of(one) == place_of(two));
    }
    // A namespace is the beginning of a name.
    CHECK(place_of("redis://h?namespace=app:") == place_of("redis://h", "app:x"));
}

TEST_CASE("what libpq takes from its environment is part of a lock's place", "[places]") {
    {
        const Setting database("PGDATABASE", "app"), user("PGUSER", "me");
        CHECK(place_of("postgresql://h") == place_of("postgresql://me@h/app"));
        CHECK(place_of("postgresql://you@h") != place_of("postgresql://you@h/you"));
    }
    const std::string without = place_of("postgresql://me@h/app");
    const Setting options("PGOPTIONS", "-c search_path=other");
    CHECK(place_of("postgresql://me@h/app") != without);
}

TEST_CASE("what may be two locks has two places, and what may be one is refused together",
          "[places]") {
    const std::string quick = "request_timeout=100ms";
    const auto both = [&](const std::string& one, const std::string& two, bool open) {
        const auto with = [&](const std::string& url) {
            return url + (url.find('?') == url.npos ? "?" : "&") + quick;
        };
        INFO(one << " and " << two);
        CHECK(place_of(one) != place_of(two));
        CHECK(refused(with(one), with(two)) == open);
    };
    // Nobody listens at port 1, so nothing is acquired.
    const std::string redis = "redis://127.0.0.1:1", postgres = "127.0.0.1:1/app";
    both(redis + "/0", redis + "/1", false);
    both(redis, "redis://127.0.0.1:2", false);
    both(redis, "redis://localhost:1", true);
    const std::string set = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/m";
    both(set, "redis+sentinel://127.0.0.1:1/m", true);
    both(set, "redis+sentinel://127.0.0.1:1,127.0.0.1:2/other", false);
    both(set, set + "/1", false);
    // A server that one of the sets may have.
    both(set, redis, true);
    both(set, redis + "/1", false);
    const std::string cluster = "redis+cluster://127.0.0.1:1,127.0.0.1:2";
    both(cluster, "redis+cluster://127.0.0.1:1", true);
    both("postgresql://me@" + postgres + "?schema=one",
         "postgresql://me@" + postgres + "?schema=two", false);
    both("postgresql://me@" + postgres + "?schema=public", "postgresql://me@" + postgres, true);
    both("postgresql://me@" + postgres, "postgresql://you@" + postgres, true);
    both("postgresql://me@127.0.0.1:1", "postgresql://you@127.0.0.1:1", false);
    both("postgresql://me@" + postgres, "postgresql://me@" + postgres + "?socket=/nowhere", true);
    both("mysql://me@127.0.0.1:1/a", "mysql://me@127.0.0.1:1/b", false);
    both("zookeeper://127.0.0.1:1/a", "zookeeper://127.0.0.1:1/b", false);
    both("zookeeper://127.0.0.1:1", "zookeeper://127.0.0.1:1,127.0.0.1:2", true);
    both("zookeeper://127.0.0.1:1", "zookeeper://127.0.0.1:1?node=latch-", true);
    both("etcd://127.0.0.1:1/a", "etcd://127.0.0.1:1/b", false);
    both("etcd://127.0.0.1:1,127.0.0.1:2", "etcd://127.0.0.1:2,127.0.0.1:3", true);
    both("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?node_set=main",
         "redlock://localhost:1,localhost:2,localhost:3?node_set=main", true);
    both("memory:places1", "memory:places2", false);
    // Names of different backends have nothing to do with each other.
    both(redis, "memory:places1", false);
}

TEST_CASE("a file is one lock however its path is written, and two files are two", "[places]") {
    const hf::lab::TempDir temporary;
    const fs::path one = fs::path(temporary.path()) / "one",
                   two = fs::path(temporary.path()) / "two";
    fs::create_directory(one);
    fs::create_directory(two);
    fs::create_directory_symlink(one, fs::path(temporary.path()) / "link");
    const auto file = [](const fs::path& folder) {
        return "sqlite://" + (folder / "l.db").string();
    };
    const auto [here, dotted] = [&] {
        const Folder inside(one);
        return std::pair(lock_at("sqlite:l.db"), lock_at("sqlite:./l.db"));
    }();
    const auto there = [&] {
        const Folder inside(two);
        return lock_at("sqlite:l.db");
    }();
    const auto absolute = lock_at(file(one)),
               linked = lock_at(file(fs::path(temporary.path()) / "link"));
    auto set = hf::acquire_all({*here, *dotted, *absolute, *linked}, {.wait = 0ms}).value();
    CHECK(set.valid());
    CHECK(&set[0] == &set[3]);
    set.release();
    // Another client holds the second file's: the call must not pass for a holder of both.
    auto other = lock_at(file(two))->try_acquire().value();
    std::size_t failed = 9;
    CHECK(hf::acquire_all({*here, *there}, {.wait = 0ms, .failed = &failed}).error() ==
          hf::errc::contended);
    CHECK(failed == 1);
    other.release();
    // What the failed call had is given back in the background.
    CHECK(hf::acquire_all({*here, *there}, {.wait = 10s}).value().valid());
}
