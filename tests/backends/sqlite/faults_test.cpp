// What a file does to its users: a foreign write lock, a full disk, a killed writer, a wrong,
// missing, replaced or read-only file.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "fixture.hpp"
#include "trial.hpp"

namespace holdfast::sqlite::test {
namespace {

void make_tables(const File& file) {
    Table t(file);
    const auto g = t.grant("a", "setup");
    REQUIRE(t.release("a", "setup", g.token) == ReleaseResult::released);
}

TEST_CASE("a foreign write lock is waited for, at most until the deadline") {
    test_support::Trial& trial = test_support::this_trial();
    const File file;
    Table t(file);
    t.grant("a", "one");
    SECTION("beyond the deadline: unavailable, nothing done, on time") {
        const Writer foreign(file.path);
        Step s = t.step(Step::Kind::attempt, "b", "one", 10s, 300ms);
        const auto began = boot_clock::now();
        t.run(s);
        const auto took = boot_clock::now() - began;
        CHECK(took >= 300ms);
        trial.within(took, 1s, "the answer");
        REQUIRE(std::holds_alternative<spi::Attempt::Failed>(s.outcome));
        CHECK(std::get<spi::Attempt::Failed>(s.outcome).why == errc::unavailable);
        CHECK_THAT(s.detail, ContainsSubstring("write lock"));
    }
    SECTION("released in time: granted") {
        auto foreign = std::make_unique<Writer>(file.path);
        const auto due = boot_clock::now() + 100ms;
        std::thread ends([&] {
            lab::wait_until([&] { return boot_clock::now() >= due; }, 5s, "the lock to be missed");
            foreign.reset();
        });
        CHECK(t.grant("b", "one").token);
        CHECK(boot_clock::now() >= due);  // it did wait
        ends.join();
    }
    SECTION("steps of one transaction keep their own deadlines") {
        auto foreign = std::make_unique<Writer>(file.path);
        Step early = t.step(Step::Kind::attempt, "b", "one", 10s, 100ms);
        Step late = t.step(Step::Kind::attempt, "c", "one", 10s, 5s);
        std::thread ends([&] {
            lab::wait_until([&] { return boot_clock::now() >= early.deadline + 200ms; }, 5s,
                            "the first deadline is over");
            foreign.reset();
        });
        const std::array<Step*, 2> both{&early, &late};
        run_steps(t.connection, both);
        ends.join();
        CHECK(std::holds_alternative<spi::Attempt::Failed>(early.outcome));
        CHECK(std::holds_alternative<spi::Attempt::Granted>(late.outcome));
    }
}

TEST_CASE("a caller that waits outlasts a foreign transaction longer than one request") {
    const File file;
    make_tables(file);
    const auto client = Client::open(file.url + "?request_timeout=200ms").value();
    const auto lock = client.make_lock("a").value();
    auto foreign = std::make_unique<Writer>(file.path);
    const auto began = boot_clock::now();
    CHECK(lock->try_acquire().error() == errc::unavailable);
    CHECK(lock->acquire({.wait = 500ms}).error() == errc::unavailable);
    CHECK(boot_clock::now() - began >= 500ms);
    const auto due = boot_clock::now() + 600ms;
    std::thread ends([&] {
        lab::wait_until([&] { return boot_clock::now() >= due; }, 5s, "three requests' time");
        foreign.reset();
    });
    auto lease = lock->acquire({.wait = 20s});
    ends.join();
    REQUIRE(lease.has_value());
    CHECK(lease->release() == ReleaseResult::released);
}

TEST_CASE("BUSY while a lease is held: at risk, and held again afterwards") {
    const File file;
    auto client = Client::open(file.url).value();
    auto lock = client.make_lock("a", {.ttl = 3s}).value();
    auto lease = lock->acquire({.wait = 2s}).value();
    {
        const Writer foreign(file.path);
        const auto renewed = lease.renew();
        CHECK(renewed.has_error());
        CHECK(renewed.error() == errc::unavailable);
        CHECK(lease.valid());
    }
    CHECK(lease.renew().has_value());
    CHECK(lease.state() == LeaseState::held);
    CHECK(lease.release() == ReleaseResult::released);
}

TEST_CASE("a writer killed inside its transaction leaves nothing behind", "[native]") {
    const File file;
    Table t(file);
    const auto held = t.grant("a", "one");
    auto ghost = file.helper({"die-in-transaction", file.path, "a"}, "ghost");
    lab::wait_until([&] { return file.said("ghost") == "inside\n"; }, 10s, "the helper writes");
    Step s = t.step(Step::Kind::renew, "a", "one", 10s, 100ms);
    s.token = static_cast<std::int64_t>(held.token.value);
    CHECK(t.run(s).renewal == spi::Held::Renewal::unknown);  // it really has the write lock
    ghost.kill();
    CHECK(t.renew("a", "one", held.token).renewal == spi::Held::Renewal::renewed);
    CHECK(t.release("a", "one", held.token) == ReleaseResult::released);
    const auto next = t.grant("a", "two");
    CHECK(next.token > held.token);
    CHECK(next.token.value < held.token.value + 1'000'000'000'000);  // not from what it wrote
}

TEST_CASE("a killed holder's lock is free after its ttl, and it is told as crashed", "[native]") {
    test_support::Trial& trial = test_support::this_trial();
    const File file;
    auto holder = file.helper({"hold", file.url + "?ttl=1s", "a"}, "holder");
    lab::wait_until([&] { return file.said("holder").starts_with("held"); }, 10s, "it holds");
    auto client = Client::open(file.url).value();
    auto lock = client.make_lock("a").value();
    CHECK(lock->try_acquire().error() == errc::contended);
    holder.kill();
    const auto began = boot_clock::now();
    auto lease = lock->acquire({.wait = 10s});
    REQUIRE(lease.has_value());
    trial.within(boot_clock::now() - began, 1500ms, "the answer");
    CHECK(lease->previous_holder() == PreviousHolder::crashed);
    CHECK(lease->fencing_token().value > std::stoull(file.said("holder").substr(5)));
}

TEST_CASE("a full disk is said, takes nothing, and passes") {
    const File file;
    make_tables(file);
    // The limit counts for this process only, so a child of it meets the full disk.
    const auto child = [&](auto body) {
        const pid_t pid = ::fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            std::signal(SIGXFSZ, SIG_IGN);
            struct stat s {};
            ::stat(file.path.c_str(), &s);
            const rlimit none{static_cast<rlim_t>(s.st_size), static_cast<rlim_t>(s.st_size)};
            ::setrlimit(RLIMIT_FSIZE, &none);
            ::_exit(body());
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    };
    CHECK(child([&] {
              Table t(file);
              // The log may still fit some commits; in the end it does not.
              for (int i = 0; i < 64; ++i) {
                  Step s = t.attempt("n" + std::to_string(i), "one");
                  if (std::holds_alternative<spi::Attempt::Granted>(s.outcome)) continue;
                  const auto* f = std::get_if<spi::Attempt::Failed>(&s.outcome);
                  if (f == nullptr) return 2;
                  return f->why == errc::unavailable && !s.detail.empty() ? 0 : 3;
              }
              return 4;
          }) == 0);
    Table t(file);
    CHECK(t.grant("a", "two").token);
    CHECK(file.sql("PRAGMA integrity_check") == "ok");
}

TEST_CASE("a full disk after the record of a commit, in the padding, leaves a doubt") {
    const File file;
    make_tables(file);
    Table t(file);
    REQUIRE(t.grant("a", "one").token);
    CHECK(t.connection.may_have_committed(SQLITE_IOERR_FSYNC));
    CHECK_FALSE(t.connection.may_have_committed(SQLITE_FULL));  // nothing is padded here
    int pads = 0;
    sqlite3_file_control(t.connection.handle(), "main", SQLITE_FCNTL_POWERSAFE_OVERWRITE, &pads);
    CHECK(t.connection.may_have_committed(SQLITE_FULL));
}

TEST_CASE("a file that is moved away under a commit leaves a doubt, as it may come back") {
    const File file;
    const auto database = file.database();
    const std::string sub = file.dir / "sub", away = file.dir / "away";
    std::filesystem::create_directory(sub);
    database->path = sub + "/locks.db";
    Table t(database);
    t.grant("a", "one");
    struct Move {
        std::string from, to;
        bool done = false;
    } move{sub, away};
    const auto as_it_commits = [](unsigned, void* out, void* statement, void*) {
        auto& m = *static_cast<Move*>(out);
        if (sqlite3_sql(static_cast<sqlite3_stmt*>(statement)) == std::string("COMMIT") &&
            !m.done) {
            std::filesystem::rename(m.from, m.to);
            m.done = true;
        }
        return 0;
    };
    sqlite3_trace_v2(t.connection.handle(), SQLITE_TRACE_STMT, as_it_commits, &move);
    const Step s = t.attempt("b", "two");
    REQUIRE(move.done);
    std::filesystem::rename(away, sub);
    CHECK(std::holds_alternative<spi::Attempt::NoAnswer>(s.outcome));
    CHECK(t.grant("b", "two").token);  // it was there
}

TEST_CASE("a full file system: leases run out, and go on when there is space again") {
    if (::geteuid() != 0) FAIL("mounts a file system, so this test has to be run by root");
    const File file;
    REQUIRE(::mount("none", file.dir.path().c_str(), "tmpfs", 0, "size=256k") == 0);
    struct Unmount {
        const std::string where;
        ~Unmount() { ::umount2(where.c_str(), MNT_DETACH); }
    } const unmount{file.dir.path()};
    Table t(file);
    const auto held = t.grant("a", "one");
    const std::string stuffing = file.dir / "stuffing";
    {
        std::ofstream out(stuffing);
        const std::string block(4096, 'x');
        while (out << block << std::flush) {
        }
    }
    // A log that was used before has room; what it has is filled first.
    Step s;
    for (int i = 0; i < 64; ++i) {
        s = t.attempt("n" + std::to_string(i), "one");
        if (!std::holds_alternative<spi::Attempt::Granted>(s.outcome)) break;
    }
    REQUIRE(std::holds_alternative<spi::Attempt::Failed>(s.outcome));
    CHECK(std::get<spi::Attempt::Failed>(s.outcome).why == errc::unavailable);
    CHECK_THAT(s.detail, ContainsSubstring("no space") || ContainsSubstring("No space"));
    CHECK(t.renew("a", "one", held.token).renewal == spi::Held::Renewal::unknown);
    CHECK(t.release("a", "one", held.token) == ReleaseResult::unreachable);
    std::filesystem::remove(stuffing);
    CHECK(t.renew("a", "one", held.token).renewal == spi::Held::Renewal::renewed);
    CHECK(t.release("a", "one", held.token) == ReleaseResult::released);
    t.connection.close();
}

TEST_CASE("a file that is no database is refused and left as it is") {
    const File file;
    const std::string text(8192, 'x');
    std::ofstream(file.path) << text;
    Table t(file);
    CHECK(t.refused("a", "one") == errc::bad_config);
    CHECK_THAT(t.detail, ContainsSubstring("is not an SQLite database"));
    CHECK(text_of(file.path) == text);
}

TEST_CASE("a damaged database is said") {
    const File file;
    make_tables(file);
    {
        std::fstream out(file.path, std::ios::in | std::ios::out);
        out.seekp(4096);
        out << std::string(3 * 4096, '\xff');
    }
    Table t(file);
    CHECK(t.refused("a", "one") == errc::bad_config);
    CHECK_FALSE(t.detail.empty());
}

TEST_CASE("paths that cannot work are refused with their reason") {
    const File file;
    const auto refused = [&](const std::string& path) {
        auto database = file.database();
        database->path = path;
        Connection c(database);
        const auto failed = c.open(boot_clock::now() + 1s);
        return std::pair(failed.why, failed.detail);
    };
    const auto [folder, folder_words] = refused(file.dir / "missing/locks.db");
    CHECK(folder == errc::bad_config);
    CHECK_THAT(folder_words, ContainsSubstring("does not exist"));
    const auto [directory, directory_words] = refused(file.dir.path());
    CHECK(directory == errc::bad_config);
    CHECK_THAT(directory_words, ContainsSubstring("is not a file"));
    const auto [foreign, foreign_words] = refused("/proc/self/locks.db");
    CHECK(foreign == errc::bad_config);
    CHECK_THAT(foreign_words, ContainsSubstring("not known to be local"));
    make_tables(file);
    REQUIRE(::link(file.path.c_str(), (file.dir / "second").c_str()) == 0);
    const auto [linked, linked_words] = refused(file.path);
    CHECK(linked == errc::bad_config);
    CHECK_THAT(linked_words, ContainsSubstring("hard link"));
}

TEST_CASE("a directory without the permission to write is refused as denied") {
    const File file;
    make_tables(file);
    // Root may write anywhere but on a read-only file system; others lack the right.
    const bool root = ::geteuid() == 0;
    const std::string where = file.dir.path();
    if (root) {
        REQUIRE(::mount(where.c_str(), where.c_str(), nullptr, MS_BIND, nullptr) == 0);
        REQUIRE(::mount(nullptr, where.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY,
                        nullptr) == 0);
    } else {
        REQUIRE(::chmod(where.c_str(), 0500) == 0);
    }
    {
        Table t(file);
        CHECK(t.refused("a", "one") == errc::denied);
        CHECK_THAT(t.detail, ContainsSubstring(root ? "read-only" : "no permission"));
    }
    if (root)
        CHECK(::umount2(where.c_str(), MNT_DETACH) == 0);
    else
        CHECK(::chmod(where.c_str(), 0700) == 0);
    Table t(file);
    CHECK(t.grant("a", "one").token);
}

TEST_CASE(
    "a file replaced while it is open: the lease is lost, and the next one is on the new file") {
    const File file;
    Table t(file);
    const auto held = t.grant("a", "one");
    const auto move_away = [&] {
        for (const char* end : {"", "-wal", "-shm"})
            std::filesystem::rename(file.path + end, file.path + ".old" + end);
    };
    SECTION("deleted") {
        move_away();
        CHECK(t.renew("a", "one", held.token).error == errc::lost);
        CHECK(t.grant("a", "two").token > held.token);
        CHECK(file.sql("SELECT owner FROM holdfast_lease") == "two");
    }
    SECTION("replaced by another database") {
        move_away();
        make_tables(file);
        CHECK(t.release("a", "one", held.token) == ReleaseResult::already_expired);
        CHECK(t.grant("a", "two").token > held.token);
        CHECK(file.sql("SELECT owner FROM holdfast_lease") == "two");
    }
}

TEST_CASE("a replaced file ends a client's lease with its next renewal") {
    const File file;
    auto client = Client::open(file.url).value();
    auto lock = client.make_lock("a", {.ttl = 2s}).value();
    auto lease = lock->acquire({.wait = 2s}).value();
    for (const char* end : {"", "-wal", "-shm"})
        std::filesystem::rename(file.path + end, file.path + ".old" + end);
    CHECK(lab::reached([&] { return lease.lost().stop_requested(); }, 5s));
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(lock->try_acquire().has_value());  // T5: the same Lock, on the new file
}

}  // namespace
}  // namespace holdfast::sqlite::test
