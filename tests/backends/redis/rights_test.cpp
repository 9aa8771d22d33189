// What a server refuses, and to whom: forbidden names, a cluster, the words of older
// servers, keys of another kind, read-only users, and what is said about
// passwords on the wire.
#include <algorithm>
#include <atomic>

#include "catch.hpp"
#include "peer.hpp"
#include "resp/errors.hpp"
#include "resp/script.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
using holdfast::lab::RedisOptions;
using holdfast::resp::Error;
using holdfast::resp::make;

TEST_CASE("rights: a forbidden name does not fail the others of its call") {
    RedisOptions options;
    options.users = {"app on >word ~lock:* ~{lock:* &hf:c:* +@all"};
    auto server = RedisServer::start(options);
    const auto at = "@127.0.0.1:" + std::to_string(server.port());
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig("redis://app:word" + at, mode);
        std::vector<std::unique_ptr<Try>> all;
        std::vector<Try*> batch;
        for (int i = 0; i < 8; ++i) {
            all.push_back(std::make_unique<Try>(i == 3 ? "other" : "lock:" + std::to_string(i), 10s,
                                                i % 2 == 0));
            batch.push_back(all.back().get());
        }
        rig.attempt(batch);
        std::vector<spi::Held> held;
        for (Try* t : batch) {
            INFO(t->name << ": " << t->error().message() << " " << t->a.detail);
            CHECK(t->granted() == (t->name != "other"));
            held.push_back(t->held());
        }
        CHECK(batch[3]->error() == errc::denied);
        std::vector<spi::Held*> items;
        for (auto& h : held)
            items.push_back(&h);
        rig.run(rig.backend->renew(items));
        for (const auto& h : held) {
            INFO(h.name);
            CHECK((h.renewal == spi::Held::Renewal::renewed) == (h.name != "other"));
        }
        rig.run(rig.backend->release(items));
        for (const auto& h : held) {
            INFO(h.name);
            CHECK((h.released == ReleaseResult::released) == (h.name != "other"));
        }
        Try first("lock:1"), second("other"), third("lock:2");
        rig.attempt({&first, &second, &third});
        std::vector<spi::Attempt*> back{&first.a, &second.a, &third.a};
        for (spi::Attempt* a : back)
            a->deadline = boot_clock::now() + 2s;
        rig.run(rig.backend->withdraw(back));
        CHECK(server.cli({"EXISTS", "lock:1", "lock:2"}).integer == 0);
    }
}

TEST_CASE("rights: a Redis Cluster is refused before anything is asked of it") {
    RedisOptions options;
    options.config = {"cluster-enabled yes"};
    auto server = RedisServer::start(options);
    server.cli({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    holdfast::lab::wait_until(
        [&] {
            return server.cli({"SET", "probe", "x"}).is_ok();
        },
        10s, "the cluster works");
    for (const char* mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode);
        Try t("a"), u("b"), v("c");
        rig.attempt(t);
        CHECK(t.error() == errc::not_supported);
        CHECK_THAT(t.a.detail, ContainsSubstring("Cluster"));
        rig.attempt({&u, &v});
        CHECK(u.error() == errc::not_supported);
        auto lane = rig.backend->open_lane();
        Try w("d");
        w.a.sent = boot_clock::now();
        w.a.deadline = w.a.sent + 2s;
        lane->attempt(w.a);
        CHECK(w.error() == errc::not_supported);
        CHECK(rig.inspect("a").error() == errc::not_supported);
    }
    CHECK(server.cli({"DBSIZE"}).integer == 1);
}

TEST_CASE("a server that is not the only one to take writes is refused by its role") {
    const Peer peer([](const Peer::Command& c) -> std::string {
        if (c[0] != "HELLO") return "*2\r\n$10\r\n1700000000\r\n$1\r\n0";
        return "*4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$14\r\nactive-replica";
    });
    Rig rig("redis://127.0.0.1:" + std::to_string(peer.port()));
    Try t("a");
    rig.attempt(t);
    CHECK(t.error() == errc::not_supported);
    CHECK_FALSE(t.in_doubt());
    CHECK_THAT(t.a.detail, ContainsSubstring("active-replica"));
}

TEST_CASE("T27: a peer that redirects is a cluster: nothing is granted, and nothing is in doubt") {
    // As behind a proxy that hides what the server is: only the keys' commands are redirected.
    for (const std::string answer : {"MOVED 866 127.0.0.1:7001", "ASK 866 127.0.0.1:7001"})
        for (const char* mode : {"mode=fenced", "mode=plain"}) {
            INFO(answer << ", " << mode);
            std::atomic<int> redirected{0};
            Peer peer([&](const Peer::Command& c) -> std::string {
                if (c[0] == "TIME") return "*2\r\n$10\r\n1700000000\r\n$1\r\n0";
                if (c[0] == "PING") return "+PONG";
                if (c[0] == "HELLO") return "-NOPERM this user has no permissions";
                ++redirected;
                return "-" + answer;
            });
            Rig rig("redis://127.0.0.1:" + std::to_string(peer.port()), mode);
            Try t("a"), u("b"), v("c");
            rig.attempt(t);
            rig.attempt({&u, &v});
            auto lane = rig.backend->open_lane();
            Try w("d");
            w.a.sent = boot_clock::now();
            w.a.deadline = w.a.sent + 2s;
            lane->attempt(w.a);
            for (const Try* one : {&t, &u, &v, &w}) {
                CHECK(one->error() == errc::not_supported);
                CHECK_FALSE(one->in_doubt());
                CHECK_THAT(one->a.detail, ContainsSubstring(answer));
            }
            // Whoever held before is not told that the lease is lost: it may be at the other node.
            CHECK(rig.renew(t).renewal == spi::Held::Renewal::unknown);
            CHECK(rig.release(t) == ReleaseResult::unreachable);
            CHECK(rig.withdraw(t) == errc::not_supported);
            CHECK(rig.inspect("a").error() == errc::not_supported);
            CHECK(redirected >= 8);
        }
}

TEST_CASE("rights: the words of a script's error, as Redis and Valkey send them") {
    // Taken from Redis 6.2.16, 7.0.15 and 8.0.2, and from Valkey 8.1.1.
    const std::string older =
        "ERR Error running script (call to f_" + std::string(40, 'a') + "): @user_script:48: ";
    const std::vector<std::pair<std::string, Error>> words{
        {older + "@user_script: 48: -READONLY You can't write against a read only replica. ",
         Error::read_only},
        {older + "@user_script: 48: -NOREPLICAS Not enough good replicas to write. ",
         Error::few_replicas},
        {older + "@user_script: 48: -MISCONF Errors writing to the AOF file: No space left",
         Error::no_write},
        {older + "@user_script: 48: -OOM command not allowed when used memory > 'maxmemory'. ",
         Error::no_memory},
        {older + "WRONGTYPE Operation against a key holding the wrong kind of value",
         Error::wrong_type},
        {older + "@user_script: 48: The user executing the script can't run this command or "
                 "subcommand ",
         Error::denied},
        {older + "@user_script: 48: The user executing the script can't access at least one of "
                 "the keys mentioned in the command arguments ",
         Error::denied},
        {"READONLY You can't write against a read only replica. script: x, on @user_script:48.",
         Error::read_only},
        {"ERR The user executing the script can't run this command or subcommand script: x, on "
         "@user_script:48.",
         Error::denied},
        {"ERR ACL failure in script: User app has no permissions to run the 'del' command script: "
         "x, on @user_script:48.",
         Error::denied},
        {"ERR ACL failure in script: No permissions to access a key script: x, on "
         "@user_script:48.",
         Error::denied},
        {"NOPERM this user has no permissions to access one of the keys used as arguments",
         Error::denied},
        {"ERR syntax error", Error::refused_command},
        {"ERR unknown command 'EVALSHA', with args beginning with: ", Error::no_command},
        {"ERR Unknown Redis command called from script script: x, on @user_script:48.",
         Error::no_command},
        {"ERR Unknown command called from script script: x, on @user_script:48.",
         Error::no_command},
        {older + "@user_script: 48: Unknown Redis command called from Lua script ",
         Error::no_command},
    };
    for (const auto& [text, code] : words) {
        INFO(text);
        CHECK(holdfast::resp::from_reply(text) == holdfast::resp::make(code));
    }
}

TEST_CASE("rights: what a script was refused is told by the command, and apart for keys") {
    const holdfast::resp::Script script("local a\nredis.call('DEL', KEYS[2])");
    const auto said = [&](const std::string& words) {
        return holdfast::resp::shown("ERR " + words + " script: x, on @user_script:2.", script);
    };
    for (const char* words : {"The user executing the script can't run this command or subcommand",
                              "ACL failure in script: User app has no permissions to run the 'del' "
                              "command"}) {
        INFO(words);
        CHECK(said(words) == "NOPERM: the user may not run DEL");
    }
    for (const char* words : {"The user executing the script can't access at least one of the keys "
                              "mentioned in the command arguments",
                              "ACL failure in script: No permissions to access a key"}) {
        INFO(words);
        CHECK(said(words) == "NOPERM: the user may not use the keys of this name (DEL)");
    }
    // A script that went on has no place in its words.
    const std::string all =
        "ERR ACL failure in script: User app has no permissions to run the 'del' command";
    CHECK(holdfast::resp::shown(all, script) == all);
    CHECK(said("Something failed in script: x") == "ERR Something failed in script: x");
}

TEST_CASE("rights: a renewal and a release say which command was refused, and why") {
    RedisOptions options;
    options.users = {"nodel on >word ~* &* +@all -del", "noexpire on >word ~* &* +@all -pexpire"};
    auto server = RedisServer::start(options);
    RedisOptions renamed;
    renamed.config = {"rename-command DEL \"\"", "rename-command PEXPIRE gone"};
    auto without = RedisServer::start(renamed);
    const auto at = "@127.0.0.1:" + std::to_string(server.port());
    struct Row {
        std::string url, renewal, release;
        std::vector<std::string> words;  // as servers say it
        holdfast::error_code why;
    };
    // Redis 7.0, and later ones.
    const std::vector<std::string> denied{"can't run this command", "has no permissions to run"};
    const Row rows[] = {
        {"redis://nodel:word" + at, "", "NOPERM: the user may not run DEL", denied,
         make(Error::denied)},
        {"redis://noexpire:word" + at, "NOPERM: the user may not run PEXPIRE", "", denied,
         make(Error::denied)},
        {without.url(),
         "the server has no PEXPIRE",
         "the server has no DEL",
         {"command called from"},
         make(Error::no_command)},
    };
    for (const Row& row : rows)
        for (const bool many : {false, true}) {
            INFO(row.url << ' ' << many);
            Rig rig(row.url);
            const std::string mark = std::to_string(&row - rows) + (many ? "m" : "o");
            std::vector<std::unique_ptr<Try>> all;
            for (int i = 0; i < (many ? 3 : 1); ++i) {
                all.push_back(std::make_unique<Try>(mark + std::to_string(i)));
                REQUIRE(rig.attempt(*all.back()).granted());
            }
            std::vector<spi::Held> held;
            for (const auto& t : all)
                held.push_back(t->held());
            std::vector<spi::Held*> items;
            for (auto& h : held)
                items.push_back(&h);
            rig.run(rig.backend->renew(items));
            for (const auto& h : held) {
                CHECK(h.detail == row.renewal);
                CHECK(h.renewal_error == (row.renewal.empty() ? holdfast::error_code() : row.why));
            }
            rig.run(rig.backend->release(items));
            for (const auto& h : held) {
                // Of a part of a batch the server does not say which command it was.
                const bool in_its_words = std::any_of(
                    row.words.begin(), row.words.end(),
                    [&](const auto& words) { return h.detail.find(words) != std::string::npos; });
                INFO(h.detail);
                CHECK((h.detail == row.release || (many && in_its_words)));
                CHECK(h.release_error == (row.release.empty() ? holdfast::error_code() : row.why));
            }
        }
    // By the connection of a blocking call as well.
    Rig rig("redis://nodel:word" + at);
    auto lane = rig.backend->open_lane();
    Try t("lane");
    REQUIRE(rig.attempt(t).granted());
    spi::Held h = t.held();
    lane->release(h);
    CHECK(h.release_error == make(Error::denied));
    CHECK(h.detail == "NOPERM: the user may not run DEL");
}

TEST_CASE("rights: a replica is refused, and shows nothing as the truth") {
    auto server = RedisServer::start();
    Rig early(server.url());
    Try held("a"), line("a", 10s, true);
    REQUIRE(early.attempt(held).granted());
    server.cli({"REPLICAOF", "127.0.0.1", "1"});
    for (const char* mode : {"mode=fenced", "wait=poll", "mode=plain"}) {
        INFO(mode);
        Rig rig(server.url(), mode);
        Try t("b", 10s, true);
        rig.attempt(t);
        CHECK(t.error() == make(Error::read_only));
        CHECK_THAT(t.a.detail, ContainsSubstring("replica"));
        // Nobody who has reached no other server waits for it.
        CHECK_FALSE(std::get<spi::Attempt::Failed>(t.a.outcome).server_alive);
        CHECK(rig.inspect("a").error() == make(Error::read_only));
        CHECK_THAT(rig.detail, ContainsSubstring("replica"));
        CHECK(rig.list("").error() == make(Error::read_only));
    }
    // By a connection from the time when it was none.
    CHECK(early.inspect("a").error() == make(Error::read_only));
    CHECK(early.list("").error() == make(Error::read_only));
    server.cli({"REPLICAOF", "NO", "ONE"});
    CHECK(early.inspect("a").has_value());
}

TEST_CASE("rights: mode=plain tells a key of another kind from a lock that is held") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "mode=plain");
    server.cli({"RPUSH", "list", "x"});
    Try t("list", 10s, true), hasty("list"), good("good"), busy("good", 10s, true);
    rig.attempt({&t, &hasty, &good});
    CHECK(t.error() == errc::kind_mismatch);
    CHECK(hasty.error() == errc::kind_mismatch);
    CHECK(good.granted());
    CHECK(server.cli({"LRANGE", "list", "0", "-1"}).elements.size() == 1);
    // Asked once: a waiter that looks again sends one command as before.
    REQUIRE(rig.attempt(busy).busy());
    const auto before = rig.backend->requests();
    REQUIRE(rig.attempt(busy).busy());
    CHECK(rig.backend->requests() - before == 1);
}

TEST_CASE("rights: mode=plain takes a value for a value, whatever it says") {
    auto server = RedisServer::start();
    Rig rig(server.url(), "mode=plain");
    server.cli({"SET", "a", "E READONLY"});
    Try t("a", 10s, true), first("b");
    rig.attempt(t);
    CHECK(t.busy());
    REQUIRE(rig.attempt(first).granted());
    server.cli({"SET", "b", "E READONLY"});
    CHECK(rig.release(first) == ReleaseResult::owned_by_other);
    // Nor is the connection given up for it: the next command is not preceded by a handshake.
    const auto before = rig.backend->requests();
    Try next("c");
    REQUIRE(rig.attempt(next).granted());
    CHECK(rig.backend->requests() - before == 1);
}

TEST_CASE("rights: a user who may only read can inspect and list") {
    RedisOptions options;
    options.users = {"reader on >word %R~* resetchannels +@read +@connection +time +eval_ro"};
    auto server = RedisServer::start(options);
    Rig rig(server.url()), reader("redis://reader:word@127.0.0.1:" + std::to_string(server.port()));
    Try t("a"), w("a", 10s, true);
    REQUIRE(rig.attempt(t).granted());
    REQUIRE(rig.attempt(w).busy());
    const auto seen = reader.inspect("a");
    INFO(reader.detail);
    REQUIRE(seen.has_value());
    CHECK(seen->holders.at(0).owner == t.owner);
    CHECK(seen->waiters.at(0).owner == w.owner);
    CHECK(reader.list("").value() == std::vector<std::string>{"a"});
    CHECK(reader.break_lock("a").error() == errc::denied);
    // One who has no right to EVAL_RO, and a server that has not got it.
    RedisOptions old;
    old.users = {"app on >word ~* &* +@all -eval_ro"};
    old.config = {"rename-command EVAL_RO \"\""};
    old.users = {};
    auto older = RedisServer::start(old);
    Rig at_older(older.url());
    CHECK(at_older.inspect("a").has_value());
    server.cli({"ACL", "SETUSER", "app", "on", ">word", "~*", "&*", "+@all", "-eval_ro"});
    Rig app("redis://app:word@127.0.0.1:" + std::to_string(server.port()));
    CHECK(app.inspect("a").has_value());
}

TEST_CASE("rights: a password that crosses the network in clear is remarked on") {
    const auto warned = [](const std::string& url, const std::string& query = {}) {
        const Rig rig(url, query);  // connects to nothing
        return rig.events.warnings;
    };
    CHECK(warned("redis://:word@127.0.0.1").empty());
    CHECK(warned("redis://:word@localhost").empty());
    CHECK(warned("redis://:word@[::1]").empty());
    CHECK(warned("redis://cache.example").empty());
    CHECK(warned("rediss://:word@cache.example").empty());
    const auto clear = warned("redis://:word@cache.example");
    REQUIRE(clear.size() == 1);
    CHECK_THAT(clear[0], ContainsSubstring("rediss://"));
    CHECK(clear[0].find("word@") == std::string::npos);
    const auto anybody = warned("rediss://cache.example", "tls_verify=no");
    REQUIRE(anybody.size() == 1);
    CHECK_THAT(anybody[0], ContainsSubstring("tls_verify"));

    CHECK(warned("rediss+sentinel://s.example/m", "sentinel_password_env=WORD").empty());
    const auto asked = [&](const std::string& url, const std::string& query, const char* remedy) {
        const auto words = warned(url, "sentinel_password_env=WORD" + query);
        REQUIRE(words.size() == 1);
        CHECK_THAT(words[0], ContainsSubstring("Sentinel s.example:26379: the password"));
        CHECK_THAT(words[0], ContainsSubstring(remedy));
    };
    asked("redis+sentinel://s.example/m", {}, "rediss+sentinel://");
    asked("rediss+sentinel://s.example/m", "&sentinel_tls=no", "sentinel_tls=yes");
    CHECK(warned("redis+cluster://:word@127.0.0.1,localhost").empty());
    for (const char* hosts : {"cache.example", "127.0.0.1,cache.example,other.example"}) {
        const auto cluster = warned(std::string("redis+cluster://:word@") + hosts);
        REQUIRE(cluster.size() == 1);
        CHECK_THAT(cluster[0],
                   ContainsSubstring("cache.example") && ContainsSubstring("rediss+cluster://"));
    }
}
