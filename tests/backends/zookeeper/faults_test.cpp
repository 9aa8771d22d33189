// What ends a session, or keeps one from being made, behind the client's back.
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace zookeeper_tests;
using lab::Direction;

namespace {

/// Ends a session as only its owner can, since it takes the session's password: that is in the
/// answer to its first request, `seen` on the way to the client. A server that expires it does the
/// same.
void end_session(const ZooKeeperServers& servers, std::int64_t session, const std::string& seen) {
    std::string wanted;
    for (int shift = 56; shift >= 0; shift -= 8)
        wanted += static_cast<char>(session >> shift & 0xff);
    wanted += std::string("\0\0\0\x10", 4);  // the length of what follows
    const auto at = seen.find(wanted);
    clientid_t id{};
    REQUIRE(at != seen.npos);
    REQUIRE(seen.size() >= at + wanted.size() + sizeof id.passwd);
    id.client_id = session;
    std::memcpy(id.passwd, seen.data() + at + wanted.size(), sizeof id.passwd);
    const std::string to = servers.connect_string();
    zhandle_t* zh = zookeeper_init(to.c_str(), nullptr, 10'000, &id, nullptr, 0);
    REQUIRE(zh != nullptr);
    const bool in = lab::reached(
        [&] {
            int fd = -1, interest = 0;
            timeval wait{};
            zookeeper_interest(zh, &fd, &interest, &wait);
            pollfd p{fd, static_cast<short>(POLLIN | POLLOUT), 0};
            ::poll(&p, fd < 0 ? 0 : 1, 10);
            zookeeper_process(zh, ((p.revents & POLLIN) != 0 ? ZOOKEEPER_READ : 0) |
                                      ((p.revents & POLLOUT) != 0 ? ZOOKEEPER_WRITE : 0));
            return zoo_state(zh) == ZOO_CONNECTED_STATE;
        },
        10s);
    zookeeper_close(zh);
    REQUIRE(in);
}

}  // namespace

TEST_CASE("faults: a session that is ended behind its client's back: told, and a new one serves") {
    test_support::Trial& trial = test_support::this_trial();
    lab::Proxy proxy(server().port());
    proxy.record();
    const auto client =
        open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + "?tick_time=100ms&ttl=20s");
    const auto lock = lock_of(client, "ended");
    auto lease = hold(*lock);
    ZooKeeperClient plain(server().connect_string());
    const auto nodes = plain.children("/holdfast/ended").children;
    REQUIRE(nodes.size() == 1);
    const auto session = plain.get("/holdfast/ended/" + nodes[0]).stat.ephemeralOwner;
    const auto start = now();
    // Whoever comes with a session ends the connection that had it; its client must not do the
    // same.
    proxy.refuse();
    end_session(server(), session, proxy.recorded(Direction::to_client));
    // It took effect: the node is gone, and somebody else is granted.
    lab::wait_until([&] { return plain.children("/holdfast/ended").children.empty(); }, 10s,
                    "the node is gone");
    proxy.heal();
    const auto other =
        open("zookeeper://127.0.0.1:" + std::to_string(server().port()) + "?tick_time=100ms");
    auto next = hold(*lock_of(other, "ended"));
    CHECK(next.fencing_token() > lease.fencing_token());
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "the loss is told");
    // By the servers, not by the clock.
    trial.within(now() - start, 10s, "the loss after the session's end");
    CHECK(now() < lease.valid_until() + 20s);
    CHECK_FALSE(lease.valid());
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(lease.release() != hf::ReleaseResult::released);
    CHECK(next.renew().has_value());
    CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(next.release() == hf::ReleaseResult::released);
    CHECK(hold(*lock).valid());
}

TEST_CASE("faults: no connection left: said in time, and who has one goes on") {
    test_support::Trial& trial = test_support::this_trial();
    auto servers = ZooKeeperServers::start({.config = {"forceSync=no", "maxClientCnxns=1"}});
    std::optional<hf::Client> first = open(servers.url() + "?tick_time=100ms&ttl=10s");
    const auto lock = lock_of(*first, "crowded");
    auto lease = hold(*lock);
    const auto second = open(servers.url() + "?tick_time=100ms&request_timeout=2s");
    const auto start = now();
    CHECK_THROWS(ZooKeeperClient(servers.connect_string()));  // the limit is there
    hf::Diagnostics words;
    const auto began = now();
    const auto refused = lock_of(second, "other")->acquire({.wait = 3s, .diagnostics = &words});
    trial.within(now() - began, 4500ms, "the answer");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == errc::unavailable);
    const auto renewals = first->stats().renewals;
    lab::wait_until([&] { return first->stats().renewals >= renewals + 2; }, 20s, "renewals go on");
    CHECK(lease.valid());
    CHECK(now() > start);
    CHECK(lease.release() == hf::ReleaseResult::released);
    first->close();
    // The server may not have seen yet that it has gone.
    const auto third = open(servers.url() + "?tick_time=100ms");
    lab::wait_until([&] { return lock_of(third, "other")->acquire({.wait = 1s}).has_value(); }, 20s,
                    "the place is free");
}

TEST_CASE("faults: the server's clock jumps either way, and nothing happens") {
    lab::TempDir dir;
    lab::WallClock clock(dir / "offset");
    clock.set(0ms);
    lab::ZooKeeperOptions options;
    options.config = {"forceSync=no"};
    options.hosts = {"127.0.0.1"};
    options.launchers = {{"env"}};
    for (const auto& [name, value] : clock.environment())
        options.launchers[0].push_back(name + "=" + value);
    auto servers = ZooKeeperServers::start(std::move(options));
    ZooKeeperClient plain(servers.connect_string());
    const auto client = open(servers.url() + "?tick_time=100ms&ttl=2s&request_timeout=2s");
    const auto other = open(servers.url() + "?tick_time=100ms&ttl=2s&request_timeout=2s");
    const auto lock = lock_of(client, "clock");
    auto lease = hold(*lock);
    const auto server_time = [&](const std::string& path) {
        plain.create(path, "", ZOO_PERSISTENT);
        return plain.get(path).stat.ctime;
    };
    const auto before = server_time("/before");
    for (const auto by : {3600s, -3600s}) {
        clock.set(by);
        // By the server's own word: when it made a node.
        const auto moved = server_time(by > 0s ? "/ahead" : "/back") - before;
        REQUIRE(std::abs(moved - 1000 * by.count()) < 600'000);
        const auto renewals = client.stats().renewals;
        lab::wait_until([&] { return client.stats().renewals >= renewals + 4; }, 20s,
                        "renewals go on");
        CHECK(lease.valid());
        CHECK_FALSE(lease.lost().stop_requested());
        CHECK(lock_of(other, "clock")->try_acquire().error() == errc::contended);
    }
    const auto token = lease.fencing_token();
    CHECK(lease.release() == hf::ReleaseResult::released);
    CHECK(hold(*lock_of(other, "clock")).fencing_token() > token);
}
