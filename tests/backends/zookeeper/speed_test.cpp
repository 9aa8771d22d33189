// Acquire and release against the bare client doing the same three steps one after the other. They
// take turns, a cycle each, so that both see the same disk and the same machine.
#include <algorithm>
#include <iostream>

#include "comparable.hpp"
#include "rig.hpp"

using namespace zookeeper_tests;

namespace {

constexpr int cycles = 1400;

using Times = std::vector<double>;  // microseconds, one for each cycle

template <class Cycle>
double timed_us(Cycle cycle) {
    const auto start = std::chrono::steady_clock::now();
    cycle();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

void floor_cycle(ZooKeeperClient& plain) {
    const auto made =
        plain.create("/holdfast/floor/_c_00000000-0000-4000-8000-000000000000-lock-",
                     "hf1 10000 0123456789012345678901.host.4711", ZOO_EPHEMERAL_SEQUENTIAL);
    const auto all = plain.children("/holdfast/floor");
    const auto gone = plain.remove(made.text);
    REQUIRE((made.rc == ZOK && all.rc == ZOK && all.children.size() == 1 && gone.rc == ZOK));
}

void our_cycle(hf::Lock& lock) {
    auto lease = lock.acquire();
    REQUIRE(lease.has_value());
    REQUIRE(lease->release() == hf::ReleaseResult::released);
}

double median(Times times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

}  // namespace

TEST_CASE("acquire and release beside the three steps of the bare client", "[speed]") {
    for (const bool synced : {true, false}) {
        auto servers =
            ZooKeeperServers::start({.config = {synced ? "forceSync=yes" : "forceSync=no"}});
        // Nobody sends its heartbeats while it is the other's turn, however slow the disk is.
        ZooKeeperClient plain(servers.connect_string(), 120'000);
        plain.create("/holdfast", "", ZOO_PERSISTENT);
        plain.create("/holdfast/floor", "", ZOO_PERSISTENT);
        const auto client = open(servers.url() + "?tick_time=100ms");
        const auto lock = lock_of(client, "speed");
        const auto both = [&](Times& floor, Times& ours) {
            for (int i = 0; i < cycles; ++i) {
                floor.push_back(timed_us([&] { floor_cycle(plain); }));
                ours.push_back(timed_us([&] { our_cycle(*lock); }));
            }
        };
        Times floor, ours;
        both(floor, ours);  // the server's compiler has to warm up
        floor.clear();
        ours.clear();
        both(floor, ours);
        const double ratio = median(ours) / median(floor);
        std::cout << (synced ? "synced" : "not synced") << ": bare client " << median(floor)
                  << " us, Holdfast " << median(ours) << " us, " << ratio << " x\n";
        // The bench has the verdict; here only a great loss is a failure, on any machine.
        if constexpr (test_support::comparable) CHECK(ratio < 1.25);
    }
}
