// Asynchronous calls whose caller brings an executor. Whatever happens to the caller, the executor,
// the server or the client: each call is answered once, and leaves nothing behind.
#include <boost/asio.hpp>
#include <future>
#include <iostream>
#include <list>
#include <random>
#include <thread>

#include "suite.hpp"

using namespace suite;
namespace asio = boost::asio;

namespace {

constexpr auto done = hf::Outcome::done;

/// For clients whose calls are all answered: a request outlasts a machine that stands still.
constexpr const char* unhurried = "ttl=30s&request_timeout=10s";

/// A caller with a loop that runs only when the caller runs it. Outlives the client, as executors
/// have to.
struct Caller {
    asio::io_context io;
    hf::error_code ec;
    hf::Lease lease;
    hf::ReleaseResult released = hf::ReleaseResult::unreachable;
    int told = 0;

    void start(hf::Lock& lock, const hf::AcquireOptions& options,
               asio::cancellation_slot slot = {}) {
        const auto handler = [this](hf::error_code e, hf::Lease l) {
            ec = e, lease = std::move(l);
            ++told;
        };
        lock.async_acquire(options,
                           asio::bind_cancellation_slot(slot, asio::bind_executor(io, handler)));
    }
    void start_release() {
        const auto handler = [this](hf::error_code, hf::ReleaseResult r) {
            released = r;
            ++told;
        };
        lease.async_release(done, asio::bind_executor(io, handler));
    }
    /// Runs until something more is told, or fails the test.
    void run(std::chrono::milliseconds cap = 20s) {
        const int before = told;
        io.restart();
        const auto until = now() + cap;
        while (told == before && now() < until)
            io.run_one_for(100ms);
        REQUIRE(told == before + 1);
    }
    void acquire(hf::Lock& lock) {
        start(lock, {.wait = 10s});
        run();
        INFO(ec.message());
        REQUIRE_FALSE(ec);
        REQUIRE(lease.valid());
    }
    void cycle(hf::Lock& lock) {
        acquire(lock);
        start_release();
        run();
        REQUIRE(released == hf::ReleaseResult::released);
    }
    /// As many calls as it takes for a backend to find that they are worth a connection.
    void warm(hf::Lock& lock) {
        for (int i = 0; i < 30; ++i)
            cycle(lock);
    }
};

asio::awaitable<void> many(hf::Lock& lock, int times, std::atomic<int>& held) {
    for (int i = 0; i < times; ++i) {
        hf::Lease lease = co_await lock.async_acquire({.wait = 20s}, asio::use_awaitable);
        held += lease.valid() ? 1 : 0;
        const auto answer = co_await lease.async_release(done, asio::use_awaitable);
        held -= answer == hf::ReleaseResult::released ? 0 : 1;
    }
}

}  // namespace

TEST_CASE("coroutines on every kind of executor hold and let go", "[coroutines][races]") {
    asio::io_context io;
    asio::thread_pool pool(2);
    const auto client = open(unhurried);
    const auto a = lock_of(client, fresh_name("own")), b = lock_of(client, fresh_name("own"));
    std::atomic<int> held{0};
    const auto on_io = io.get_executor();
    for (const asio::any_io_executor& where :
         {asio::any_io_executor(on_io), asio::any_io_executor(asio::make_strand(on_io)),
          asio::any_io_executor(asio::make_strand(asio::any_io_executor(on_io)))}) {
        asio::co_spawn(where, many(*a, 50, held), asio::detached);
        io.restart();
        io.run();
    }
    CHECK(held == 150);
    // Two at a time, on two threads, of two names and of one.
    asio::co_spawn(pool, many(*a, 50, held), asio::detached);
    asio::co_spawn(pool, many(*b, 50, held), asio::detached);
    asio::co_spawn(pool, many(*b, 50, held), asio::detached);
    pool.join();
    CHECK(held == 300);
    const auto stats = client.stats();
    CHECK(stats.acquired == 300);
    CHECK(stats.released == 300);
    CHECK(stats.held == 0);
    CHECK(stats.waiting == 0);
    require_clean(std::string(a->name()));
    require_clean(std::string(b->name()));
}

TEST_CASE("an executor that does not run: the lease is kept for it all the same",
          "[coroutines][T6][races]") {
    Caller caller;
    const auto client = open("ttl=3s&request_timeout=3s");
    const auto lock = lock_of(client, fresh_name("asleep"));
    caller.warm(*lock);
    const auto before = client.stats();
    caller.start(*lock, {.wait = 10s});
    // The engine takes it over, and renews.
    lab::wait_until([&] { return client.stats().renewals > before.renewals; }, 10s,
                    "it is held and renewed");
    caller.run();
    CHECK_FALSE(caller.ec);
    CHECK(caller.lease.valid());
    caller.start_release();
    lab::wait_until([&] { return client.stats().held == 0; }, 5s, "it is released");
    require_clean(std::string(lock->name()));  // without the caller's help
    caller.run();
    CHECK(client.stats().acquired == before.acquired + 1);
}

TEST_CASE("each call may come from another executor", "[coroutines][races]") {
    std::list<Caller> callers(30);
    const auto client = open(unhurried);
    const auto lock = lock_of(client, fresh_name("changing"));
    for (Caller& caller : callers)
        caller.cycle(*lock);
    CHECK(client.stats().acquired == 30);
    require_clean(std::string(lock->name()));
}

TEST_CASE("who does not wait is told at once; who waits is served in turn", "[coroutines][races]") {
    Caller caller;
    const auto client = open(unhurried);
    const auto name = fresh_name("turn");
    const auto lock = lock_of(client, name);
    caller.warm(*lock);
    const auto others = open();
    auto other = hold(*lock_of(others, name));
    caller.start(*lock, {.wait = 0ms});
    caller.run();
    CHECK(caller.ec == errc::contended);
    caller.start(*lock, {.wait = 1s});
    caller.run();
    CHECK(caller.ec == errc::timed_out);
    caller.start(*lock, {.wait = 20s});
    lab::wait_until([&] { return client.stats().waiting == 1; }, 5s, "it waits");
    other.release();
    caller.run();
    CHECK(caller.lease.valid());
    caller.lease.release();
    require_clean(name);
}

TEST_CASE("T9: a call on the caller's own loop is cancelled at any moment",
          "[coroutines][T9][races]") {
    Caller caller;
    const auto client = open(unhurried);
    const auto name = fresh_name("cancelled");
    const auto lock = lock_of(client, name);
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    int cancelled = 0, granted = 0;
    for (int i = 0; i < 150; ++i) {
        if (i % 10 == 0) caller.warm(*lock);
        asio::cancellation_signal stop;
        caller.start(*lock, {.wait = 10s}, stop.slot());
        const auto until = now() + std::chrono::microseconds(random() % 300);
        const int before = caller.told;
        while (now() < until && caller.told == before)
            caller.io.poll();
        if (caller.told == before) {
            stop.emit(asio::cancellation_type::terminal);
            caller.run();
        }
        if (caller.ec) {
            CHECK(caller.ec == errc::cancelled);
            ++cancelled;
        } else {
            CHECK(caller.lease.valid());
            caller.lease.release();
            ++granted;
        }
    }
    std::cout << backend().name() << ": own loop, seed " << seed << ": " << cancelled
              << " cancelled, " << granted << " granted\n";
    require_clean(name);
    CHECK(client.stats().waiting == 0);
}

TEST_CASE("T1: an answer that is lost to the caller's own loop", "[coroutines][T1][races]") {
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    const auto name = fresh_name("lost-answer");
    Caller first, second;
    const auto client = open_proxied("ttl=60s&request_timeout=900ms");
    const auto lock = lock_of(client, name);
    for (const bool of_release : {false, true}) {
        INFO((of_release ? "of the release" : "of the grant"));
        Caller& caller = of_release ? second : first;
        caller.warm(*lock);
        if (of_release) caller.acquire(*lock);
        const auto before = proxy->counters().swallowed_to_client;
        proxy->swallow(lab::Direction::to_client);
        if (of_release)
            caller.start_release();
        else
            caller.start(*lock, {.wait = 2s});
        caller.run();  // in spite of the silence
        CHECK(proxy->counters().swallowed_to_client > before);
        CHECK_FALSE(caller.lease.valid());
        proxy->heal();
        require_clean(name);
    }
}

TEST_CASE("a client that ends while a call is on its way tells the caller", "[coroutines][races]") {
    const auto name = fresh_name("closed");
    for (int i = 0; i < 10; ++i) {
        Caller caller;
        auto client = open(unhurried);
        const auto lock = lock_of(client, name);
        caller.warm(*lock);
        if (i % 2 == 0) {
            caller.start(*lock, {.wait = 10s});
        } else {
            caller.start(*lock, {.wait = 10s});
            caller.run();
            caller.start_release();
        }
        client.close();
        caller.run();
        if (i % 2 == 0) CHECK((caller.ec == errc::closed || !caller.ec));
        caller.lease = {};
        require_clean(name);
    }
}
