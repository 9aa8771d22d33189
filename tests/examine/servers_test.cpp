// Client::examine on real servers: silent on right ones, and each misconfiguration that a test can
// make is found. Settings are changed on a running server where the server lets one.
#include <filesystem>
#include <fstream>
#include <set>

#include "catch.hpp"
#include "holdfast/client.hpp"
#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/mariadb_server.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "holdfast/lab/zookeeper_server.hpp"

using namespace std::chrono_literals;

namespace {

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::Verdict;
using Ids = std::set<std::string>;

hf::Examination examined(const std::string& url) {
    const auto client = hf::Client::open(url).value();
    hf::Diagnostics words;
    hf::result<hf::Examination> found = hf::make_error_code(hf::errc::unavailable);
    // A cluster may be changing its leader.
    (void)lab::reached(
        [&] {
            words = {};
            found = client.examine(&words);
            return found || found.error() != hf::errc::unavailable;
        },
        20s);
    INFO(words.text());
    REQUIRE(found.has_value());
    return *found;
}

Ids ids(const hf::Examination& e, Verdict v) {
    Ids out;
    for (const hf::Finding& f : e.findings)
        if (f.verdict == v) out.insert(f.id);
    return out;
}

std::string words_of(const hf::Examination& e) {
    std::string all;
    for (const hf::Finding& f : e.findings)
        if (f.verdict != Verdict::sound)
            all += f.id + " " + std::string(to_string(f.verdict)) + " " + to_text(f) + "\n";
    return all;
}

/// Nothing but these.
void expect(const std::string& url, const Ids& unsafe, const Ids& slow = {},
            const Ids& unknown = {}) {
    const auto e = examined(url);
    INFO(url << "\n" << words_of(e));
    CHECK(ids(e, Verdict::unsafe) == unsafe);
    CHECK(ids(e, Verdict::slow) == slow);
    CHECK(ids(e, Verdict::unknown) == unknown);
}

void set(const lab::RedisServer& server, const std::string& option, const std::string& value) {
    INFO(option << " " << value);
    REQUIRE(server.cli({"CONFIG", "SET", option, value}).is_ok());
}

}  // namespace

TEST_CASE("examine: Redis") {
    lab::RedisOptions options;
    options.append_only = true;
    options.users = {"poor on >secret ~* &* +@all -info -config",
                     "few on >secret ~app* ~{app*}:hf:* &other +@all -zadd -evalsha"};
    auto server = lab::RedisServer::start(options);
    const std::string url = server.url();
    expect(url, {});
    const auto changed = [&](const std::string& option, const std::string& bad,
                             const std::string& good, const Ids& unsafe, const Ids& slow) {
        set(server, option, bad);
        expect(url, unsafe, slow);
        set(server, option, good);
    };
    changed("appendfsync", "everysec", "always", {"redis.fsync"}, {});
    changed("no-appendfsync-on-rewrite", "yes", "no", {"redis.fsync_on_rewrite"}, {});
    changed("timeout", "5", "0", {}, {"redis.idle_timeout"});
    changed("min-replicas-to-write", "1", "0", {}, {"redis.replicas_required"});
    set(server, "maxmemory", "100mb");
    changed("maxmemory-policy", "allkeys-lru", "noeviction", {"redis.eviction"}, {});
    changed("maxmemory", "1mb", "0", {}, {"redis.memory"});
    // Its own user may not ask what it needs to know.
    const auto limited = "redis://poor:secret@127.0.0.1:" + std::to_string(server.port());
    expect(limited, {"config.password"}, {},
           {"redis.info", "redis.role", "redis.persistence", "redis.replicas", "redis.eviction"});
    const auto few = "redis://few:secret@127.0.0.1:" + std::to_string(server.port());
    expect(few + "?namespace=app:", {"config.password"}, {"redis.rights"});
    expect(few + "?namespace=b:", {"config.password"}, {"redis.rights"});
    const auto found = words_of(examined(few + "?namespace=app:"));
    INFO(found);
    CHECK(found.find("EVALSHA, ZADD, PUBLISH to its channel") != std::string::npos);
    // A snapshot that cannot take its place: a folder is there.
    const auto folder = server.cli({"CONFIG", "GET", "dir"}).elements.at(1).text;
    const auto taken = std::filesystem::path(folder) / "dump.rdb";
    std::filesystem::remove_all(taken);
    std::filesystem::create_directories(taken / "in the way");
    REQUIRE(server.cli({"BGSAVE"}).type != lab::Reply::Type::error);
    lab::wait_until([&] { return server.info("persistence")["rdb_last_bgsave_status"] == "err"; },
                    20s, "the snapshot fails");
    expect(url, {}, {"redis.writes"});
    std::filesystem::remove_all(taken);
    REQUIRE(server.cli({"BGSAVE"}).type != lab::Reply::Type::error);
    lab::wait_until([&] { return server.info("persistence")["rdb_last_bgsave_status"] == "ok"; },
                    20s, "the snapshot succeeds");
    // Configuration of the client's own.
    expect(url + "?ttl=500ms", {}, {"config.ttl"});
    expect(url + "?ttl=3s&request_timeout=2s", {}, {"config.request_timeout"});
    lab::Proxy proxy(server.port());
    proxy.delay_both(60ms);
    expect("redis://127.0.0.1:" + std::to_string(proxy.port()) + "?ttl=2s&request_timeout=650ms",
           {}, {"redis.round_trip"});
    // It keeps nothing, and a replica follows it.
    set(server, "appendonly", "no");
    expect(url, {"redis.persistence"});
    auto replica = lab::RedisServer::start(options);
    replica.cli({"REPLICAOF", "127.0.0.1", std::to_string(server.port())});
    lab::wait_until([&] { return server.info("replication")["connected_slaves"] == "1"; }, 20s,
                    "the replica follows");
    expect(url, {"redis.persistence", "redis.replicas"});
    CHECK(ids(examined(replica.url()), Verdict::unsafe).count("redis.role") == 1);
}

TEST_CASE("examine: Redlock, and clocks that differ") {
    const lab::TempDir folder;
    lab::WallClock clock(folder / "clock");
    lab::RedisOptions options;
    options.append_only = true;
    options.environment = clock.environment();
    std::vector<lab::RedisServer> nodes;
    nodes.push_back(lab::RedisServer::start(options));
    options.environment.clear();
    for (int i = 1; i < 4; ++i)
        nodes.push_back(lab::RedisServer::start(options));
    const auto url = [&](std::size_t count) {
        std::string hosts;
        for (std::size_t i = 0; i < count; ++i)
            hosts +=
                (i == 0 ? "" : ",") + std::string("127.0.0.1:") + std::to_string(nodes[i].port());
        return "redlock://" + hosts + "?durable=yes";
    };
    // All are on this machine, which is found as well.
    const Ids here{"redlock.hosts"};
    expect(url(4) + "&fencing=off", {"redlock.fencing"}, {"redlock.hosts", "redlock.nodes"});
    // Each node keeps which set it belongs to.
    for (const auto& node : nodes)
        REQUIRE(node.cli({"DEL", "{redlock}:hf:n"}).integer == 1);
    expect(url(3), {}, here);
    set(nodes[1], "appendfsync", "everysec");
    expect(url(3), {"redlock.fsync"}, here);
    set(nodes[1], "appendfsync", "always");
    clock.set(1h);
    expect(url(3), {"redis.clock", "redlock.skew"}, here);
    expect(nodes[0].url(), {"redis.clock"});
    clock.set(0ms);
    nodes[2].kill();
    expect(url(3), {}, {"redlock.answers", "redlock.hosts"});
}

TEST_CASE("examine: PostgreSQL") {
    auto server = lab::PostgresServer::start({.fsync = true});
    const std::string url = server.url();
    expect(url, {});
    const auto changed = [&](const std::string& bad, const std::string& good, const Ids& unsafe,
                             const Ids& slow) {
        INFO(bad);
        server.sql(bad);
        server.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return words_of(examined(url)) != ""; }, 10s, "it is found");
        expect(url, unsafe, slow);
        server.sql(good);
        server.sql("SELECT pg_reload_conf()");
        lab::wait_until([&] { return words_of(examined(url)) == ""; }, 10s, "it is sound again");
    };
    const auto setting = [&](const std::string& name, const std::string& value, const Ids& unsafe,
                             const Ids& slow) {
        changed("ALTER SYSTEM SET " + name + " = " + value, "ALTER SYSTEM RESET " + name, unsafe,
                slow);
    };
    setting("full_page_writes", "off", {"postgresql.full_page_writes"}, {});
    setting("autovacuum", "off", {}, {"postgresql.autovacuum"});
    changed("ALTER ROLE holdfast SET statement_timeout = '500ms'",
            "ALTER ROLE holdfast RESET statement_timeout", {}, {"postgresql.statement_timeout"});
    changed("ALTER ROLE holdfast SET idle_session_timeout = '5s'",
            "ALTER ROLE holdfast RESET idle_session_timeout", {}, {"postgresql.idle_timeout"});
    changed("ALTER TABLE holdfast_lease SET UNLOGGED", "ALTER TABLE holdfast_lease SET LOGGED",
            {"postgresql.table"}, {});
    changed("INSERT INTO holdfast_lease (name, token) VALUES ('forged', 9223372036854775000)",
            "DELETE FROM holdfast_lease WHERE name = 'forged'", {"postgresql.tokens"}, {});
    changed("ALTER TABLE holdfast_lease DROP CONSTRAINT holdfast_lease_pkey",
            "ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)", {"postgresql.primary_key"},
            {});
    changed(
        "SET allow_system_table_mods = on; INSERT INTO pg_subscription_rel SELECT 0, "
        "'holdfast_lease'::regclass, 'r', NULL",
        "SET allow_system_table_mods = on; DELETE FROM pg_subscription_rel",
        {"postgresql.subscription"}, {});
    server.sql("CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE ON holdfast_lease TO app");
    std::string as_app = url;
    as_app.replace(as_app.find("//") + 2, as_app.find('@') - as_app.find("//") - 2, "app");
    expect(as_app, {}, {"postgresql.rights"});
    server.sql("GRANT DELETE ON holdfast_lease TO app");
    expect(as_app, {});
    const lab::PgBouncer pooler(server);
    expect(pooler.url(), {}, {"postgresql.pooler"});
    const auto standby = server.standby();
    expect(url, {"postgresql.standbys"});
}

TEST_CASE("examine: a PostgreSQL that does not sync and has few connections") {
    auto server = lab::PostgresServer::start(
        {.config = {"max_connections = 10", "superuser_reserved_connections = 1"}});
    expect(server.url(), {"postgresql.fsync"}, {"postgresql.connections"});
}

TEST_CASE("examine: MariaDB") {
    auto server = lab::MariadbServer::start({.fsync = true, .binary_log = true});
    const std::string url = server.url();
    expect(url, {}, {}, {"mysql.replicas"});  // this user may not see whether there are any
    server.sql("GRANT PROCESS ON *.* TO holdfast");
    expect(url, {});
    const auto changed = [&](const std::string& bad, const std::string& good, const Ids& unsafe,
                             const Ids& slow) {
        INFO(bad);
        server.sql(bad);
        expect(url, unsafe, slow);
        server.sql(good);
        expect(url, {});
    };
    const auto setting = [&](const std::string& name, const std::string& bad,
                             const std::string& good, const Ids& unsafe, const Ids& slow) {
        changed("SET GLOBAL " + name + " = " + bad, "SET GLOBAL " + name + " = " + good, unsafe,
                slow);
    };
    setting("innodb_flush_log_at_trx_commit", "2", "1", {"mysql.flush"}, {});
    setting("sync_binlog", "0", "1", {"mysql.binary_log"}, {});
    setting("wait_timeout", "30", "28800", {}, {"mysql.idle_timeout"});
    changed("INSERT INTO holdfast_lease (name, token) VALUES ('forged', 1100000000000000000)",
            "DELETE FROM holdfast_lease WHERE name = 'forged'", {"mysql.tokens"}, {});
    // Rights on what is not ours do not count.
    server.sql(
        "CREATE USER app; GRANT SELECT, INSERT, UPDATE ON holdfast.holdfast_lease TO app;"
        "CREATE DATABASE other; GRANT ALL ON other.* TO app; GRANT PROCESS ON *.* TO app;"
        "GRANT DELETE HISTORY ON holdfast.* TO app");
    std::string as_app = url;
    as_app.replace(as_app.find("//") + 2, as_app.find('@') - as_app.find("//") - 2, "app");
    expect(as_app, {}, {"mysql.rights"});
    server.sql("GRANT DELETE ON holdfast.holdfast_lease TO app");
    expect(as_app, {});
    const auto replica = server.replica();
    expect(url, {"mysql.replicas"});
}

TEST_CASE("examine: a MariaDB whose machine must not crash, with few connections") {
    const auto server =
        lab::MariadbServer::start({.config = {"max_connections = 10", "skip_innodb_doublewrite"}});
    expect(server.url(), {"mysql.flush", "mysql.doublewrite"}, {"mysql.connections"});
}

TEST_CASE("examine: SQLite") {
    const lab::TempDir folder;
    const std::string file = (folder / "locks.db").string();
    const std::string url = "sqlite://" + file;
    // Debian's SQLite may have the WAL-reset bug; whether it was mended cannot be asked.
    const auto first = examined(url);
    INFO(words_of(first));
    const Ids unknown = ids(first, Verdict::unknown);
    CHECK((unknown.empty() || unknown == Ids{"sqlite.version"}));
    Ids unsafe = ids(first, Verdict::unsafe);
    unsafe.erase("sqlite.memory");  // where temporary files are
    CHECK(unsafe == Ids{});
    std::filesystem::permissions(file, std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
    CHECK(ids(examined(url), Verdict::unsafe).count("sqlite.permissions") == 1);
    if (std::filesystem::is_directory("/dev/shm")) {
        const std::string in_memory = "/dev/shm/" + folder.path().filename().string() + ".db";
        CHECK(ids(examined("sqlite://" + in_memory), Verdict::unsafe).count("sqlite.memory") == 1);
        for (const char* end : {"", "-wal", "-shm"})
            std::filesystem::remove(in_memory + end);
    }
}

TEST_CASE("examine: etcd") {
    auto servers =
        lab::EtcdServers::start({.count = 3, .arguments = {"--quota-backend-bytes", "1000000"}});
    expect(servers.url() + "?ttl=10s", {});
    expect(servers.url(0) + "?ttl=10s", {}, {"etcd.listed"});
    const std::string big(200'000, 'A');
    lab::wait_until(
        [&] {
            return servers.post(0, "kv/put", R"({"key":"YmlnCg==","value":")" + big + "\"}")
                       .find("space exceeded") != std::string::npos;
        },
        20s, "the alarm");
    expect(servers.url() + "?ttl=10s", {}, {"etcd.alarm"});
    servers.kill(2);
    lab::wait_until(
        [&] {
            return ids(examined(servers.url() + "?ttl=10s"), Verdict::slow) ==
                   Ids{"etcd.alarm", "etcd.answers"};
        },
        20s, "the member is missed, and the others have a leader");
}

TEST_CASE("examine: ZooKeeper") {
    auto three = lab::ZooKeeperServers::start({.count = 3, .config = {"maxSessionTimeout=10000"}});
    expect(three.url() + "?ttl=10s&tick_time=100ms", {});
    expect(three.url(0) + "?ttl=10s&tick_time=100ms", {}, {"zookeeper.listed"});
    expect(three.url() + "?ttl=10s&tick_time=60ms", {"zookeeper.tick_time"});
    three.kill(three.leader() == 0 ? 1 : 0);
    lab::wait_until(
        [&] {
            return ids(examined(three.url() + "?ttl=10s&tick_time=100ms"), Verdict::slow) ==
                   Ids{"zookeeper.answers"};
        },
        20s, "the server is missed");
}

TEST_CASE("examine: a connection that breaks says nothing about ZooKeeper's servers") {
    auto one = lab::ZooKeeperServers::start({});
    lab::Proxy proxy("127.0.0.1", one.port());
    const auto client = hf::Client::open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) +
                                         "?ttl=2s&tick_time=100ms&request_timeout=650ms")
                            .value();
    REQUIRE(client.inspect("any").has_value());
    proxy.cut_after(lab::Direction::to_client, 0);
    CHECK(client.examine().error() == hf::errc::unavailable);
    CHECK(proxy.counters().connections_cut > 0);
}

TEST_CASE("examine: one ZooKeeper server with limits, which may not be asked") {
    auto one = lab::ZooKeeperServers::start(
        {.config = {"maxClientCnxns=5", "maxSessionTimeout=5000", "minSessionTimeout=4000"}});
    const std::string url = one.url() + "?tick_time=100ms&ttl=";
    expect(url + "10s", {},
           {"zookeeper.servers", "zookeeper.connections", "zookeeper.longest_session"});
    CHECK(ids(examined(url + "3s&request_timeout=900ms"), Verdict::slow)
              .count("zookeeper.shortest_session") == 1);
    // It answers srvr all the same.
    auto silent = lab::ZooKeeperServers::start({.config = {"4lw.commands.whitelist=ruok"}});
    expect(silent.url() + "?tick_time=100ms", {}, {"zookeeper.servers"}, {"zookeeper.tick_time"});
}

TEST_CASE("examine: a password file that others may read") {
    lab::RedisOptions options;
    options.append_only = true;
    options.password = "word";
    auto server = lab::RedisServer::start(options);
    const lab::TempDir folder;
    const auto secret = folder / "password";
    std::ofstream(secret) << "word\n";
    const auto with = [&](std::filesystem::perms mode) {
        std::filesystem::permissions(secret, mode);
        return server.url() + "?password_file=" + secret.string();
    };
    using std::filesystem::perms;
    expect(with(perms::owner_read), {});
    expect(with(perms::owner_read | perms::others_read), {"config.password_file"});
}
