// Kinds and modes on the memory backend: who is let in beside whom, in which order, with which
// token, and what is refused before anything is sent.
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <thread>

#include "catch.hpp"
#include "waiter.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using hf::ReleaseResult;
using test_support::Waiter;
using namespace std::chrono_literals;

namespace {

std::string kinds_url() {
    static std::atomic<int> number{0};
    return "memory:kinds" + std::to_string(++number);
}

struct Kinds {
    hf::Client client = hf::Client::open(kinds_url()).value();
    std::unique_ptr<hf::Lock> mutex = client.make_lock("it").value();
    std::unique_ptr<hf::Lock> shared =
        client.make_lock("it", {.kind = hf::Kind::shared_mutex}).value();
    std::unique_ptr<hf::Lock> semaphore(std::uint32_t limit, const char* name = "it") {
        return client.make_lock(name, {.kind = hf::Kind::semaphore, .limit = limit}).value();
    }
    std::size_t waiting(const char* name = "it") { return client.inspect(name)->waiters.size(); }
};

}  // namespace

TEST_CASE("kinds: readers are held beside each other, and a writer alone", "[kinds]") {
    Kinds g;
    auto a = g.shared->try_acquire_shared().value(), b = g.shared->try_acquire_shared().value();
    CHECK(a.mode() == hf::Mode::shared);
    CHECK(g.shared->try_acquire().error() == errc::contended);
    CHECK(g.mutex->try_acquire().error() == errc::contended);
    const auto shown = g.client.inspect("it").value();
    CHECK(shown.kind == hf::Kind::shared_mutex);
    REQUIRE(shown.holders.size() == 2);
    CHECK(shown.holders[0].mode == hf::Mode::shared);
    CHECK(a.release() == ReleaseResult::released);
    CHECK(g.shared->try_acquire().error() == errc::contended);
    CHECK(b.release() == ReleaseResult::released);
    auto w = g.mutex->try_acquire().value();
    CHECK(g.shared->try_acquire_shared().error() == errc::contended);
    w.release();
    CHECK(g.shared->try_acquire_shared().has_value());
}

TEST_CASE("kinds: nobody passes a waiter, and a run of readers is granted together", "[kinds]") {
    Kinds g;
    auto reader = g.shared->try_acquire_shared().value();
    Waiter writer(*g.shared, {});
    lab::wait_until([&] { return g.waiting() == 1; }, 10s, "the writer waits");
    CHECK(g.shared->try_acquire_shared().error() == errc::contended);
    Waiter r1(*g.shared, {.mode = hf::Mode::shared}), r2(*g.shared, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return g.waiting() == 3; }, 10s, "two readers wait");
    reader.release();
    auto w = writer.lease(10s);
    CHECK_FALSE(r1.done());
    w.release();
    auto first = r1.lease(10s), second = r2.lease(10s);
    CHECK(first.fencing_token() > w.fencing_token());
    CHECK(second.fencing_token() > w.fencing_token());
}

TEST_CASE("kinds: readers behind a writer that is cancelled are let in at once", "[kinds]") {
    Kinds g;
    auto reader = g.shared->try_acquire_shared().value();
    Waiter writer(*g.shared, {});
    lab::wait_until([&] { return g.waiting() == 1; }, 10s, "the writer waits");
    Waiter behind(*g.shared, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return g.waiting() == 2; }, 10s, "a reader waits");
    writer.cancel();
    const auto beside = behind.lease(10s);
    CHECK(beside.valid());
    CHECK(reader.valid());
}

TEST_CASE("kinds: tokens of readers lie between those of the writers around them", "[kinds]") {
    Kinds g;
    std::uint64_t written = 0;
    for (int i = 0; i < 3; ++i) {
        auto w = g.shared->try_acquire().value();
        CHECK(w.fencing_token().value > written);
        written = w.fencing_token().value;
        w.release();
        std::uint64_t read = written;
        for (int k = 0; k < 3; ++k) {
            auto r = g.shared->try_acquire_shared().value();
            CHECK(r.fencing_token().value > written);
            read = std::max(read, r.fencing_token().value);
            r.release();
        }
        written = read;
    }
}

TEST_CASE("kinds: a store with two numbers refuses the stale ones of both modes", "[kinds]") {
    Kinds g;
    hf::FencedResource store;
    const auto nothing = [] {};
    auto stale_writer = g.shared->try_acquire().value();
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    auto reader = g.shared->try_acquire_shared().value();
    CHECK(store.write(stale_writer.fencing_token(), nothing));  // nobody has read yet
    CHECK(store.read(reader.fencing_token(), nothing));
    CHECK_FALSE(store.write(stale_writer.fencing_token(), nothing));
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    auto writer = g.shared->try_acquire().value();
    CHECK(store.write(writer.fencing_token(), nothing));
    CHECK_FALSE(store.read(reader.fencing_token(), nothing));
    CHECK_FALSE(store.read({}, nothing));
    CHECK(store.highest() == writer.fencing_token());
}

TEST_CASE("kinds: permits are counted, in order", "[kinds]") {
    Kinds g;
    const auto sem = g.semaphore(5);
    auto three = sem->acquire({.permits = 3}).value(), two = sem->acquire({.permits = 2}).value();
    CHECK(three.permits() == 3);
    CHECK_FALSE(three.fencing_token());
    CHECK(three.previous_holder() == hf::PreviousHolder::unknown);
    CHECK(sem->try_acquire().error() == errc::contended);
    Waiter four(*sem, {.permits = 4});
    lab::wait_until([&] { return g.waiting() == 1; }, 10s, "four are waited for");
    Waiter one(*sem, {.permits = 1});
    lab::wait_until([&] { return g.waiting() == 2; }, 10s, "one is waited for");
    two.release();
    CHECK_FALSE(one.done());
    CHECK(sem->try_acquire().error() == errc::contended);  // though two are free
    three.release();
    const auto a = four.lease(10s), b = one.lease(10s);
    const auto shown = g.client.inspect("it").value();
    CHECK(shown.kind == hf::Kind::semaphore);
    CHECK(shown.limit == 5);
    CHECK(shown.holders.at(0).permits == 4);
}

TEST_CASE("kinds: a semaphore and the others, and another limit, refuse each other", "[kinds]") {
    Kinds g;
    const auto five = g.semaphore(5), three = g.semaphore(3);
    {
        const auto held = five->acquire().value();
        CHECK(three->try_acquire().error() == errc::kind_mismatch);
        CHECK(g.mutex->try_acquire().error() == errc::kind_mismatch);
        CHECK(g.shared->try_acquire_shared().error() == errc::kind_mismatch);
    }
    lab::wait_until([&] { return g.client.inspect("it")->holders.empty(); }, 10s, "free");
    const auto held = g.mutex->try_acquire().value();
    CHECK(five->try_acquire().error() == errc::kind_mismatch);
    CHECK(g.shared->try_acquire_shared().error() == errc::contended);
}

TEST_CASE("kinds: downgrade lets readers in and no writer between", "[kinds]") {
    Kinds g;
    auto w = g.shared->try_acquire().value();
    const auto token = w.fencing_token();
    Waiter reader(*g.shared, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return g.waiting() == 1; }, 10s, "a reader waits");
    Waiter writer(*g.shared, {});
    lab::wait_until([&] { return g.waiting() == 2; }, 10s, "a writer waits");
    REQUIRE(w.downgrade().has_value());
    CHECK(w.mode() == hf::Mode::shared);
    CHECK(w.fencing_token() == token);
    auto r = reader.lease(10s);
    CHECK_FALSE(writer.done());
    CHECK(r.previous_holder() == hf::PreviousHolder::released);
    CHECK(w.downgrade().has_value());  // it is already
    w.release();
    CHECK_FALSE(writer.done());
    r.release();
    auto last = writer.lease(10s);
    CHECK(last.previous_holder() == hf::PreviousHolder::released);
    last.release();
    auto permit = g.semaphore(2, "other")->acquire().value();
    CHECK(permit.downgrade().error() == errc::not_supported);
}

TEST_CASE("kinds: a reader leaves what became of the last writer to the next one", "[kinds]") {
    Kinds g;
    g.shared->try_acquire()->release(hf::Outcome::abandoned);
    auto r = g.shared->try_acquire_shared().value();
    CHECK(r.previous_holder() == hf::PreviousHolder::abandoned);
    r.release();
    auto w = g.shared->try_acquire().value();
    CHECK(w.previous_holder() == hf::PreviousHolder::abandoned);
    w.release();
    CHECK(g.shared->try_acquire()->previous_holder() == hf::PreviousHolder::released);
}

TEST_CASE("kinds: one of several holders is broken, or asked", "[kinds]") {
    Kinds g;
    auto a = g.shared->try_acquire_shared().value(), b = g.shared->try_acquire_shared().value();
    const std::string owner(a.owner_id());
    CHECK(g.client.request_release("it", {.owner = owner})->size() == 1);
    lab::wait_until([&] { return a.release_requested().stop_requested(); }, 10s, "it is asked");
    CHECK_FALSE(b.release_requested().stop_requested());
    CHECK(g.client.inspect("it")->holders.at(0).asked);
    CHECK(g.client.request_release("free").error() == errc::not_held);
    CHECK(g.client.break_lock("it", {.now = true, .owner = owner})->size() == 1);
    CHECK(a.renew().error() == errc::revoked);
    CHECK(b.renew().has_value());
    CHECK(g.client.break_lock("it", {.owner = owner}).error() == errc::not_held);
    CHECK(g.client.break_lock("it")->size() == 1);
    CHECK(b.renew().error() == errc::revoked);
}

TEST_CASE("kinds: lock_delay keeps the name closed after a loss, until the caller lets go",
          "[kinds]") {
    Kinds g;
    const auto lock =
        g.client.make_lock("it", {.ttl = 200ms, .renew = false, .lock_delay = 60s}).value();
    auto lease = lock->try_acquire().value();
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "it is lost");
    CHECK(lock->try_acquire().error() == errc::contended);
    // What the holder believes ends a little earlier than what the server does.
    lab::wait_until([&] { return g.client.inspect("it")->holders.empty(); }, 10s, "nobody has it");
    const auto closed = g.client.inspect("it").value();
    REQUIRE(closed.closed_for.has_value());
    CHECK(*closed.closed_for > 30s);
    CHECK(lease.release() == ReleaseResult::already_expired);
    CHECK(lease.release() == ReleaseResult::already_expired);
    auto next = g.mutex->try_acquire().value();
    CHECK(next.previous_holder() == hf::PreviousHolder::crashed);
    CHECK(g.client.stats().held == 1);
    next.release();
    CHECK(g.client.stats().held == 0);
}

TEST_CASE("kinds: min_hold keeps the name closed after an early release", "[kinds]") {
    Kinds g;
    const auto held_for = [&](const char* name, hf::milliseconds least) {
        return g.client.make_lock(name, {.min_hold = least}).value();
    };
    const auto longer = held_for("longer", 60s);
    CHECK(longer->try_acquire()->release() == ReleaseResult::released);
    CHECK(longer->try_acquire().error() == errc::contended);
    CHECK(g.client.inspect("longer")->holders.empty());
    CHECK(g.client.inspect("longer")->closed_for.has_value());

    const auto lock = held_for("it", 300ms);
    const auto begin = hf::boot_clock::now();
    CHECK(lock->try_acquire()->release() == ReleaseResult::released);
    auto next = lock->acquire({.wait = 30s}).value();
    CHECK(hf::boot_clock::now() - begin >= 300ms);
    CHECK(next.previous_holder() == hf::PreviousHolder::released);
}

TEST_CASE("kinds: what a lock does not have is refused before anything is sent", "[kinds]") {
    Kinds g;
    const auto words = [](auto&& call) {
        hf::Diagnostics d;
        const auto r = call(d);
        REQUIRE_FALSE(r.has_value());
        return std::pair<hf::error_code, std::string>(r.error(), d.text());
    };
    const auto acquire = [&](hf::Lock& lock, hf::AcquireOptions o) {
        return words([&](hf::Diagnostics& d) {
            o.diagnostics = &d;
            return lock.acquire(o);
        });
    };
    const auto make = [&](const hf::LockOptions& o) {
        return words([&](hf::Diagnostics& d) { return g.client.make_lock("x", o, &d); });
    };
    const auto sem = g.semaphore(4);
    CHECK(acquire(*g.mutex, {.mode = hf::Mode::shared}).first == errc::not_supported);
    CHECK(acquire(*sem, {.mode = hf::Mode::shared}).first == errc::not_supported);
    CHECK(acquire(*g.shared, {.permits = 2}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 0}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 5}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 5}).second.find("5 permits of 4") != std::string::npos);
    CHECK(make({.kind = hf::Kind::semaphore, .limit = 0}).first == errc::bad_config);
    CHECK(make({.kind = hf::Kind::semaphore, .limit = 65'536}).first == errc::bad_config);
    CHECK(make({.limit = 2}).first == errc::bad_config);
    CHECK(make({.lock_delay = -1ms}).first == errc::bad_config);
    CHECK(make({.min_hold = 25h}).first == errc::bad_config);
    CHECK(g.client.list("").value().empty());
}
