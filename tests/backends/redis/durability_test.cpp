// What `probe` and `require` say of a server's memory: class B only where nothing voids the sync of
// each write.
#include "catch.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::Capability;
using holdfast::SafetyClass;

TEST_CASE("durability: a server that does not sync each write is no class B") {
    holdfast::lab::RedisOptions options;
    options.append_only = true;
    auto server = RedisServer::start(options);
    const auto probe = [&] {
        Rig rig(server.url());
        const auto found = rig.probe();
        REQUIRE(found.has_value());
        CHECK((found->safety == SafetyClass::b) ==
              (found->has(Capability::survives_server_crash) && rig.events.warnings.empty()));
        return std::make_pair(found->safety == SafetyClass::b,
                              rig.events.warnings.empty() ? std::string() : rig.events.warnings[0]);
    };
    CHECK(probe().first);
    const auto refused = [&](const std::string& option, const std::string& bad,
                             const std::string& good, const std::string& words) {
        INFO(option);
        REQUIRE(server.cli({"CONFIG", "SET", option, bad}).is_ok());
        const auto [durable, warning] = probe();
        CHECK_FALSE(durable);
        CHECK_THAT(warning, ContainsSubstring(words));
        REQUIRE(server.cli({"CONFIG", "SET", option, good}).is_ok());
    };
    refused("no-appendfsync-on-rewrite", "yes", "no", "no-appendfsync-on-rewrite");
    refused("appendfsync", "everysec", "always", "appendfsync");
    refused("appendfsync", "no", "always", "appendfsync");
    CHECK(probe().first);
    // Locks that the server may throw away are no class B, either.
    server.cli({"CONFIG", "SET", "maxmemory", "100mb"});
    refused("maxmemory-policy", "volatile-lru", "noeviction", "maxmemory-policy");
    CHECK(probe().first);
    // Switched on while it runs: nothing counts before the first rewrite is complete.
    server.cli({"CONFIG", "SET", "appendonly", "no"});
    CHECK_FALSE(probe().first);
}

TEST_CASE("durability: an append-only file that is only just being made") {
    auto server = RedisServer::start();
    server.cli({"SET", "x", "x"});
    server.cli({"CONFIG", "SET", "appendfsync", "always"});
    REQUIRE(server.cli({"CONFIG", "SET", "rdb-key-save-delay", "10000000"}).is_ok());
    REQUIRE(server.cli({"CONFIG", "SET", "appendonly", "yes"}).is_ok());
    REQUIRE(server.info("persistence")["aof_rewrite_in_progress"] == "1");
    Rig rig(server.url());
    const auto found = rig.probe();
    REQUIRE(found.has_value());
    CHECK(found->safety == SafetyClass::d);
    CHECK_FALSE(found->has(Capability::survives_server_crash));
    CHECK_THAT(rig.events.warnings.at(0), ContainsSubstring("append-only file"));
}
