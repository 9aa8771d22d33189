// Many waiters, many leases, few threads, few requests.
#include <iostream>
#include <thread>

#include "suite.hpp"

using namespace suite;

namespace {

/// One lock that `crowd` wait for, and as many leases, in one client.
void wait_and_hold(const std::uint64_t crowd) {
    Trial& trial = this_trial();
    const auto base = threads_now();
    const auto holder_client = open("ttl=60s");
    const auto name = fresh_name("many");
    auto holder = hold(*lock_of(holder_client, name));
    const auto alone = threads_now() - base;  // the holder's own engine, and what it started
    std::atomic<std::uint64_t> granted{0}, ended{0}, wrong{0};
    std::mutex mutex;
    std::vector<hf::Lease> leases;
    std::size_t most = 0;
    {
        const auto client = open("ttl=60s&request_timeout=30s");
        const auto lock = lock_of(client, name);
        for (std::uint64_t i = 0; i < crowd; ++i) {
            lock->async_acquire({.wait = 600s}, [&](hf::error_code ec, hf::Lease) {
                if (ec == errc::closed) ++ended;
            });
            const auto own = lock_of(client, name + "/" + std::to_string(i));
            own->async_acquire({.wait = 300s}, [&](hf::error_code ec, hf::Lease lease) {
                if (ec) ++wrong;
                const std::lock_guard hold_it(mutex);
                leases.push_back(std::move(lease));
                ++granted;
            });
        }
        const bool all = lab::reached(
            [&] {
                most = std::max(most, threads_now() - base - alone);
                return granted == crowd && client.stats().waiting == crowd;
            },
            cap(120s));
        INFO(granted << " granted, " << client.stats().waiting << " wait, " << wrong << " failed");
        CHECK(all);
        CHECK(wrong == 0);
        std::cout << backend().name() << ": " << crowd << " waiters and " << crowd << " leases on "
                  << most << " threads\n";
        // Callbacks that begin none of the others for so long look blocked, and get a fourth
        // thread.
        trial.holds(most <= 4, 40ms, "at most four threads");
        for (const auto& lease : leases)
            REQUIRE(lease.valid());
        leases.clear();
        lab::wait_until([&] { return client.stats().released >= crowd; }, cap(60s),
                        "all are released");
    }
    lab::wait_until([&] { return ended == crowd; }, cap(30s), "closing ends every wait");
    holder.release();
    // A server that still gives back ten thousand of them may not answer in time. And what close()
    // could not say in its second is said by the ttl of 60 s: a ZooKeeper session whose end is
    // stuck behind ten thousand other requests lasts so long.
    std::string left;
    const bool free = lab::reached(
        [&] {
            const auto names = holder_client.list(name);
            left = names ? std::to_string(names->size()) + " are held" : names.error().message();
            return names && names->empty();
        },
        60s + cap(20s));
    INFO(left);
    CHECK(free);
}

}  // namespace

TEST_CASE("grants are first come, first served, where that is declared", "[fifo][races]") {
    if (!has(Capability::fifo)) return;  // matrix.cpp: nobody is shown in a line there
    constexpr int n = 30;
    const auto name = fresh_name("fifo");
    // Handlers use these until the client is closed.
    std::mutex mutex;
    std::vector<int> order;
    std::atomic<int> done{0};
    const auto client = open();
    const auto lock = lock_of(client, name);
    auto holder = hold(*lock);
    for (int i = 0; i < n; ++i) {
        lock->async_acquire({.wait = 60s}, [&, i](hf::error_code ec, hf::Lease lease) {
            {
                const std::lock_guard hold_it(mutex);
                order.push_back(ec ? -1 : i);
            }
            lease.release();
            ++done;
        });
        lab::wait_until([&] { return waiters_of(name) == static_cast<std::size_t>(i) + 1; }, 20s,
                        "in line");
    }
    holder.release();
    lab::wait_until([&] { return done == n; }, cap(30s), "all are served");
    std::vector<int> expected(n);
    for (int i = 0; i < n; ++i)
        expected[static_cast<std::size_t>(i)] = i;
    CHECK(order == expected);
    require_clean(name);
}

TEST_CASE("a hundred idle waiters cost few requests, where waiting is notified", "[notified]") {
    const auto name = fresh_name("idle");
    auto holder = hold(*lock_of(open(), name, {.ttl = 30s}));
    std::atomic<int> ended{0}, closed{0};
    // A busy machine answers a hundred late, and none of them is to end for that.
    auto client = open("ttl=60s&request_timeout=20s");
    const auto lock = lock_of(client, name);
    constexpr int n = 100;
    for (int i = 0; i < n; ++i)
        lock->async_acquire({.wait = 180s}, [&](hf::error_code ec, hf::Lease) {
            ++ended;
            if (ec == errc::closed) ++closed;
        });
    lab::wait_until([&] { return client.stats().attempts >= n; }, 60s, "all have asked");
    const auto in_line = [&] {
        return has(Capability::fifo) ? waiters_of(name) == n
                                     : backend().unseen_waiters(name).value_or(n) == n;
    };
    lab::wait_until([&] { return ended != 0 || in_line(); }, 60s, "all are in line");
    REQUIRE(ended == 0);
    const auto before = client.stats().requests;
    const auto start = now();
    CHECK(lab::stays_true([&] { return ended == 0; }, 2500ms));
    const double seconds = static_cast<double>(ms(now() - start)) / 1000;
    const double each = static_cast<double>(client.stats().requests - before) / n / seconds;
    std::cout << backend().name() << ": " << each << " requests per idle waiter and second\n";
    if (has(Capability::notified)) CHECK(each <= 0.2);
    client.close();
    lab::wait_until([&] { return ended == n; }, cap(10s), "all have ended");
    CHECK(closed == n);
    holder.release();
    require_clean(name);
}

TEST_CASE("a thousand waiters and leases need at most four threads", "[scale]") {
    wait_and_hold(1'000);
}

TEST_CASE("ten thousand waiters and leases need at most four threads", "[.][long]") {
    wait_and_hold(10'000);
}
