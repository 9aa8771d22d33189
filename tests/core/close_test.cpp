// Closing tells everybody who waits, however little time it has.
#include <boost/asio/bind_executor.hpp>
#include <future>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "../support/cap.hpp"
#include "../support/catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int many = test_support::instrumented ? 20'000 : 50'000;

/// An executor that throws away what it is given, as one that was shut down may.
struct Careless {
    template <class F>
    void execute(F&&) const noexcept {}
    bool operator==(const Careless&) const noexcept { return true; }
    bool operator!=(const Careless&) const noexcept { return false; }
};

}  // namespace

TEST_CASE("closing tells everybody who waits, however short its grace", "[core]") {
    std::atomic<int> told{0};
    {
        const auto client = hf::Client::open("memory:", {.close_grace = 0ms}).value();
        const auto lock = client.make_lock("one").value();
        auto holder = lock->acquire().value();
        for (int i = 0; i < many; ++i)
            lock->async_acquire({.wait = 600s}, [&](hf::error_code, hf::Lease) {
                ++told;  // closed, or granted meanwhile
            });
    }
    CHECK(holdfast::lab::reached([&] { return told == many; }, 30s));
    CHECK(told == many);
}

// The machine may stand still while a backend says its last words, or these take long.
TEST_CASE("a client goes, with its connections, however long its backend takes to close",
          "[core]") {
    const auto server = std::make_shared<scripted::Server>();
    for (const auto takes : {300ms, 1500ms}) {
        INFO(takes.count() << " ms");
        server->close_takes = takes;
        {
            const auto client = scripted::open(server);
            CHECK(client.make_lock("name").value()->acquire().has_value());
        }
        CHECK(holdfast::lab::reached([&] { return server->events == nullptr; }, 30s));
    }
}

// As SQLite's, whose thread may be in a slow disk.
TEST_CASE("a question that is under way when its client closes is answered", "[core]") {
    const auto server = std::make_shared<scripted::Server>();
    server->survey_takes = 300ms;
    std::promise<hf::error_code> answered;
    {
        const auto client = scripted::open(server);
        client.async_inspect("name", nullptr, [&](hf::error_code ec, const hf::Inspection&) {
            answered.set_value(ec);
        });
        holdfast::lab::wait_until([&] { return server->surveys == 1; }, 10s, "it is asked");
    }
    auto told = answered.get_future();
    REQUIRE(told.wait_for(30s) == std::future_status::ready);
    CHECK(holdfast::lab::reached([&] { return server->events == nullptr; }, 30s));
}

TEST_CASE("a client may wait for its releases for ever", "[core]") {
    const auto server = std::make_shared<scripted::Server>();
    server->release_takes = 100ms;
    const auto start = hf::boot_clock::now();
    {
        const auto client = scripted::open(server, {}, hf::forever);
        auto lease = client.make_lock("name").value()->acquire().value();
        lease.async_release(hf::Outcome::done, [](hf::error_code, hf::ReleaseResult) {});
    }
    CHECK(hf::boot_clock::now() - start >= 100ms);
}

// A waiter is granted by the engine thread; when its caller lets go of everything at once, the
// client must be closed by him all the same, who then finds the lock free.
TEST_CASE("a client that goes right after its lease has given it back", "[core]") {
    const auto other = hf::Client::open("memory:close-test").value();
    const auto first = other.make_lock("name").value();
    for (int i = 0; i < 300; ++i) {
        INFO("round " << i);
        auto held = first->acquire({.wait = 0ms});
        REQUIRE(held.has_value());
        {
            const auto client = hf::Client::open("memory:close-test").value();
            const auto lock = client.make_lock("name").value();
            std::thread frees([&] {
                holdfast::lab::wait_until([&] { return client.stats().waiting == 1; }, 10s,
                                          "waits");
                held->release();
            });
            const bool got = lock->acquire({.wait = 30s}).has_value();
            frees.join();
            REQUIRE(got);
        }
    }
}

TEST_CASE("a client whose last owner is a handler that dies unrun closes itself", "[core]") {
    const auto other = hf::Client::open("memory:close-test").value();
    auto held = other.make_lock("mine").value()->acquire().value();
    {
        auto client = std::make_shared<hf::Client>(hf::Client::open("memory:close-test").value());
        const auto lock = client->make_lock("yours").value();
        auto lease = std::make_shared<hf::Lease>(lock->acquire().value());
        const auto waits = client->make_lock("mine").value();
        auto handler = [client, lease](hf::error_code, hf::Lease) {};
        waits->async_acquire({.wait = 600s}, boost::asio::bind_executor(Careless(), handler));
        client.reset();
        lease.reset();
    }
    held.release();
    CHECK(holdfast::lab::reached(
        [&] { return other.make_lock("yours").value()->try_acquire().has_value(); }, 10s));
}
