// Members whose answers are damaged at random.
#include <array>
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <iostream>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "cap.hpp"
#include "catch.hpp"
#include "fake_member.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using holdfast::test::FakeCluster;
using holdfast::test::FakeMember;
using namespace std::chrono_literals;

namespace {

class Damage {
public:
    explicit Damage(std::uint64_t seed) : random_(seed) {}
    std::atomic<bool> on{true};

    FakeMember::Reply done_to(FakeMember::Reply r) {
        const std::lock_guard hold(mutex_);
        if (!on || below(3) != 0) return r;
        if (below(10) == 0) r.status = std::array{0, 2, 5, 13, 14, 99}.at(below(6));
        if (below(20) == 0) r.http = std::array{"200", "404", "500", "503"}.at(below(4));
        for (std::size_t times = 1 + below(3); times > 0 && !r.body.empty(); --times) {
            const std::size_t at = below(r.body.size()), length = below(r.body.size() - at) + 1;
            switch (below(5)) {
                case 0:
                    r.body[at] = static_cast<char>(below(256));
                    break;
                case 1:
                    r.body.erase(at, length);
                    break;
                case 2:
                    r.body.insert(at, r.body.substr(at, length));
                    break;
                case 3:
                    r.body.insert(at, std::array{"\x08", "\x12", "\xFF\xFF\xFF\xFF\x0F", "\x7F",
                                                 "\x80", "\x0A\x02"}
                                          .at(below(6)));
                    break;
                default:  // a bit
                    r.body[at] =
                        static_cast<char>(static_cast<unsigned char>(r.body[at]) ^ 1U << below(8));
            }
        }
        return r;
    }

private:
    std::size_t below(std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
    }

    std::mutex mutex_;
    std::mt19937_64 random_;
};

void survive(std::chrono::nanoseconds time) {
    const std::uint64_t seed = std::random_device()();
    std::cout << "etcd, damaged answers: seed " << seed << std::endl;
    CAPTURE(seed);
    const auto cluster = std::make_shared<FakeCluster>();
    cluster->id = 0;  // a made-up identity would be refused for good, as it should be
    FakeMember a(cluster), b(cluster);
    Damage damage(seed);
    for (FakeMember* m : {&a, &b})
        m->instead([&damage, m](std::string_view path,
                                const std::string& asked) -> std::optional<FakeMember::Reply> {
            if (path == holdfast::etcd::method::watch) return std::nullopt;
            return damage.done_to(m->ask(path, asked));
        });
    const auto client = hf::Client::open("etcd://" + a.host() + "," + b.host() +
                                         "?ttl=1s&request_timeout=300ms&robust=yes")
                            .value();
    std::atomic<std::int64_t> longest{0};
    std::atomic<std::uint64_t> calls{0};
    const auto timed = [&](auto call) {
        const auto begin = hf::boot_clock::now();
        (void)call();
        const std::int64_t took = (hf::boot_clock::now() - begin).count();
        for (std::int64_t known = longest; took > known;)
            if (longest.compare_exchange_weak(known, took)) break;
        ++calls;
    };
    std::vector<std::thread> threads;
    const auto until = hf::boot_clock::now() + time;
    for (const hf::Kind kind : {hf::Kind::mutex, hf::Kind::shared_mutex, hf::Kind::semaphore})
        threads.emplace_back([&, kind] {
            hf::LockOptions options;
            options.kind = kind;
            options.limit = kind == hf::Kind::semaphore ? 2 : 1;
            const std::string name = "n" + std::to_string(static_cast<int>(kind));
            const auto lock = client.make_lock(name, options).value();
            while (hf::boot_clock::now() < until) {
                timed([&] {
                    if (auto lease = lock->acquire({.wait = 100ms})) {
                        (void)lease->renew();
                        (void)lease->release();
                    }
                    return 0;
                });
                timed([&] { return client.inspect(name); });
                timed([&] { return client.list(""); });
                timed([&] { return client.break_lock(name, {.now = true}); });
            }
        });
    for (std::thread& t : threads)
        t.join();
    CHECK(calls > 20);
    CHECK(std::chrono::nanoseconds(longest) < test_support::cap(10s));
    damage.on = false;
    {
        // Nobody ends the leases here.
        const std::lock_guard hold(cluster->mutex);
        cluster->store.keys.clear();
        ++cluster->store.revision;
    }
    const auto fresh = hf::Client::open("etcd://" + a.host()).value();
    for (const hf::Client* c : {&client, &fresh})
        lab::wait_until(
            [&] {
                auto lease = c->make_lock("after").value()->acquire({.wait = 1s});
                return lease && lease->release() == hf::ReleaseResult::released;
            },
            20s, "the lock serves after that");
}

}  // namespace

TEST_CASE("answers that are damaged at random end every call, and the lock serves after that") {
    survive(1500ms);
}

TEST_CASE("answers that are damaged at random for a minute end every call", "[.][long]") {
    survive(60s);
}
