// What the machine under a PostgreSQL server does to a lock: its clock jumps, a disk is full, a
// standby that a commit must wait for is not there.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <future>

#include <fstream>

#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace postgresql_tests;

TEST_CASE("faults: the server's clock jumps: an early end is a loss, and the token grows") {
    lab::TempDir dir;
    // The server is another user, who has to find the file.
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
    lab::WallClock clock(dir / "offset");
    clock.set(0ms);
    lab::PostgresOptions options;
    options.environment = clock.environment();
    auto own = lab::PostgresServer::start(options);
    const auto jump = [&](hf::milliseconds by) {
        clock.set(by);
        const auto ahead = std::stod(own.value("SELECT extract(epoch FROM clock_timestamp())")) -
                           static_cast<double>(std::time(nullptr));
        REQUIRE(std::abs(ahead - static_cast<double>(by.count()) / 1000) < 30);
    };
    // Both have connected, and know the server's clock as it was.
    const auto first = open(own.url()), second = open(own.url());
    auto lease = hold(*lock_of(first, "N", {.ttl = 20s, .renew = false}));
    hold(second, "warm").release();
    SECTION("ahead") {
        jump(60s);
        auto next = hold(second, "N");
        CHECK(next.fencing_token() > lease.fencing_token());
        CHECK(lease.renew().error() == errc::lost);
        CHECK_FALSE(lease.valid());
        CHECK(lease.release() != ReleaseResult::released);
        CHECK(next.renew().has_value());
        CHECK(next.release() == ReleaseResult::released);
    }
    SECTION("back") {
        jump(-1h);
        CHECK(lock_of(second, "N")->try_acquire().error() == errc::contended);
        CHECK(lease.renew().has_value());
        // The renewal has put its end right.
        CHECK(own.value("SELECT expires < clock_timestamp() + interval '21 s' FROM holdfast_lease "
                        "WHERE name = 'N'") == "t");
        CHECK(lease.release() == ReleaseResult::released);
        auto next = hold(second, "N");
        CHECK(next.fencing_token() > lease.fencing_token());
        // What a dead holder left stays for an hour; an operator frees it.
        jump(-2h);
        CHECK(lock_of(first, "N")->try_acquire().error() == errc::contended);
        CHECK(first.break_lock("N", {.now = true}).has_value());
        auto third = hold(first, "N");
        CHECK(third.fencing_token() > next.fencing_token());
    }
}

TEST_CASE("faults: a full disk is said, takes nothing, and passes") {
    if (::geteuid() != 0) {
        FAIL("mounts a file system, so this test has to be run by root");
    }
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=60s&request_timeout=1s");
    auto lease = hold(client, "kept");
    lab::TempDir dir;
    std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
    const auto small = dir / "small";
    std::filesystem::create_directory(small);
    REQUIRE(::mount("none", small.c_str(), "tmpfs", 0, "size=256k,mode=0777") == 0);
    struct Unmount {
        const std::string where;
        ~Unmount() { ::umount2(where.c_str(), MNT_DETACH); }
    } const unmount{small};
    struct stat owner {};
    REQUIRE(::stat(own.data_directory().c_str(), &owner) == 0);
    REQUIRE(::chown(small.c_str(), owner.st_uid, owner.st_gid) == 0);
    own.sql("CREATE TABLESPACE small LOCATION '" + small.string() + "'");
    own.sql("ALTER TABLE holdfast_lease SET TABLESPACE small");
    {
        std::ofstream out(small / "stuffing");
        const std::string block(4096, 'x');
        while (out << block << std::flush) {
        }
    }
    // The last page may have room for some rows.
    std::vector<hf::Lease> held;
    hf::Diagnostics words;
    hf::error_code refused;
    for (int i = 0; i < 300 && !refused; ++i) {
        words = {};
        auto got = lock_of(client, "N" + std::to_string(i))
                       ->acquire({.wait = 0ms, .note = {}, .diagnostics = &words});
        if (got)
            held.push_back(std::move(*got));
        else
            refused = got.error();
    }
    CHECK(refused == errc::unavailable);
    CHECK_THAT(words.text(), ContainsSubstring("No space left"));
    CHECK(own.value("SELECT count(*) FROM holdfast_lease WHERE owner IS NOT NULL") ==
          std::to_string(held.size() + 1));
    CHECK(lease.valid());
    std::filesystem::remove(small / "stuffing");
    CHECK(lease.renew().has_value());
    CHECK(hold(client, "N" + std::to_string(held.size())).valid());
    CHECK(lease.release() == ReleaseResult::released);
    held.clear();
    own.sql("ALTER TABLE holdfast_lease SET TABLESPACE pg_default");
    own.sql("DROP TABLESPACE small");
}

TEST_CASE("faults: a commit that waits for a standby is no grant, and leaves nothing") {
    test_support::Trial& trial = test_support::this_trial();
    auto own = lab::PostgresServer::start();
    const auto client = open(own.url(), "ttl=60s&request_timeout=1s");
    hold(client, "N").release();
    auto lease = hold(client, "kept");
    const auto standby = [&](const std::string& name) {
        own.sql("ALTER SYSTEM SET synchronous_standby_names = '" + name + "'");
        own.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return own.value("SHOW synchronous_standby_names") == name; }, 5s,
                        "the setting is there");
    };
    standby("absent");
    // One process of the server's tells all others, in its own time: from then on commits wait.
    const auto waiters = [&] {
        return own.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    };
    std::future<void> probe;
    lab::wait_until(
        [&] {
            if (!probe.valid() || probe.wait_for(0s) == std::future_status::ready)
                probe = std::async(std::launch::async, [&] {
                    own.sql("SELECT pg_logical_emit_message(true, 'probe', '')");
                });
            return waiters() == "1";
        },
        10s, "a commit waits");
    const auto start = boot_clock::now();
    const auto got = lock_of(client, "N")->acquire({.wait = 1200ms});
    const auto took = ms_since(start);
    // It took effect: somebody waits for the standby.
    const auto waiting = waiters();
    const auto renewed = lease.renew();
    standby("");
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    CHECK((got.error() == errc::unavailable || got.error() == errc::in_doubt));
    trial.within(std::chrono::milliseconds(took), std::chrono::milliseconds(2200),
                 "a wait of 1200 ms");
    CHECK(std::stoi(waiting) >= 2);  // beside the first one
    CHECK_FALSE(renewed.has_value());
    CHECK(lease.valid());
    lab::wait_until([&] { return lease.renew().has_value(); }, 5s, "renewed again");
    const auto seen = [&] {
        const auto i = client.inspect("N");
        return i && i->holders.empty();
    };
    // The commit came about in the end; it is taken back long before its ttl.
    lab::wait_until(seen, cap(10s), "nothing is left");
    CHECK(hold(client, "N").valid());
}
