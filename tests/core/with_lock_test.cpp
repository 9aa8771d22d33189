// with_lock, Election::lead and the fake server: what runs under a lock hears of its loss.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/async_with_lock.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <thread>

#include <holdfast/lab/wait_until.hpp>
#include "../support/catch.hpp"
#include "run.hpp"

namespace hf = holdfast;
namespace asio = boost::asio;
using namespace std::chrono_literals;
using hf::testing::FakeServer;
using test_support::run;

namespace {

/// How the last holder of "a" ended.
hf::PreviousHolder ended(const hf::Client& client) {
    auto lease = client.make_lock("a").value()->try_acquire().value();
    return lease.previous_holder();
}

asio::awaitable<int> never_ends() {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    co_await timer.async_wait(asio::use_awaitable);
    co_return 1;
}

asio::awaitable<int> is_always_busy() {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(1us);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

}  // namespace

TEST_CASE("with_lock returns what ran under the lock, and releases it", "[core]") {
    const FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    CHECK(hf::with_lock(*lock, [] { return 7; }).value() == 7);
    CHECK(ended(client) == hf::PreviousHolder::released);
    bool held = false;
    hf::result<void> nothing = hf::with_lock(*lock, {.wait = 5s}, [&](std::stop_token lost) {
        held = !lost.stop_requested() && client.list()->size() == 1;
    });
    CHECK(nothing.has_value());
    CHECK(held);
    CHECK(hf::with_lock(*lock, [](const hf::Lease& l) { return l.fencing_token(); }).value());
    CHECK(client.list()->empty());
}

TEST_CASE("with_lock: a failure is told to the next holder", "[core]") {
    const FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    CHECK_THROWS_AS((void)hf::with_lock(*lock, [] { throw std::runtime_error("no"); }),
                    std::runtime_error);
    holdfast::lab::wait_until([&] { return client.list()->empty(); }, 10s, "it is released");
    CHECK(ended(client) == hf::PreviousHolder::abandoned);
    const hf::result<int> failed = hf::with_lock(
        *lock, []() -> hf::result<int> { return hf::make_error_code(hf::errc::denied); });
    CHECK(failed.error() == hf::errc::denied);
    CHECK(ended(client) == hf::PreviousHolder::abandoned);
}

TEST_CASE("with_lock: busy, unreachable, lost, as a test wants it", "[core]") {
    FakeServer server;
    const auto client = server.client("ttl=1s");
    const auto lock = client.make_lock("a").value();
    const auto seven = [] { return 7; };
    server.hold("a");
    CHECK(hf::with_lock(*lock, {.wait = 0s}, seven).error() == hf::errc::contended);
    CHECK(hf::with_lock(*lock, {.wait = 20ms}, seven).error() == hf::errc::timed_out);
    server.free("a");
    CHECK(hf::with_lock(*lock, {.wait = 0s}, seven).value() == 7);

    server.unreachable();
    CHECK(hf::with_lock(*lock, {.wait = 0s}, seven).error() == hf::errc::unavailable);
    server.unreachable(false);

    server.answer_after(50ms);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(hf::with_lock(*lock, seven).value() == 7);
    CHECK(std::chrono::steady_clock::now() - begin >= 100ms);
    server.answer_after(0ms);

    bool told = false;
    const auto lost = hf::with_lock(*lock, [&](std::stop_token loss) {
        server.lose("a");
        holdfast::lab::wait_until([&] { return loss.stop_requested(); }, 10s, "it is told");
        told = true;
        return 7;
    });
    CHECK(told);
    CHECK(lost.error() == hf::errc::lost);
    CHECK(hf::with_lock(*lock, {.wait = 0s}, seven).value() == 7);
}

TEST_CASE("the fake server is silent until the lease is lost", "[core]") {
    FakeServer server;
    const auto client = server.client("ttl=300ms");
    auto lease = client.make_lock("a").value()->acquire().value();
    server.unreachable();
    holdfast::lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "it is lost");
    CHECK(lease.lost_reason() == hf::errc::lost);
    CHECK(lease.last_error().code == hf::errc::unavailable);
    server.unreachable(false);
    auto next = client.make_lock("a").value()->acquire().value();
    server.request_release("a");
    holdfast::lab::wait_until([&] { return next.release_requested().stop_requested(); }, 10s,
                              "it is asked");
    CHECK_THROWS_AS(server.hold("a"), boost::system::system_error);
    server.free("a");  // the other client does not hold it
    CHECK(next.valid());
}

TEST_CASE("a term of office ends with the function", "[core]") {
    FakeServer server;
    const auto client = server.client();
    const auto election = client.make_election("e").value();
    const auto value = election.lead("one", [&] { return election.leader().value()->value; });
    CHECK(value.value() == "one");
    CHECK_FALSE(election.leader().value());
    CHECK(election.lead("two", [&] { server.lose("e"); }).error() == hf::errc::lost);
    server.hold("e");
    CHECK(election.lead("three", {.wait = 0ms}, [] {}).error() == hf::errc::contended);
}

TEST_CASE("async_with_lock: the result, an exception, and the release", "[core]") {
    const FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    auto seven = [&]() -> asio::awaitable<int> {
        CHECK(client.list()->size() == 1);
        co_return 7;
    };
    CHECK(run(hf::async_with_lock(*lock, seven)) == 7);
    CHECK(ended(client) == hf::PreviousHolder::released);
    auto nothing = [](std::stop_token) -> asio::awaitable<void> { co_return; };
    run(hf::async_with_lock(*lock, {.wait = 5s}, nothing));
    auto throws = [](const hf::Lease& l) -> asio::awaitable<int> {
        if (l.valid()) throw std::runtime_error("no");
        co_return 1;
    };
    CHECK_THROWS_AS(run(hf::async_with_lock(*lock, throws)), std::runtime_error);
    CHECK(ended(client) == hf::PreviousHolder::abandoned);
    auto leads = [&]() -> asio::awaitable<int> { co_return 3; };
    CHECK(run(hf::async_lead(client.make_election("e").value(), "v", {}, leads)) == 3);
    CHECK(run(hf::async_lead(client.make_election("e").value(), "v", leads)) == 3);
}

TEST_CASE("async_with_lock: a loss cancels what runs under the lock", "[core]") {
    FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    std::jthread loses([&] {
        holdfast::lab::wait_until([&] { return !client.list()->empty(); }, 10s, "it is held");
        server.lose("a");
    });
    try {
        (void)run(hf::async_with_lock(*lock, [] { return never_ends(); }));
        FAIL("it ended");
    } catch (const boost::system::system_error& e) {
        CHECK(e.code() == hf::errc::lost);
    }
}

// ThreadSanitizer sees a loss that cancels from another thread than the work's.
TEST_CASE("async_with_lock: a loss ends work of many short steps, whenever it comes", "[core]") {
    FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    for (int i = 0; i < 30; ++i) {
        std::jthread loses([&] {
            holdfast::lab::wait_until([&] { return !client.list()->empty(); }, 10s, "it is held");
            server.lose("a");
        });
        CHECK_THROWS_AS(run(hf::async_with_lock(*lock, [] { return is_always_busy(); })),
                        boost::system::system_error);
    }
}

TEST_CASE("async_with_lock: the caller's cancellation ends the work and releases", "[core]") {
    const FakeServer server;
    const auto client = server.client();
    const auto lock = client.make_lock("a").value();
    asio::io_context loop;
    asio::cancellation_signal cancel;
    auto held = [&]() -> asio::awaitable<int> {
        asio::post(loop, [&] { cancel.emit(asio::cancellation_type::terminal); });
        return never_ends();
    };
    std::exception_ptr ended_with;
    asio::co_spawn(loop, hf::async_with_lock(*lock, held),
                   asio::bind_cancellation_slot(
                       cancel.slot(), [&](std::exception_ptr e, int) { ended_with = e; }));
    loop.run();
    REQUIRE(ended_with);
    CHECK_THROWS_AS(std::rethrow_exception(ended_with), boost::system::system_error);
    CHECK(client.list()->empty());
    CHECK(ended(client) == hf::PreviousHolder::abandoned);
}
