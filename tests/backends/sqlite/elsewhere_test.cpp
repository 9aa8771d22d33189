// Processes that see one file, or one kernel, in different ways: containers with a boot id, a /proc
// or a clock of their own, bind mounts, a log that was removed.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <mutex>

#include "fixture.hpp"
#include "questions.hpp"

namespace holdfast::sqlite::test {
namespace {

/// The helper in namespaces of its own, after `prepare` has run in a shell there.
lab::Process elsewhere(const File& file, std::vector<std::string> flags, const std::string& prepare,
                       const std::string& url, const std::string& log) {
    lab::ProcessOptions o;
    o.argv = {"unshare", "--fork", "--kill-child", "--mount"};
    if (::geteuid() != 0) o.argv.insert(o.argv.end(), {"--user", "--map-root-user"});
    o.argv.insert(o.argv.end(), flags.begin(), flags.end());
    o.argv.insert(o.argv.end(),
                  {"sh", "-c", prepare + " && exec \"$0\" hold \"$1\" a", SQLITE_HELPER, url});
    o.log = file.dir / log;
    return lab::Process(std::move(o));
}

/// One process holds `a` as it is seen from there, and another one here asks for it: refused, again
/// and again, for several renewals; granted once the holder is dead and its ttl has passed.
void one_holder(const std::vector<std::string>& flags, const std::string& prepare) {
    const File file;
    // A third of the ttl is too little for the first commit of a file on a busy disk.
    const auto url = file.url + "?ttl=2s&request_timeout=1500ms";
    auto client = Client::open(url).value();
    auto lock = client.make_lock("a").value();
    lock->acquire({.wait = 5s}).value().release();
    auto holder = elsewhere(file, flags, prepare, url, "there");
    lab::wait_until([&] { return !file.said("there").empty(); }, 10s, "the helper speaks");
    INFO(file.said("there"));
    REQUIRE(file.said("there").starts_with("held"));
    CHECK(lab::stays_true([&] { return lock->try_acquire().error() == errc::contended; }, 1000ms));
    holder.kill();
    auto lease = lock->acquire({.wait = 10s});
    REQUIRE(lease.has_value());
    CHECK(lease->previous_holder() == PreviousHolder::crashed);
    // And the other way round.
    auto other = elsewhere(file, flags, prepare, url, "waits");
    CHECK(lab::stays_true([&] { return file.said("waits").empty() && lease->valid(); }, 700ms));
    CHECK(lease->release() == ReleaseResult::released);
    CHECK(lab::reached([&] { return file.said("waits").starts_with("held"); }, 5s));
}

TEST_CASE("a process with another boot id excludes, and is excluded", "[native]") {
    one_holder({},
               "echo 11111111-2222-3333-4444-555555555555 > /tmp/$$ && "
               "mount --bind /tmp/$$ /proc/sys/kernel/random/boot_id && rm /tmp/$$");
}

TEST_CASE("a process that cannot read the boot id excludes, and is excluded", "[native]") {
    one_holder({"--pid"},
               "mount -t proc -o subset=pid none /proc && "
               "! cat /proc/sys/kernel/random/boot_id 2>/dev/null");
}

TEST_CASE("processes of other time namespaces exclude, whichever way their clock is shifted",
          "[native]") {
    SECTION("ahead") {
        one_holder({"--time", "--boottime", "86400"}, "true");
    }
    SECTION("behind") {
        one_holder({"--time", "--boottime", "-60"}, "true");
    }
}

// A sanitizer cannot do without /proc itself.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a process that cannot know its clock is refused, with the remedy", "[native]") {
    const File file;
    { Table(file).grant("b", "one"); }
    auto there = elsewhere(file, {"--time", "--boottime", "86400"}, "mount -t tmpfs none /proc",
                           file.url, "there");
    lab::wait_until([&] { return !file.said("there").empty(); }, 10s, "the helper speaks");
    CHECK(file.said("there").starts_with("failed: "));
    CHECK_THAT(file.said("there"), ContainsSubstring("mount /proc"));
}
#endif

TEST_CASE("a file that is bind-mounted by itself has another log beside it, and is refused",
          "[native]") {
    const File file;
    { Table(file).grant("b", "one"); }
    lab::TempDir other;
    std::ofstream(other / "locks.db");
    auto there =
        elsewhere(file, {}, "mount --bind " + file.path + " " + (other / "locks.db").string(),
                  "sqlite://" + (other / "locks.db").string(), "there");
    lab::wait_until([&] { return !file.said("there").empty(); }, 10s, "the helper speaks");
    CHECK(file.said("there").starts_with("failed: "));
    CHECK_THAT(file.said("there"), ContainsSubstring("mount its directory"));
    // The folder may be a mount of its own, or the file reached by a link.
    lab::TempDir linked;
    std::filesystem::create_symlink(file.path, linked / "locks.db");
    auto fine = elsewhere(file, {},
                          "mount --bind " + file.dir.path().string() + " " + other.path().string(),
                          "sqlite://" + (linked / "locks.db").string(), "fine");
    CHECK(lab::reached([&] { return file.said("fine").starts_with("held"); }, 10s));
    auto bound = elsewhere(file, {},
                           "mount --bind " + file.dir.path().string() + " " + other.path().string(),
                           "sqlite://" + (other / "locks.db").string(), "bound");
    CHECK(lab::stays_true([&] { return file.said("bound").empty(); }, 300ms));
    fine.kill();
    bound.kill();
}

TEST_CASE("a log that is removed while in use ends its leases, and nobody holds beside them",
          "[native]") {
    const File file;
    auto client = Client::open(file.url + "?request_timeout=1500ms").value();
    auto lock = client.make_lock("a", {.ttl = 2s}).value();
    auto lease = lock->acquire({.wait = 2s}).value();
    // More connections of this process, which do not notice by themselves.
    auto neighbour = Client::open(file.url + "?request_timeout=1500ms").value();
    auto second = client.make_lock("b").value()->acquire({.wait = 2s}).value();
    neighbour.make_lock("c").value()->acquire({.wait = 2s}).value().release();
    const auto lost = [&] { return lease.lost().stop_requested(); };
    SECTION("its index: all of it can be read from the log, so the lease goes on") {
        std::filesystem::remove(file.path + "-shm");
        auto other = file.helper({"hold", file.url, "a"}, "other");
        CHECK(lab::stays_true([&] { return file.said("other").empty() && lease.valid(); }, 700ms));
        CHECK(lab::reached([&] { return lease.renew().has_value(); }, 1s));
        CHECK(lease.release() == ReleaseResult::released);
        CHECK(lab::reached([&] { return file.said("other").starts_with("held"); }, 3s));
    }
    SECTION("the log") {
        std::filesystem::remove(file.path + "-wal");
        CHECK(lab::reached(lost, 2500ms));  // by its ttl at the latest
        CHECK(lab::reached([&] { return lock->try_acquire().has_value(); }, 3s));
        CHECK(neighbour.make_lock("c").value()->acquire({.wait = 2s}).has_value());
    }
    SECTION("both, and another process makes them again") {
        std::filesystem::remove(file.path + "-wal");
        std::filesystem::remove(file.path + "-shm");
        auto other = file.helper({"hold", file.url, "a"}, "other");
        lab::wait_until([&] { return !file.said("other").empty(); }, 10s, "the helper speaks");
        CHECK(file.said("other").starts_with("held"));
        CHECK(lab::reached(lost, 2s));
        // All connections here come to see what that one sees.
        CHECK(lock->try_acquire().error() == errc::contended);
        CHECK(neighbour.make_lock("a").value()->try_acquire().error() == errc::contended);
        CHECK(second.renew().error() == errc::lost);
        CHECK(neighbour.make_lock("b").value()->try_acquire().has_value());
        CHECK(file.sql("PRAGMA integrity_check") == "ok");
    }
}

/// Opens the file as `private` or not; what it was refused with.
std::string refused_at(const std::string& path, bool personal) {
    auto database = std::make_shared<DatabaseFile>();
    database->path = path;
    database->personal = personal;
    Connection c(database);
    const auto failed = c.open(boot_clock::now() + 2s);
    if (failed && personal) CHECK(failed.why == errc::denied);
    return failed.detail;
}

TEST_CASE("nobody may only read a new file, and one that somebody may is told") {
    const File file;
    const auto mode_with = [&](mode_t limit) {
        std::filesystem::remove(file.path);
        const auto mask = ::umask(limit);
        { Table(file).grant("a", "one"); }
        ::umask(mask);
        return std::filesystem::status(file.path).permissions() & std::filesystem::perms::all;
    };
    CHECK(mode_with(002) == std::filesystem::perms(0660));
    CHECK(mode_with(022) == std::filesystem::perms(0600));
    Table open(file);  // so that its log stays
    open.grant("a", "one");
    std::mutex mutex;
    std::string told;
    ClientOptions options;
    options.events = [&](const Event& e) {
        const std::lock_guard hold(mutex);
        if (e.kind == Event::Kind::warning) told += e.text;
    };
    const auto ask = [&] {
        auto client = Client::open(file.url, options).value();
        client.make_lock("b").value()->acquire({.wait = 2s}).value().release();
        client.close();
        const std::lock_guard hold(mutex);
        return told;
    };
    CHECK(ask().empty());
    std::filesystem::permissions(file.path + "-shm", std::filesystem::perms(0644));
    const std::string remedy =
        "chmod g-r,o-rwx " + file.path + " " + file.path + "-wal " + file.path + "-shm";
    CHECK_THAT(ask(), ContainsSubstring("read " + file.path + "-shm") && ContainsSubstring(remedy));
    std::filesystem::permissions(file.path + "-shm", std::filesystem::perms(0600));
    told.clear();
    std::filesystem::permissions(file.path, std::filesystem::perms(0640));
    CHECK_THAT(ask(), ContainsSubstring("read " + file.path + " can"));
    std::filesystem::permissions(file.path, std::filesystem::perms(0600));
    told.clear();
    std::filesystem::permissions(file.dir.path(), std::filesystem::perms(01777));
    CHECK_THAT(ask(), ContainsSubstring("every user may write the directory"));
    std::filesystem::permissions(file.dir.path(), std::filesystem::perms(0700));
    if (::geteuid() != 0) return;  // only root can give something away
    told.clear();
    REQUIRE(::chown(file.path.c_str(), 12345, 12345) == 0);
    CHECK_THAT(ask(), ContainsSubstring("belongs to another user"));
    // As several users share it: their group's directory hands the group on.
    told.clear();
    REQUIRE(::chown(file.dir.path().c_str(), 0, 12345) == 0);
    std::filesystem::permissions(file.dir.path(), std::filesystem::perms(02770));
    CHECK(ask().empty());
}

TEST_CASE("private=yes takes an older file from everybody else, and what it cannot is refused") {
    const File file;
    Table open(file);
    open.grant("a", "one");
    std::filesystem::permissions(file.dir.path(), std::filesystem::perms(0755));
    for (const char* end : {"", "-wal", "-shm"})
        std::filesystem::permissions(file.path + end, std::filesystem::perms(0644));
    CHECK(refused_at(file.path, true).empty());
    for (const char* end : {"", "-wal", "-shm"})
        CHECK((std::filesystem::status(file.path + end).permissions() &
               std::filesystem::perms::all) == std::filesystem::perms(0600));
    if (::geteuid() != 0) return;  // only root can give something away
    std::filesystem::permissions(file.path + "-shm", std::filesystem::perms(0644));
    REQUIRE(::chown((file.path + "-shm").c_str(), 12345, 12345) == 0);
    CHECK_THAT(refused_at(file.path, true), ContainsSubstring("-shm can stop every lock"));
}

TEST_CASE("what others put into the file does not run") {
    const File file;
    { Table(file).grant("a", "one"); }
    file.sql(
        "CREATE TRIGGER odd AFTER INSERT ON holdfast_lease BEGIN DELETE FROM holdfast_lease; "
        "END");
    Table t(file);
    t.grant("b", "one");
    CHECK(t.busy("b", "two"));
    CHECK(file.sql("SELECT count(*) FROM holdfast_lease") == "2");
}

TEST_CASE("private files are where nobody else could have put them") {
    lab::TempDir dir;
    const std::string path = dir / "sub/locks.db";
    const auto folder = dir / "sub";
    std::filesystem::create_directory(folder);
    std::filesystem::permissions(folder, std::filesystem::perms(0700));
    CHECK(refused_at(path, true).empty());
    SECTION("a link") {
        std::filesystem::create_symlink(path, folder / "link.db");
        CHECK(refused_at(folder / "link.db", false).empty());
        CHECK_THAT(refused_at(folder / "link.db", true), ContainsSubstring("symbolic link"));
    }
    SECTION("a link that leads nowhere, for anybody") {
        std::filesystem::create_symlink(dir / "elsewhere", folder / "link.db");
        CHECK_THAT(refused_at(folder / "link.db", false), ContainsSubstring("leads nowhere"));
        CHECK_FALSE(std::filesystem::exists(dir / "elsewhere"));
    }
    SECTION("a file or a folder that others may write") {
        std::filesystem::permissions(folder, std::filesystem::perms(0770));
        CHECK_THAT(refused_at(path, true), ContainsSubstring("written by others"));
        std::filesystem::permissions(folder, std::filesystem::perms(0700));
        std::filesystem::permissions(path, std::filesystem::perms(0666));
        CHECK_THAT(refused_at(path, true), ContainsSubstring("written by every user"));
    }
    SECTION("a folder on the way that every user may write") {
        std::filesystem::permissions(dir.path(), std::filesystem::perms(0777));
        CHECK_THAT(refused_at(path, true), ContainsSubstring("written by every user"));
        CHECK(refused_at(path, false).empty());
    }
    SECTION("a directory on the way that a group may write, unless its bit keeps others' names") {
        std::filesystem::permissions(dir.path(), std::filesystem::perms(0770));
        REQUIRE((::geteuid() != 0 || ::chown(dir.path().c_str(), 0, 12345) == 0));
        if (::geteuid() == 0)
            CHECK_THAT(refused_at(path, true), ContainsSubstring("written by its group"));
        std::filesystem::permissions(dir.path(), std::filesystem::perms(01770));
        CHECK(refused_at(path, true).empty());
    }
    SECTION("the user that a user namespace does not know is one like any other here") {
        if (::geteuid() != 0) return;  // only root can give something away
        std::ifstream map("/proc/self/uid_map");
        std::string inside, outside, count;
        map >> inside >> outside >> count;
        if (count != "4294967295") return;  // it is somebody else here
        REQUIRE(::chown(dir.path().c_str(), 65534, 0) == 0);
        CHECK_THAT(refused_at(path, true), ContainsSubstring("belongs to another user"));
    }
    SECTION("another user's file or folder") {
        if (::geteuid() != 0) return;  // only root can give something away
        REQUIRE(::chown(path.c_str(), 12345, 0) == 0);
        CHECK_THAT(refused_at(path, true), ContainsSubstring("belongs to another user"));
        REQUIRE(::chown(path.c_str(), 0, 0) == 0);
        REQUIRE(::chown(dir.path().c_str(), 12345, 0) == 0);
        CHECK_THAT(refused_at(path, true), ContainsSubstring("belongs to another user"));
    }
}

TEST_CASE("the log goes into the file only while nobody else can commit") {
    const File file;
    Table t(file);
    t.grant("a", "one");
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(file.path.c_str(), &db) == SQLITE_OK);
    const auto run = [&](const char* sql) {
        return sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    };
    REQUIRE(run("PRAGMA wal_autocheckpoint = 0") == SQLITE_OK);
    REQUIRE(run("CREATE TABLE filler(x); INSERT INTO filler WITH RECURSIVE n(i) AS (SELECT 1 UNION "
                "ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT zeroblob(4000) FROM n") ==
            SQLITE_OK);
    const auto content = [&] { return text_of(file.path); };
    const auto before = content();
    t.grant("b", "one");         // so that the connection sees how long the log is
    CHECK(content() == before);  // not beside the commit itself
    REQUIRE(run("BEGIN IMMEDIATE") == SQLITE_OK);
    t.connection.checkpoint();
    CHECK(content() == before);
    REQUIRE(run("ROLLBACK") == SQLITE_OK);
    t.grant("c", "one");
    t.connection.checkpoint();
    CHECK(content() != before);
    CHECK(t.busy("c", "two"));
    sqlite3_close(db);
}

TEST_CASE("versions of SQLite with the WAL-reset bug are known") {
    for (const int with : {3'007'000, 3'040'001, 3'044'005, 3'045'000, 3'050'006, 3'051'002})
        CHECK(may_lose_commits(with));
    for (const int without : {3'044'006, 3'050'007, 3'051'003, 3'052'000})
        CHECK_FALSE(may_lose_commits(without));
}

}  // namespace
}  // namespace holdfast::sqlite::test
