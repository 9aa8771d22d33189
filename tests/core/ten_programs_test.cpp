// Ten programs, each as its user would write it: what the interface of the lock family was reviewed
// with.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "catch.hpp"

namespace asio = boost::asio;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using namespace std::chrono_literals;

namespace {

hf::Client open_program() {
    static std::atomic<int> number{0};
    return hf::Client::open("memory:programs" + std::to_string(++number)).value();
}

template <class Work>
void in_threads(int n, Work work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i)
        threads.emplace_back([&work, i] { work(i); });
    for (auto& t : threads)
        t.join();
}

}  // namespace

TEST_CASE("program 1: a nightly job runs once, and repairs after one that failed", "[programs]") {
    auto client = open_program();
    std::vector<std::string> log;
    const auto nightly = [&](bool fails) {
        auto lock = client.make_lock("nightly").value();
        auto lease = lock->try_acquire();
        if (!lease && lease.error() == errc::contended) return log.emplace_back("busy");
        if (lease.value().previous_holder() == hf::PreviousHolder::abandoned)
            log.emplace_back("repair");
        CHECK(client.make_lock("nightly").value()->try_acquire().error() == errc::contended);
        lease->release(fails ? hf::Outcome::abandoned : hf::Outcome::done);
        return log.emplace_back("ran");
    };
    auto other = client.make_lock("nightly").value()->try_acquire().value();
    nightly(false);
    other.release();
    nightly(true);
    nightly(false);
    CHECK(log == std::vector<std::string>{"busy", "ran", "repair", "ran"});
}

TEST_CASE("program 2: a table that many read and few write", "[programs]") {
    auto client = open_program();
    hf::shared_mutex m{client.make_lock("prices", {.kind = hf::Kind::shared_mutex})};
    int one = 0, two = 0;
    std::atomic<int> torn{0};
    in_threads(4, [&](int i) {
        for (int round = 0; round < 25; ++round) {
            if (i == 0) {
                const std::unique_lock writing(m);
                ++one, ++two;
            } else {
                const std::shared_lock reading(m);
                if (one != two) ++torn;
            }
        }
    });
    CHECK(torn == 0);
    CHECK(one == 25);
}

TEST_CASE("program 3: an index is rebuilt by one, who then reads on among the others",
          "[programs]") {
    auto client = open_program();
    hf::FencedResource index;
    auto lock = client.make_lock("index", {.kind = hf::Kind::shared_mutex}).value();
    auto writer = lock->acquire({.wait = 5s}).value();
    int built = 0, seen = 0;
    CHECK(index.write(writer.fencing_token(), [&] { built = 1; }));
    REQUIRE(writer.downgrade().has_value());
    auto reader = lock->try_acquire_shared().value();
    CHECK(index.read(reader.fencing_token(), [&] { seen = built; }));
    CHECK(index.read(writer.fencing_token(), [&] { seen += built; }));
    CHECK(seen == 2);
}

TEST_CASE("program 4: five licences for eight workers", "[programs]") {
    auto client = open_program();
    hf::counting_semaphore licences{
        client.make_lock("licences", {.kind = hf::Kind::semaphore, .limit = 5})};
    std::atomic<int> now{0}, most{0};
    in_threads(8, [&](int) {
        for (int i = 0; i < 10; ++i) {
            licences.acquire();
            const int seen = ++now;
            for (int before = most; seen > before && !most.compare_exchange_weak(before, seen);) {
            }
            --now;
            licences.release();
        }
    });
    CHECK(most <= 5);
    CHECK(licences.held() == 0);
}

TEST_CASE("program 5: jobs of different sizes share a machine", "[programs]") {
    auto client = open_program();
    auto memory = client.make_lock("gigabytes", {.kind = hf::Kind::semaphore, .limit = 16}).value();
    std::atomic<std::uint32_t> used{0}, most{0};
    in_threads(6, [&](int i) {
        const std::uint32_t size = i % 2 == 0 ? 10 : 3;
        for (int n = 0; n < 5; ++n) {
            auto lease = memory->acquire({.wait = 60s, .permits = size});
            if (!lease) return;
            const std::uint32_t seen = used += size;
            if (seen > most) most = seen;
            used -= size;
        }
    });
    CHECK(most >= 10);
    CHECK(most <= 16);
    CHECK(client.inspect("gigabytes")->waiters.empty());
}

namespace {

asio::awaitable<void> transfer(hf::Lock& from, hf::Lock& to, int& a, int& b) {
    std::vector<hf::Part> both{from, to};
    const hf::AcquireAllOptions options{.wait = 60s};
    hf::LeaseSet set =
        co_await hf::async_acquire_all(std::move(both), options, asio::use_awaitable);
    --a, ++b;
    co_await set.async_release(asio::use_awaitable);
}

}  // namespace

TEST_CASE("program 6: transfers between accounts, in both directions at once", "[programs]") {
    auto client = open_program();
    auto x = client.make_lock("account/x").value(), y = client.make_lock("account/y").value();
    int of_x = 0, of_y = 0;
    asio::io_context loop;
    for (int i = 0; i < 50; ++i) {
        asio::co_spawn(loop, transfer(*x, *y, of_x, of_y), asio::detached);
        asio::co_spawn(loop, transfer(*y, *x, of_y, of_x), asio::detached);
    }
    loop.run();
    CHECK(of_x == 0);
    CHECK(of_y == 0);
    CHECK(client.stats().held == 0);
}

TEST_CASE("program 7: a request's handlers call each other and each takes the lock", "[programs]") {
    auto client = open_program();
    hf::Reentrant<int> orders{client.make_lock("order/42")};
    int changes = 0;
    const auto change = [&](int request) {
        auto lease = orders.acquire(request, {.wait = 60s}).value();
        ++changes;
        return lease.fencing_token();
    };
    in_threads(3, [&](int request) {
        for (int i = 0; i < 10; ++i) {
            auto lease = orders.acquire(request, {.wait = 60s}).value();
            if (change(request) == lease.fencing_token()) change(request);
        }
    });
    CHECK(changes == 60);
}

TEST_CASE("program 8: a recursive walk locks what it has locked already", "[programs]") {
    auto client = open_program();
    hf::recursive_mutex tree{client.make_lock("tree")};
    struct Walk {
        hf::recursive_mutex& m;
        int operator()(int depth) const {
            const std::lock_guard hold(m);
            return depth == 0 ? 1 : (*this)(depth - 1) + (*this)(depth - 1);
        }
    };
    CHECK(Walk{tree}(5) == 32);
    CHECK(client.stats().acquired == 1);
}

TEST_CASE("program 9: one of three schedulers leads, and another one when it is gone",
          "[programs]") {
    auto client = open_program();
    std::mutex mutex;
    std::map<std::string, std::uint64_t> terms;
    in_threads(3, [&](int i) {
        auto me = hf::Election::make(client, "scheduler").value();
        const std::string address = "10.0.0." + std::to_string(i);
        auto term = me.campaign(address, {.wait = 60s});
        if (!term) return;
        const auto seen = me.leader().value();
        const std::lock_guard hold(mutex);
        if (seen && seen->value == address) terms[address] = term->fencing_token().value;
    });
    REQUIRE(terms.size() == 3);
    CHECK_FALSE(hf::Election::make(client, "scheduler").value().leader()->has_value());
}

TEST_CASE("program 10: a long job lets an urgent one through when it is asked", "[programs]") {
    auto client = open_program();
    auto lock = client.make_lock("printer", {.ttl = 600ms}).value();
    std::atomic<int> pages{0};
    std::thread job([&] {
        auto lease = lock->acquire().value();
        while (lease.valid() && !lease.release_requested().stop_requested())
            ++pages;
        lease.release(hf::Outcome::abandoned);
    });
    lab::wait_until([&] { return pages > 0; }, 10s, "it prints");
    CHECK(client.request_release("printer")->size() == 1);
    auto urgent = lock->acquire({.wait = 60s}).value();
    CHECK(urgent.previous_holder() == hf::PreviousHolder::abandoned);
    job.join();
}
