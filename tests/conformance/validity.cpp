// How long a lease may be believed in: from before the request that the server granted or renewed,
// by its ttl less the drift, however late the answer comes and whichever way it was asked for.
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <thread>

#include "suite.hpp"

using namespace suite;
namespace asio = boost::asio;

namespace {

constexpr auto ttl = 10s;
constexpr auto drift = 102ms;  // 1 % and 2 ms
constexpr auto late = 800ms;
/// What was counted from the answer is believed longer than this by the rest of `late`.
constexpr auto at_least = 600ms;

/// While it lives, the server's answers come `late`. Where there is no network, its writes wait for
/// somebody else's, and so are done only then.
class LateAnswers {
public:
    LateAnswers() {
        if (auto* proxy = backend().proxy()) {
            proxy->delay(lab::Direction::to_client, late);
            return;
        }
        REQUIRE(backend().pause_server());
        ending_ = std::jthread([until = now() + late] {
            (void)lab::stays_true([&] { return now() < until; }, 10s);
            backend().resume_server();
        });
    }
    LateAnswers(const LateAnswers&) = delete;
    LateAnswers& operator=(const LateAnswers&) = delete;
    ~LateAnswers() {
        if (auto* proxy = backend().proxy()) proxy->heal();
    }

private:
    std::jthread ending_;
};

/// What became of one request: when it was made, when it was answered, and what is then believed.
struct Told {
    hf::boot_clock::time_point asked, answered, valid_until;
};

void require_counted_from_the_request(const Told& told) {
    REQUIRE(told.answered - told.asked >= at_least);  // the answer did come late
    INFO("valid for " << ms(told.valid_until - told.asked) << " ms from the request");
    CHECK(told.valid_until <= told.answered - at_least + ttl - drift);
    CHECK(told.valid_until > told.answered);  // there is something left to believe in
}

/// Runs `io` until `f` has its value.
template <class T>
T run_until(asio::io_context& io, std::future<T> f) {
    const auto cap = now() + 20s;
    while (f.wait_for(0s) != std::future_status::ready && now() < cap) {
        io.restart();
        io.run_one_for(100ms);
    }
    REQUIRE(f.wait_for(0s) == std::future_status::ready);
    return f.get();
}

}  // namespace

TEST_CASE("a late answer: validity counts from the request, in every way to ask",
          "[basics][validity]") {
    asio::io_context io;  // outlives the client, as executors have to
    const bool proxied = backend().proxy() != nullptr;
    if (!proxied && !backend().pause_server()) return;  // calls inside the process are never late
    if (!proxied) backend().resume_server();
    const std::string query = "ttl=10s&" + backend().waits_for_late_answers();
    const auto client = proxied ? open_proxied(query) : open(query);
    const auto name = fresh_name("late");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 20; ++i)
        hold(*lock).release();  // every way has its connection
    hf::Lease lease;
    const auto asked_for = [&](auto ask) {
        Told told;
        {
            const LateAnswers slow;
            told.asked = now();
            ask();
            told.answered = now();
        }
        told.valid_until = lease.valid_until();
        require_counted_from_the_request(told);
    };
    const auto async_acquire = [&](auto executor, auto wait) {
        std::promise<hf::error_code> done;
        const auto handler = [&](hf::error_code ec, hf::Lease l) {
            lease = std::move(l);
            done.set_value(ec);
        };
        if constexpr (std::is_same_v<decltype(executor), std::nullptr_t>)
            lock->async_acquire({.wait = 5s}, handler);
        else
            lock->async_acquire({.wait = 5s}, asio::bind_executor(executor, handler));
        const auto ec = wait(done.get_future());
        INFO(ec.message());
        REQUIRE_FALSE(ec);
    };
    const auto blocking = [](auto f) { return f.get(); };
    const auto on_loop = [&](auto f) { return run_until(io, std::move(f)); };

    SECTION("acquire") {
        asked_for([&] { lease = hold(*lock); });
    }
    SECTION("async_acquire, on the engine") {
        asked_for([&] { async_acquire(nullptr, blocking); });
    }
    SECTION("async_acquire, on a loop of the caller's own") {
        for (int i = 0; i < 30; ++i) {  // until that is worth a connection
            async_acquire(io.get_executor(), on_loop);
            lease.release();
        }
        asked_for([&] { async_acquire(io.get_executor(), on_loop); });
    }
    // Renewed by the request in question only.
    SECTION("renew") {
        lease = hold(*lock_of(client, name, {.renew = false}));
        asked_for([&] { REQUIRE(lease.renew().has_value()); });
    }
    SECTION("async_renew") {
        lease = hold(*lock_of(client, name, {.renew = false}));
        asked_for([&] {
            std::promise<hf::error_code> done;
            lease.async_renew([&](hf::error_code ec) { done.set_value(ec); });
            REQUIRE_FALSE(done.get_future().get());
        });
    }
    CHECK(lease.release() == hf::ReleaseResult::released);
    require_clean(name);
}

TEST_CASE("a late hand-over: validity does not count from when it is told", "[basics][validity]") {
    if (backend().proxy() == nullptr) return;
    const auto name = fresh_name("late-hand-over");
    const auto client = open_proxied("ttl=10s&" + backend().waits_for_late_answers());
    const auto holder_client = open("ttl=30s");
    for (int i = 0; i < 3; ++i)
        hold(*lock_of(client, name)).release();
    auto holder = hold(*lock_of(holder_client, name));
    hf::result<hf::Lease> got = hf::Lease();
    hf::boot_clock::time_point told;
    const auto attempts = client.stats().attempts;
    std::thread waiting([&] {
        got = lock_of(client, name)->acquire({.wait = 20s});
        told = now();
    });
    const bool waits = lab::reached([&] { return client.stats().attempts > attempts; }, 10s);
    backend().proxy()->delay(lab::Direction::to_client, late);
    holder.release();
    waiting.join();
    backend().proxy()->heal();
    CHECK(waits);
    REQUIRE(got.has_value());
    // Whatever the server did for it, it did so before its word was on the way.
    CHECK(got->valid_until() <= told - at_least + ttl - drift);
    CHECK(got->release() == hf::ReleaseResult::released);
    require_clean(name);
}
