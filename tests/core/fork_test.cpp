// A forked child has copies of its parent's handles, and of mutexes that threads of the parent
// held: those stay locked for ever.
#include <unistd.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <holdfast/lab/wait_until.hpp>

#include "catch.hpp"
#include "completion.hpp"
#include "fork.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;
using test_support::Busy;
using test_support::in_child;

TEST_CASE("a lease of the parent's ends in a child without waiting", "[core][fork]") {
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

TEST_CASE("a child's own client of memory: has nothing of the parent's", "[core][fork]") {
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

TEST_CASE("no question to a parent's lease hangs in a child", "[core][fork]") {
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

TEST_CASE("a mutex of the parent's is left alone in a child", "[core][fork]") {
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

TEST_CASE("nothing that stands above a lock of the parent's hangs in a child", "[core][fork]") {
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

TEST_CASE("a shared handle of the parent's is lost and hangs in no child", "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    auto lease = client.make_lock("shared").value()->acquire().value();
    auto more = lease.share().value();
    {
        const Busy others(2, [&](int) { const auto one = lease.share(); });
        for (int n = 0; n < 100; ++n) {
            INFO("child " << n);
            REQUIRE(in_child([&] {
                        for (const hf::Lease* handle : {&lease, &more}) {
                            if (handle->state() != hf::LeaseState::lost) ::_exit(1);
                            if (handle->valid()) ::_exit(2);
                            if (handle->share().error() != hf::errc::forked) ::_exit(3);
                        }
                        const auto never = [](auto...) { ::_exit(4); };
                        more.async_downgrade(never);
                        if (more.downgrade().error() != hf::errc::forked) ::_exit(5);
                        if (n % 2 == 0) more.async_release(never);
                        if (more.release() != hf::ReleaseResult::unreachable) ::_exit(6);
                        { const hf::Lease dies = std::move(more); }
                        const hf::Lease last = std::move(lease);
                    }) == 0);
        }
    }
    CHECK(lease.valid());
    CHECK(more.valid());
    CHECK(more.release() == hf::ReleaseResult::released);
    CHECK(lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("what has the interface of std hangs in no child, and holds nothing there",
          "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    const auto lock = [&](const char* name, const hf::LockOptions& o) {
        return client.make_lock(name, o).value();
    };
    auto* const permits =
        new hf::counting_semaphore{lock("permits", {.kind = hf::Kind::semaphore, .limit = 5})};
    auto* const book = new hf::shared_mutex{lock("book", {.kind = hf::Kind::shared_mutex})};
    auto* const again = new hf::recursive_mutex{lock("again", {})};
    auto* const owners = new hf::Reentrant<int>(lock("owners", {}));
    permits->acquire();
    book->lock_shared();
    again->lock();
    auto held = owners->acquire(1).value();
    const auto refused = [](auto call) {
        try {
            call();
            return false;
        } catch (const boost::system::system_error& e) {
            return e.code() == hf::errc::forked;
        }
    };
    {
        const Busy others(4, [&](int n) {
            if (n == 0) (void)permits->held();
            if (n == 1) (void)book->lease();
            if (n == 2) (void)again->lease();
            if (n == 3) const auto more = owners->try_acquire(1);
        });
        for (int n = 0; n < 100; ++n) {
            INFO("child " << n);
            REQUIRE(in_child([&] {
                        if (permits->held() != 0) ::_exit(1);
                        if (!refused([&] { permits->release(); })) ::_exit(2);
                        if (!refused([&] { permits->acquire(); })) ::_exit(3);
                        if (book->lease().valid() || again->lease().valid()) ::_exit(4);
                        book->unlock_shared();
                        if (!refused([&] { book->lock(); })) ::_exit(5);
                        again->unlock();
                        if (!refused([&] { again->lock(); })) ::_exit(6);
                        if (owners->owners() != 0) ::_exit(7);
                        if (held.share().error() != hf::errc::forked) ::_exit(8);
                        delete permits;
                        delete book;
                        delete again;
                        delete owners;
                        const hf::Lease dies = std::move(held);
                    }) == 0);
        }
    }
    CHECK(permits->held() == 1);
    CHECK(book->lease().valid());
    CHECK(held.valid());
    again->unlock();
    delete permits;
    delete book;
    delete again;
    delete owners;
}

TEST_CASE("calls for several locks of the parent's are cancelled in a child without waiting",
          "[core][fork]") {
    const auto client = hf::Client::open("memory:").value();
    const auto a = client.make_lock("several/a").value(), b = client.make_lock("several/b").value();
    auto in_the_way = client.make_lock("several/b").value()->acquire().value();
    hf::Reentrant<int> owners(client.make_lock("several/b"));
    boost::asio::cancellation_signal all, one;
    std::atomic<int> ended{0};
    const auto done = [&](auto, const auto&) { ++ended; };
    hf::async_acquire_all({*a, *b}, {}, boost::asio::bind_cancellation_slot(all.slot(), done));
    owners.async_acquire(1, {}, boost::asio::bind_cancellation_slot(one.slot(), done));
    auto set = hf::acquire_all({*client.make_lock("several/c").value()}).value();
    const Busy others(2, [&](int n) {
        if (n == 0) (void)set.lost_reason();
        if (n == 1) const auto more = owners.try_acquire(1);
    });
    for (int n = 0; n < 50; ++n) {
        INFO("child " << n);
        REQUIRE(in_child([&] {
                    all.emit(boost::asio::cancellation_type::terminal);
                    one.emit(boost::asio::cancellation_type::terminal);
                    const auto never = [](auto...) { ::_exit(1); };
                    set.async_lost(never);
                    set.async_release(never);
                    if (set.state() != hf::LeaseState::lost) ::_exit(2);
                }) == 0);
    }
    all.emit(boost::asio::cancellation_type::terminal);
    one.emit(boost::asio::cancellation_type::terminal);
    // The signals outlive the calls.
    REQUIRE(holdfast::lab::reached([&] { return ended == 2; }));
}
