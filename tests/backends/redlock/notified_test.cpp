// Waiters that the nodes notify, at real nodes, and those that they cannot.
#include <atomic>
#include <iostream>

#include "five.hpp"

using namespace redlock_tests;

TEST_CASE("notified: a hand-off among a hundred waiters costs few requests", "[notified]") {
    constexpr int n = 100;
    Five five;
    const auto holder = open(five.url());
    auto a = open(five.url()), b = open(five.url());
    std::atomic<int> served{0};
    auto lease = hold(*lock_of(holder, "name", {.ttl = 30s}), 20s);
    for (int i = 0; i < n; ++i)
        lock_of(i % 2 == 0 ? a : b, "name")
            ->async_acquire({.wait = 60s}, [&](hf::error_code ec, hf::Lease l) {
                if (!ec) ++served;
                l.release();
            });
    lab::wait_until(
        [&] {
            const auto marks = five[0].cli({"ZCARD", "{name}:hf:m"}).integer;
            return marks == n && five[4].cli({"ZCARD", "{name}:hf:l"}).integer == n;
        },
        cap(30s), "all have left their marks");
    const auto requests = [&] { return a.stats().requests + b.stats().requests; };
    const auto before = requests();
    const auto start = now();
    lease.release();
    lab::wait_until([&] { return served == n; }, cap(30s), "all were served");
    const double each = static_cast<double>(requests() - before) / n;
    std::cout << "redlock hand-off: " << each << " requests, "
              << static_cast<double>(ms(now() - start)) / n << " ms\n";
    CHECK(each <= 20);
}

TEST_CASE("notified: where the nodes refuse subscriptions, waiters poll", "[notified]") {
    Five three(false, {}, 3);
    for (std::size_t i = 0; i < 3; ++i)
        three[i].cli({"ACL", "SETUSER", "default", "-subscribe"});
    const auto holder = open(three.url()), other = open(three.url());
    auto lease = hold(*lock_of(holder, "name"), 20s);
    std::atomic<bool> granted{false};
    lock_of(other, "name")->async_acquire({.wait = 30s}, [&](hf::error_code ec, hf::Lease l) {
        granted = !ec;
        l.release();
    });
    lab::wait_until([&] { return other.stats().attempts >= 3; }, 20s, "it polls");
    CHECK(three[0].cli({"EXISTS", "{name}:hf:m"}).integer == 0);  // as a mutex does that polls
    lease.release();
    lab::wait_until([&] { return granted.load(); }, cap(10s), "granted");
}
