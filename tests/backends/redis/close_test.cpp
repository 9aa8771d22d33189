// What close() takes back: a grant whose answer was lost.
#include <thread>

#include "catch.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::lab::Direction;
namespace lab = holdfast::lab;

TEST_CASE("close: a grant whose answer is lost is given back") {
    const bool by_lane = GENERATE(false, true);
    const std::string mode = GENERATE("mode=fenced", "mode=plain");
    INFO(mode << (by_lane ? " by lane" : " by the engine"));
    auto server = RedisServer::start();
    lab::Proxy proxy(server.port());
    auto client = holdfast::Client::open("redis://127.0.0.1:" + std::to_string(proxy.port()) +
                                         "?ttl=60s&request_timeout=3s&" + mode)
                      .value();
    const auto lock = client.make_lock("a").value();
    const auto warm = client.make_lock("b").value();
    // The engine is connected, and so is a lane.
    lab::wait_until([&] { return warm->acquire({.wait = 5s}).has_value(); }, 10s, "by lane");
    std::atomic<bool> done{false};
    warm->async_acquire({.wait = 5s}, [&](holdfast::error_code, holdfast::Lease) { done = true; });
    lab::wait_until([&] { return done.load(); }, 10s, "by the engine");
    lab::wait_until(
        [&] {
            return server.cli({"EXISTS", "b"}).integer == 0;
        },
        10s, "both are given back");
    // It does not know the script that gives back, and nobody will hear so.
    server.cli({"SCRIPT", "FLUSH"});
    const auto held_on = warm->acquire({.wait = 5s});
    REQUIRE(held_on.has_value());
    proxy.swallow(Direction::to_client);
    std::thread blocked;
    if (by_lane)
        blocked = std::thread([&] { (void)lock->try_acquire(); });
    else
        lock->async_acquire({.wait = 30s}, [](holdfast::error_code, holdfast::Lease) {});
    const auto held = [&] { return server.cli({"EXISTS", "a"}).integer == 1; };
    lab::wait_until(held, 10s, "the server has granted it");
    client.close();
    CHECK(lab::reached([&] { return !held(); }, 1s));
    if (blocked.joinable()) blocked.join();
}
