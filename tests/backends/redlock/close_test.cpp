// What close() takes back: a grant whose answers were lost, a release that only a
// majority has answered.
#include <thread>

#include "five.hpp"

using namespace redlock_tests;

TEST_CASE("close: a grant whose answers are lost is given back") {
    const bool by_lane = GENERATE(false, true);
    INFO((by_lane ? "by lane" : "by the engine"));
    Five three(false, {}, 3);
    Proxied proxies(three);
    auto client = open(proxies.url("durable=yes&ttl=60s&request_timeout=6s&node_timeout=3s"));
    const auto lock = lock_of(client, "name"), warm = lock_of(client, "warm");
    const auto at_all = [&](const std::string& name) { return three.holding(name) == 3; };
    // Both paths are connected to all nodes.
    for (const bool async : {true, false, true})
        lab::wait_until(
            [&] {
                const auto lease = acquire(*warm, async);
                return lab::reached([&] { return at_all("warm"); }, 200ms);
            },
            cap(10s), "all nodes vote");
    lab::wait_until([&] { return three.holding("warm") == 0; }, 10s, "given back");
    for (auto& proxy : proxies)
        proxy.swallow(lab::Direction::to_client);
    std::thread blocked;
    if (by_lane)
        blocked = std::thread([&] { (void)lock->try_acquire(); });
    else
        lock->async_acquire({.wait = 30s}, [](hf::error_code, hf::Lease) {});
    lab::wait_until([&] { return at_all("name"); }, 10s, "all nodes have granted it");
    client.close();
    CHECK(lab::reached([&] { return three.holding("name") == 0; }, 1s));
    if (blocked.joinable()) blocked.join();
}

TEST_CASE("close: a node that lags behind the majority gets its release") {
    const bool async = GENERATE(true, false);
    INFO((async ? "by the engine" : "by lane"));
    Five three(false, {}, 3);
    lab::Proxy slow(three[2].port());
    auto client = open("redlock://" + three.where(0) + "," + three.where(1) +
                       ",127.0.0.1:" + std::to_string(slow.port()) + "?durable=yes&ttl=60s");
    const auto lock = lock_of(client, "name");
    hf::Lease lease;
    lab::wait_until(
        [&] {
            lease = acquire(*lock, async);
            return lab::reached([&] { return three.holding("name") == 3; }, 200ms);
        },
        cap(10s), "all nodes vote");
    const auto before = slow.counters().delayed;
    slow.delay(lab::Direction::to_server, 40ms);
    if (async)
        lease = {};
    else
        CHECK(lease.release() == hf::ReleaseResult::released);
    lab::wait_until([&] { return slow.counters().delayed > before; }, 5s, "its release waits");
    client.close();
    CHECK(lab::reached([&] { return three.holding("name") == 0; }, 1s));
}
