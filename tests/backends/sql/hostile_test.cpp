// A server's answers, changed at random on their way.
#include "hostile.hpp"

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

using namespace sql_tests;

TEST_CASE("answers that are mangled on the way end in errors, and no crash", "[.][mangled]") {
    const char* given = std::getenv("HOLDFAST_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    WARN("HOLDFAST_TEST_SEED=" << seed);
    hold(open_here(), "mangled").release();
    Acceptor* proxy = nullptr;
    Acceptor made([&](Tcp::socket& s, std::size_t number) {
        mangle(*proxy, s, server().port(), std::mt19937_64(seed * 100'003 + number), 8);
    });
    proxy = &made;
    const auto until = boot_clock::now() + 50s;
    std::atomic<int> rounds{0}, granted_now{0};
    const auto call = [&](int thread) {
        while (boot_clock::now() < until) {
            const auto client = open(url_at(made, "ttl=1s&request_timeout=200ms"));
            for (int i = 0; i < 8; ++i) {
                const auto name = "mangled/" + std::to_string((thread + i) % 3);
                const hf::LockOptions kinds[] = {{},
                                                 {.kind = hf::Kind::shared_mutex},
                                                 {.kind = hf::Kind::semaphore, .limit = 3}};
                auto lease =
                    lock_of(client, name, kinds[(thread + i) % 3])->acquire({.wait = 20ms});
                if (lease) ++granted_now;
                if (lease) (void)lease->renew();
                if (lease && i % 2 == 0) (void)lease->release();
                (void)client.inspect(name);
                (void)client.list("mangled/");
                if (i == 3) (void)client.break_lock(name, {.now = true});
                if (i == 5) (void)client.request_release(name);
                if (i == 7) (void)client.probe();
                ++rounds;
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back(call, i);
    for (auto& t : threads)
        t.join();
    CHECK(rounds > 100);
    CHECK(granted_now > 10);
    WARN(rounds << " rounds, " << granted_now << " granted");
}
