// What the machine under a PostgreSQL server does to a lock: a disk is full, a standby that a
// commit must wait for is not there.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <future>

#include <fstream>

#include "../sql/rig.hpp"
#include "holdfast/lab/temp_dir.hpp"

using namespace postgresql_tests;

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
        return std::stoi(
            own.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"));
    };
    std::future<void> probe;
    lab::wait_until(
        [&] {
            if (!probe.valid() || probe.wait_for(0s) == std::future_status::ready)
                probe = std::async(std::launch::async, [&] {
                    own.sql("SELECT pg_logical_emit_message(true, 'probe', '')");
                });
            return waiters() == 1;
        },
        10s, "a commit waits");
    // One of them is the probe's.
    while_commits_wait(
        trial, own, client, lease, [&] { return waiters() - 1; }, [&] { standby(""); });
}
