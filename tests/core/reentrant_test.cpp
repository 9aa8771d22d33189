// A lock that its owner may take again: on share(), with one acquisition for those who come first.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <list>
#include <thread>

#include "buried.hpp"
#include "call.hpp"
#include "catch.hpp"
#include "ends_inside.hpp"

namespace asio = boost::asio;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using hf::ReleaseResult;
using namespace std::chrono_literals;

namespace {

struct Again {
    hf::Client client = hf::Client::open(url()).value();
    hf::Reentrant<std::string> lock{made()};

    std::unique_ptr<hf::Lock> made(const hf::LockOptions& o = {.kind = hf::Kind::shared_mutex}) {
        return client.make_lock("it", o).value();
    }
    std::size_t holders() const { return client.inspect("it")->holders.size(); }
    std::size_t waiters() const { return client.inspect("it")->waiters.size(); }
    static std::string url() {
        static std::atomic<int> number{0};
        return "memory:again" + std::to_string(++number);
    }
};

struct AgainCall : Call<hf::Lease> {
    AgainCall(hf::Reentrant<std::string>& lock, const std::string& owner,
              const hf::AcquireOptions& options = {})
        : Call([&](auto handler) { lock.async_acquire(owner, options, std::move(handler)); }) {}
};

/// A Lock that the test answers, also after a cancellation.
class AskedLock final : public hf::Lock {
public:
    struct Calls {
        std::list<Handler> open;  // nothing moves them: see docs/developing
        int cancelled = 0;
        /// The one that was asked first.
        void answer(hf::error_code ec) {
            auto first = std::move(open.front());
            open.pop_front();
            std::move(first)(ec, hf::Lease());
        }
    };
    explicit AskedLock(std::shared_ptr<Calls> c) : calls_(std::move(c)) {}
    std::string_view name() const noexcept override { return "asked"; }
    const hf::Capabilities& capabilities() const noexcept override { return has_; }
    hf::Kind kind() const noexcept override { return hf::Kind::mutex; }
    std::string place() const override { return {}; }
    std::unique_ptr<hf::Lock> clone() const override { return std::make_unique<AskedLock>(calls_); }

protected:
    void do_async_acquire(const hf::AcquireOptions&, Handler handler) const override {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected())
            slot.assign([calls = calls_](asio::cancellation_type) { ++calls->cancelled; });
        calls_->open.push_back(std::move(handler));
    }

private:
    const std::shared_ptr<Calls> calls_;
    const hf::Capabilities has_{};
};

}  // namespace

TEST_CASE("reentrant: an owner takes it again at once, and a stranger waits", "[reentrant]") {
    Again g;
    auto outer = g.lock.acquire("one").value();
    auto inner = g.lock.try_acquire("one").value();
    CHECK(inner.fencing_token() == outer.fencing_token());
    CHECK(g.lock.try_acquire("two").error() == errc::contended);
    CHECK(g.client.stats().acquired == 1);
    CHECK(outer.release() == ReleaseResult::released);  // in whatever order
    CHECK(inner.valid());
    CHECK_FALSE(outer.valid());
    CHECK(g.lock.try_acquire("two").error() == errc::contended);
    auto third = g.lock.try_acquire("one").value();
    CHECK(third.release(hf::Outcome::abandoned) == ReleaseResult::released);
    CHECK(inner.release() == ReleaseResult::released);
    auto two = g.lock.try_acquire("two").value();
    CHECK(two.previous_holder() == hf::PreviousHolder::abandoned);
    CHECK(two.fencing_token() > outer.fencing_token());
}

TEST_CASE("reentrant: shared inside exclusive stays exclusive, and there is no way up",
          "[reentrant]") {
    Again g;
    auto outer = g.lock.acquire("one").value();
    auto reading = g.lock.acquire("one", {.wait = 0ms, .mode = hf::Mode::shared}).value();
    CHECK(reading.mode() == hf::Mode::exclusive);
    CHECK(outer.downgrade().error() == errc::would_deadlock);
    outer.release();
    CHECK(g.made()->try_acquire_shared().error() == errc::contended);
    CHECK(reading.downgrade().has_value());
    CHECK(g.made()->try_acquire_shared().has_value());
    hf::Diagnostics words;
    CHECK(g.lock.acquire("one", {.diagnostics = &words}).error() == errc::would_deadlock);
    CHECK(words.text().find("has it shared") != std::string::npos);
    CHECK(g.lock.acquire("one", {.mode = hf::Mode::shared}).has_value());
}

TEST_CASE("reentrant: what is not its business is refused", "[reentrant]") {
    Again g;
    CHECK_THROWS(
        hf::Reentrant<int>(g.client.make_lock("s", {.kind = hf::Kind::semaphore, .limit = 2})));
    hf::Reentrant<int> mutex(g.client.make_lock("m"));
    CHECK(mutex.acquire(1, {.mode = hf::Mode::shared}).error() == errc::not_supported);
    CHECK(mutex.acquire(1, {.permits = 2}).error() == errc::bad_config);
    AgainCall call(g.lock, "one", {.permits = 0});
    CHECK(call.take().first == errc::bad_config);
}

TEST_CASE("reentrant: while a handle of a lost grant lives, the owner has lost it", "[reentrant]") {
    Again g;
    auto outer = g.lock.acquire("one").value();
    auto inner = g.lock.acquire("one").value();
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    CHECK(outer.renew().error() == errc::revoked);
    CHECK(g.lock.try_acquire("one").error() == errc::revoked);
    outer.release();
    CHECK(g.lock.try_acquire("one").error() == errc::revoked);
    CHECK(AgainCall(g.lock, "one").take().first == errc::revoked);
    inner = {};
    CHECK(g.lock.try_acquire("one").has_value());
}

TEST_CASE("reentrant: first acquires at a time are one", "[reentrant]") {
    Again g;
    auto other = g.lock.acquire("other").value();
    std::vector<AgainCall> calls;
    for (int i = 0; i < 4; ++i)
        calls.emplace_back(g.lock, "one");
    std::thread blocking([&] { CHECK(g.lock.acquire("one").has_value()); });
    lab::wait_until([&] { return g.waiters() == 1; }, 10s, "one waits for all");
    CHECK(lab::stays_true([&] { return g.waiters() == 1; }, 50ms));
    other.release();
    std::vector<hf::Lease> all;
    for (AgainCall& call : calls) {
        auto [ec, lease] = call.take();
        CHECK_FALSE(ec);
        all.push_back(std::move(lease));
    }
    blocking.join();
    CHECK(all[0].fencing_token() == all[3].fencing_token());
    CHECK(g.client.stats().acquired == 2);
    all.clear();
    lab::wait_until([&] { return g.holders() == 0; }, 10s, "it is free");
}

TEST_CASE("reentrant: of two first acquires one is cancelled, and the other goes on",
          "[reentrant]") {
    Again g;
    for (const int cancelled : {0, 1}) {
        auto other = g.lock.acquire("other").value();
        AgainCall calls[] = {{g.lock, "one"}, {g.lock, "one"}};
        lab::wait_until([&] { return g.waiters() == 1; }, 10s, "they wait");
        calls[cancelled].state->signal.emit(asio::cancellation_type::terminal);
        CHECK(calls[cancelled].take().first == errc::cancelled);
        lab::wait_until([&] { return g.waiters() == 1; }, 10s, "the other one waits");
        other.release();
        CHECK_FALSE(calls[1 - cancelled].take().first);
        lab::wait_until([&] { return g.holders() + g.waiters() == 0; }, 10s, "nothing is left");
    }
}

TEST_CASE("reentrant: a blocking caller is cancelled in either place", "[reentrant]") {
    Again g;
    auto other = g.lock.acquire("other").value();
    std::stop_source first, second;
    const auto wait = [&](std::stop_source& stop) {
        return std::async(std::launch::async, [&] {
            return g.lock.acquire("one", {.wait = 60s}, stop.get_token()).error();
        });
    };
    auto one = wait(first);
    lab::wait_until([&] { return g.waiters() == 1; }, 10s, "it waits");
    auto two = wait(second);
    AgainCall third(g.lock, "one", {.wait = 60s});
    CHECK(lab::stays_true([&] { return g.waiters() == 1; }, 20ms));
    second.request_stop();
    CHECK(two.get() == errc::cancelled);
    first.request_stop();
    CHECK(one.get() == errc::cancelled);
    lab::wait_until([&] { return g.waiters() == 1; }, 10s, "the third one waits");
    other.release();
    CHECK_FALSE(third.take().first);
}

TEST_CASE("reentrant: one attempt goes on for those that joined, without a second request",
          "[reentrant]") {
    const auto calls = std::make_shared<AskedLock::Calls>();
    hf::Reentrant<std::string> lock(std::make_unique<AskedLock>(calls));
    const hf::AcquireOptions once{.wait = 0s};
    AgainCall first(lock, "one", once), second(lock, "one", once), third(lock, "one", once);
    first.state->signal.emit(asio::cancellation_type::terminal);
    CHECK(first.take().first == errc::cancelled);
    second.state->signal.emit(asio::cancellation_type::terminal);
    CHECK(second.take().first == errc::cancelled);
    CHECK(calls->open.size() == 1);
    CHECK(calls->cancelled == 0);
    SECTION("the answer is theirs") {
        calls->answer(make_error_code(errc::contended));
        CHECK(third.take().first == errc::contended);
        CHECK(calls->open.empty());
    }
    SECTION("it ends with the last of them") {
        third.state->signal.emit(asio::cancellation_type::terminal);
        CHECK(third.take().first == errc::cancelled);
        CHECK(calls->cancelled == 1);
        calls->answer(make_error_code(errc::cancelled));
    }
}

TEST_CASE("reentrant: what joined a cancelled acquisition asks no longer than it said",
          "[reentrant]") {
    const auto calls = std::make_shared<AskedLock::Calls>();
    hf::Reentrant<std::string> lock(std::make_unique<AskedLock>(calls));
    const auto over = hf::boot_clock::now() + 40ms;
    AgainCall first(lock, "one", {.wait = 20ms}), brief(lock, "one", {.wait = 20ms}),
        patient(lock, "one", {.wait = 60s});
    CHECK(calls->open.size() == 1);
    first.state->signal.emit(asio::cancellation_type::terminal);
    CHECK(calls->cancelled == 1);
    CHECK(calls->open.size() == 2);  // they need not wait until it has left
    lab::wait_until([&] { return hf::boot_clock::now() >= over; }, 10s, "their time is over");
    calls->answer(make_error_code(errc::cancelled));
    CHECK(first.take().first == errc::cancelled);
    CHECK(calls->open.size() == 1);
    calls->answer(make_error_code(errc::timed_out));
    CHECK(brief.take().first == errc::timed_out);
    CHECK(calls->open.size() == 1);
    calls->answer(make_error_code(errc::timed_out));
    CHECK(patient.take().first == errc::timed_out);
}

TEST_CASE("reentrant: each waits as long as it said", "[reentrant]") {
    Again g;
    auto other = g.lock.acquire("other").value();
    AgainCall patient(g.lock, "one", {.wait = 60s});
    CHECK(g.lock.acquire("one", {.wait = 30ms}).error() == errc::timed_out);
    CHECK(g.lock.try_acquire("one").error() == errc::contended);
    AgainCall brief(g.lock, "one", {.wait = 30ms}), longer(g.lock, "one", {.wait = 60s});
    CHECK(brief.take().first == errc::timed_out);
    CHECK_FALSE(patient.done());
    other.release();
    auto [ec, lease] = patient.take();
    CHECK_FALSE(ec);
    CHECK_FALSE(longer.take().first);
    CHECK(g.waiters() == 0);
}

TEST_CASE("reentrant: whoever is granted first serves those who wait at the lock as well",
          "[reentrant]") {
    Again g;
    auto other = g.lock.acquire("other").value();
    AgainCall patient(g.lock, "one", {.wait = 60s});
    lab::wait_until([&] { return g.waiters() == 1; }, 10s, "one waits");
    AgainCall brief(g.lock, "one", {.wait = 30s});  // ends sooner, so it waits by itself
    lab::wait_until([&] { return g.waiters() == 2; }, 10s, "both wait");
    other.release();
    auto one = patient.take(), two = brief.take();
    CHECK_FALSE(one.first);
    CHECK_FALSE(two.first);
    CHECK(one.second.fencing_token() == two.second.fencing_token());
    lab::wait_until([&] { return g.waiters() == 0; }, 10s, "nobody waits any more");
    CHECK(g.holders() == 1);
}

TEST_CASE("reentrant: a handler runs where it wants to, and never inside the call", "[reentrant]") {
    Again g;
    auto outer = g.lock.acquire("one").value();
    asio::io_context loop;
    bool inside = true;
    g.lock.async_acquire("one", {}, asio::bind_executor(loop, [&](hf::error_code ec, hf::Lease l) {
                             CHECK_FALSE(ec);
                             CHECK_FALSE(inside);
                             CHECK(l.fencing_token() == outer.fencing_token());
                         }));
    inside = false;
    CHECK(loop.run() == 1);
    const auto here = std::this_thread::get_id();
    std::promise<std::thread::id> there;
    g.lock.async_acquire("one", {}, [&](hf::error_code, const hf::Lease&) {
        there.set_value(std::this_thread::get_id());
    });
    CHECK(there.get_future().get() != here);
}

TEST_CASE("reentrant: callers whose loop is destroyed end, and block nothing", "[reentrant]") {
    hf::Reentrant<std::string> lock(std::make_unique<test_support::EndsInside>("waits"));
    int ran = 0;
    {
        asio::io_context loop;
        for (const char* owner : {"one", "one", "two"})
            lock.async_acquire(owner, {}, asio::bind_executor(loop, [&](auto...) { ++ran; }));
    }
    CHECK(ran == 0);
}

TEST_CASE("reentrant: a call whose loop is destroyed writes nothing there any more",
          "[reentrant]") {
    Again g;
    auto other = g.made()->try_acquire().value();
    test_support::Buried<hf::Diagnostics> first, joined;
    {
        asio::io_context loop;
        for (auto* words : {&first, &joined})
            g.lock.async_acquire(
                "one", {.diagnostics = &**words},
                asio::bind_executor(loop, [frame = test_support::frame_of(*words)](auto...) {}));
        lab::wait_until([&] { return g.waiters() == 1; }, 10s, "they wait");
    }
    lab::wait_until([&] { return g.waiters() == 0; }, 10s, "they have left");
    CHECK(first.untouched());
    CHECK(joined.untouched());
    hf::Diagnostics words;
    AgainCall call(g.lock, "two", {.diagnostics = &words, .permits = 2});
    CHECK(call.take().first == errc::bad_config);
    CHECK(words.text().find("has no permits") != std::string::npos);
    other.release();
    auto held = g.lock.acquire("one", {.mode = hf::Mode::shared}).value();
    AgainCall up(g.lock, "one", {.diagnostics = &words});
    CHECK(up.take().first == errc::would_deadlock);
    CHECK(words.text().find("this owner has it shared") != std::string::npos);
}

TEST_CASE("reentrant: what has not begun goes on when its object has ended", "[reentrant]") {
    Again g;
    test_support::Buried<hf::Reentrant<int>> lock(g.made());
    auto later = lock->async_acquire(1, {.wait = 5s}, asio::deferred);
    lock.end();
    CHECK(std::move(later)(asio::use_future).get().valid());
    CHECK(lock.untouched());
}

TEST_CASE("reentrant: many threads of few owners take and release it at once", "[reentrant]") {
    Again g;
    std::atomic<int> inside[3]{}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const std::string owner(1, static_cast<char>('a' + t % 3));
            for (int i = 0; i < 60; ++i) {
                auto outer = g.lock.acquire(owner, {.wait = 60s});
                auto inner = g.lock.acquire(owner, {.wait = 60s});
                if (!outer || !inner) {
                    ++wrong;
                    continue;
                }
                ++inside[t % 3];
                for (int other = 0; other < 3; ++other)
                    if (other != t % 3 && inside[other] > 0) ++wrong;
                --inside[t % 3];
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    lab::wait_until([&] { return g.holders() + g.waiters() == 0; }, 10s, "nothing is left");
}

TEST_CASE("reentrant: owners that have come and gone cost nothing", "[reentrant]") {
    Again g;
    hf::Reentrant<int> lock(g.made());
    for (int i = 0; i < 1000; ++i)
        REQUIRE(lock.try_acquire(i)->release() == ReleaseResult::released);
    CHECK(lock.owners() < 40);
}

TEST_CASE("std: recursive_mutex is the thread's", "[std]") {
    Again g;
    hf::recursive_mutex m(g.made({}));
    const std::lock_guard outer(m);
    {
        const std::lock_guard inner(m);
        CHECK(m.try_lock());
        m.unlock();
    }
    CHECK(m.lease().valid());
    std::thread([&] {
        CHECK_FALSE(m.try_lock());
        CHECK_FALSE(m.try_lock_for(20ms));
        CHECK_FALSE(m.lease().valid());
    }).join();
    CHECK(g.client.stats().acquired == 1);
    CHECK_THROWS(hf::recursive_mutex(g.made({.kind = hf::Kind::semaphore, .limit = 2})));
}

TEST_CASE("std: recursive_mutex is released by the last unlock, abandoned when one was", "[std]") {
    Again g;
    hf::recursive_mutex m(g.made({}));
    {
        const std::lock_guard outer(m);
        try {
            const std::lock_guard inner(m);
            throw 1;
        } catch (int) {
        }
        CHECK(g.holders() == 1);
    }
    CHECK(g.made({})->try_acquire()->previous_holder() == hf::PreviousHolder::abandoned);
}

TEST_CASE("std: recursive_mutex says that it is lost until it is unlocked", "[std]") {
    Again g;
    hf::recursive_mutex m(g.made({}));
    m.lock();
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    lab::wait_until([&] { return !m.lease().valid(); }, 20s, "it is lost");
    CHECK_THROWS_AS(m.lock(), boost::system::system_error);
    m.unlock();
    m.lock();
    CHECK(m.lease().valid());
    m.unlock();
}
