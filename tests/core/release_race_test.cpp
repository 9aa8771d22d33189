// A release by one thread at the very moment the engine schedules the same lease.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <random>
#include <thread>

#include "../support/catch.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

constexpr hf::milliseconds ttl{120};

/// Holds a few leases, and releases each about when its renewal falls due; the number that failed.
int release_at_renewal(const std::vector<std::unique_ptr<hf::Lock>>& locks, std::mt19937& random) {
    int wrong = 0;
    std::vector<std::pair<hf::Lease, hf::boot_clock::time_point>> held;
    for (const auto& lock : locks) {
        const auto due = hf::boot_clock::now() + ttl / 3;
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
            locks.push_back(
                client.lock("race/" + std::to_string(t) + "/" + std::to_string(n), {.ttl = ttl})
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
