// A forked child has copies of its parent's handles, and of mutexes that threads of the parent
// held: those stay locked for ever.
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "catch.hpp"
#include "completion.hpp"
#include "fork.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;
using test_support::Busy;
using test_support::in_child;

TEST_CASE("F6: a lease of the parent's ends in a child without waiting", "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    auto lease = client.make_lock("parent").value()->acquire().value();
    {
        const Busy others(2, [&](int n) {
            if (n == 0) return void(lease.lost());
            const auto held = client.make_lock("busy").value()->try_acquire();
        });
        for (int n = 0; n < 100; ++n) {
            INFO("child " << n);
            REQUIRE(in_child([&] { const hf::Lease dies = std::move(lease); }) == 0);
        }
    }
    CHECK(lease.valid());
    CHECK(lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("F6: a child's own client of memory: has nothing of the parent's", "[core][fork]") {
    const auto client = hf::Client::open("memory:forked").value();
    const auto lease = client.make_lock("parent").value()->acquire().value();
    const Busy others(2, [&](int n) {
        const auto held = client.make_lock("busy/" + std::to_string(n)).value()->try_acquire();
    });
    for (int n = 0; n < 50; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([] {
                    const auto own = hf::Client::open("memory:forked").value();
                    if (!own.make_lock("parent").value()->try_acquire()) ::_exit(1);
                }) == 0);
    }
}

TEST_CASE("F6: no question to a parent's lease hangs in a child", "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    auto lease = client.make_lock("parent").value()->acquire().value();
    const Busy others(2, [&](int) { (void)lease.lost(); });
    for (int n = 0; n < 50; ++n) {
        INFO("child " << n);
        // Lost to the child: it must not go on with what the lease protects.
        REQUIRE(in_child([&] {
                    if (!lease.lost().stop_requested()) ::_exit(1);
                    if (lease.lost_reason() != hf::errc::forked) ::_exit(2);
                    const auto never = [](auto...) { ::_exit(3); };
                    lease.async_lost(never);
                    lease.async_renew(never);
                    lease.async_release(hf::Outcome::done, never);
                    if (lease.release() != hf::ReleaseResult::unreachable) ::_exit(4);
                    (void)client.stats();
                }) == 0);
    }
}

TEST_CASE("F6: a mutex of the parent's is left alone in a child", "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    auto* const mutex = new hf::mutex{client.make_lock("mutex").value()};
    mutex->lock();
    {
        // They come and go at the gate.
        const Busy others(2, [&](int) { (void)mutex->try_lock_for(1ms); });
        for (int n = 0; n < 50; ++n) {
            INFO("child " << n);
            REQUIRE(in_child([&] {
                        mutex->unlock();
                        try {
                            if (mutex->try_lock()) ::_exit(1);
                            ::_exit(2);
                        } catch (const boost::system::system_error& e) {
                            if (e.code() != hf::errc::forked) ::_exit(3);
                        }
                        delete mutex;
                    }) == 0);
        }
    }
    mutex->unlock();
    delete mutex;
}

// Its handlers wait in a list with a mutex, which a thread of the parent's may have held.
TEST_CASE("a loop of the parent's is destroyed in a child without waiting", "[core][fork]") {
    auto loop = std::make_unique<boost::asio::io_context>();
    const auto work = boost::asio::make_work_guard(*loop);
    hf::CallbackPool pool([] {});
    const boost::asio::any_completion_executor where = hf::PoolExecutor(pool);
    {
        const Busy others(2, [&](int) {
            const hf::Callback<void()> waits(boost::asio::bind_executor(*loop, [] {}), where);
        });
        for (int n = 0; n < 100; ++n) {
            INFO("child " << n);
            REQUIRE(in_child([&] { loop.reset(); }) == 0);
        }
    }
}

TEST_CASE("a wait of the parent's is cancelled in a child without waiting", "[core][fork]") {
    const auto server = std::make_shared<scripted::Server>();
    server->attempt = [](scripted::spi::Attempt& a) {
        a.outcome = scripted::spi::Attempt::Busy{60s, false};
    };
    boost::asio::cancellation_signal cancel;
    const auto client = scripted::open(server);
    client.make_lock("x").value()->async_acquire(
        {}, boost::asio::bind_cancellation_slot(cancel.slot(), [](auto, const hf::Lease&) {}));
    // They keep the engine's queue busy.
    const Busy others(2, [&](int) { server->events.load()->at_risk("nobody"); });
    for (int n = 0; n < 100; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([&] { cancel.emit(boost::asio::cancellation_type::terminal); }) == 0);
    }
}

TEST_CASE("F6: nothing that stands above a lock of the parent's hangs in a child", "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    const auto a = client.make_lock("set/a").value(), b = client.make_lock("set/b").value();
    auto set = hf::acquire_all({*a, *b}).value();
    hf::Reentrant<int> again(client.make_lock("again"));
    auto held = again.acquire(1).value();
    const Busy others(2, [&](int) {
        const auto more = again.try_acquire(1);
        (void)set.lost();
    });
    for (int n = 0; n < 50; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([&] {
                    const auto never = [](auto...) { ::_exit(3); };
                    if (!set.lost().stop_requested()) ::_exit(1);
                    if (set.lost_reason() != hf::errc::forked) ::_exit(2);
                    hf::async_acquire_all({*a, *b}, {}, never);
                    again.async_acquire(1, {}, never);
                    if (hf::acquire_all({*a, *b}).error() != hf::errc::forked) ::_exit(4);
                    if (again.acquire(1).error() != hf::errc::forked) ::_exit(5);
                    if (set.release() != hf::ReleaseResult::unreachable) ::_exit(6);
                }) == 0);
    }
    CHECK(set.valid());
    CHECK(held.valid());
}
