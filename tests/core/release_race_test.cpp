// A release by one thread at the very moment the engine schedules the same lease, one while its
// renewal is under way, and one that has to wait for the engine.
#include <future>
#include <iostream>
#include <random>
#include <thread>

#include "catch.hpp"
#include "scripted.hpp"
#include "trial.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;
using holdfast::lab::wait_until;

namespace {

constexpr hf::milliseconds short_ttl{120};

/// Holds a few leases, and releases each about when its renewal falls due; the number that failed.
int release_at_renewal(const std::vector<std::unique_ptr<hf::Lock>>& locks, std::mt19937& random) {
    int wrong = 0;
    std::vector<std::pair<hf::Lease, hf::boot_clock::time_point>> held;
    for (const auto& lock : locks) {
        const auto due = hf::boot_clock::now() + short_ttl / 3;
        auto lease = lock->try_acquire();
        if (!lease) return ++wrong;
        held.emplace_back(*std::move(lease), due);
    }
    for (auto& [lease, due] : held) {
        const auto moment =
            due + std::chrono::microseconds(std::uniform_int_distribution(-100, 300)(random));
        while (hf::boot_clock::now() < moment) {
        }
        auto last = std::move(lease);  // and dies at once
        const auto answer = last.release();
        // A thread that the machine kept waiting for longer than the ttl has lost it rightly.
        const bool expired = answer == hf::ReleaseResult::already_expired || last.lost_reason();
        if (answer != hf::ReleaseResult::released && !expired) ++wrong;
    }
    return wrong;
}

}  // namespace

// The scheduled set is intrusive: a lease that died while it was in it would be a wild pointer, and
// Boost's own assertion says so.
TEST_CASE("a lease may be released while its renewal is being scheduled", "[core]") {
    const auto seed = std::random_device{}();
    std::cout << "seed " << seed << '\n';
    const auto client = hf::Client::open("memory:").value();
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned t = 0; t < 3; ++t) {
        std::vector<std::unique_ptr<hf::Lock>> locks;
        for (int n = 0; n < 40; ++n)
            locks.push_back(client
                                .make_lock("race/" + std::to_string(t) + "/" + std::to_string(n),
                                           {.ttl = short_ttl})
                                .value());
        threads.emplace_back([&wrong, locks = std::move(locks), seed, t] {
            std::mt19937 random(seed + t);
            const auto end = hf::boot_clock::now() + 3s;
            while (hf::boot_clock::now() < end)
                wrong += release_at_renewal(locks, random);
        });
    }
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    CHECK(client.stats().renewals > 0);
}

TEST_CASE("a release has the time of a request from the moment it is sent", "[core]") {
    const auto server = std::make_shared<scripted::Server>();
    std::atomic<bool> go{false};
    server->release_takes = 50ms;
    server->attempt = [&](scripted::spi::Attempt& a) {
        if (a.name == "slow") wait_until([&] { return go.load(); }, 30s, "go");
        scripted::Server::grants(a);
    };
    const auto client = scripted::open(server, "ttl=60s&request_timeout=2s");
    auto lease = client.make_lock("x").value()->acquire().value();
    client.make_lock("slow").value()->async_acquire({}, [](hf::error_code, hf::Lease) {});
    wait_until([&] { return server->attempts == 2; }, 10s, "the engine stands still");
    std::promise<hf::ReleaseResult> told;
    lease.async_release([&](hf::error_code, hf::ReleaseResult r) { told.set_value(r); });
    const auto due = hf::boot_clock::now() + 2s;
    wait_until([&] { return hf::boot_clock::now() > due; }, 30s, "it has waited for that long");
    go = true;
    CHECK(told.get_future().get() == hf::ReleaseResult::released);
}

TEST_CASE("a renewal that is answered after the release revives nothing", "[core]") {
    test_support::Trial& trial = test_support::this_trial();
    const bool lane = GENERATE(false, true);
    INFO((lane ? "released on a lane" : "released on the engine"));
    const auto server = std::make_shared<scripted::Server>();
    server->has_lane = lane;
    server->renew_takes = 1s;
    const auto client = scripted::open(server, "ttl=60s&request_timeout=10s");
    auto lease = client.make_lock("x").value()->acquire().value();
    std::promise<hf::error_code> renewed;
    lease.async_renew([&](hf::error_code ec) { renewed.set_value(ec); });
    holdfast::lab::wait_until([&] { return server->renewals == 1; }, 10s, "a renewal is under way");
    auto answer = renewed.get_future();
    CHECK(lease.release() == hf::ReleaseResult::released);
    const bool was_first = answer.wait_for(0s) == std::future_status::timeout;
    if (!trial.holds(was_first, 1s, "the release is answered before the renewal")) return;
    CHECK(lease.state() == hf::LeaseState::released);
    CHECK(answer.get() == hf::errc::not_held);
    CHECK(lease.state() == hf::LeaseState::released);
    CHECK_FALSE(lease.valid());
    CHECK_FALSE(lease.lost().stop_requested());
    const auto stats = client.stats();
    CHECK(stats.held == 0);
    CHECK(stats.released == 1);
    CHECK(stats.renewals == 0);
    CHECK(server->renewals == 1);
    CHECK(server->releases == 1);
}
