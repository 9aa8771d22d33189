// Readers and writers, and permits, as each backend declares them: who is let in beside whom, in
// which order, with which token, and what of it is refused.
#include <thread>

#include "after_break.hpp"
#include "suite.hpp"
#include "waiter.hpp"

using namespace suite;

namespace {

const hf::LockOptions shared_mutex{.kind = hf::Kind::shared_mutex};

hf::LockOptions semaphore(std::uint32_t limit) {
    return {.kind = hf::Kind::semaphore, .limit = limit};
}

/// Acquires as the options say, or fails the test with the words for why not.
hf::Lease take(hf::Lock& lock, hf::AcquireOptions options = {}) {
    hf::Diagnostics words;
    options.wait = 10s;
    options.diagnostics = &words;
    auto lease = lock.acquire(options);
    INFO((lease ? std::string("held") : lease.error().message()) << ' ' << words.text());
    REQUIRE(lease.has_value());
    return std::move(*lease);
}
hf::Lease take_shared(hf::Lock& lock) {
    return take(lock, {.mode = hf::Mode::shared});
}

/// A client of its own, and a lock of it. Made outside the thread that uses it, in which nothing is
/// asserted.
struct OwnLock {
    OwnLock(const std::string& name, const hf::LockOptions& kind)
        : client(open()), lock(lock_of(client, name, kind)) {}
    hf::Client client;
    std::unique_ptr<hf::Lock> lock;
};

/// One that waits with a client of its own, and what became of it.
class KindWaiter : OwnLock, public test_support::Waiter {
public:
    /// Returns once it waits, where that can be seen.
    KindWaiter(const std::string& name, const hf::LockOptions& kind,
               const hf::AcquireOptions& options)
        : KindWaiter(waiters_of(name).value(), name, kind, options) {}

private:
    KindWaiter(std::size_t before, const std::string& name, const hf::LockOptions& kind,
               const hf::AcquireOptions& options)
        : OwnLock(name, kind), Waiter(*lock, options) {
        if (has(Capability::fifo))
            lab::wait_until([&] { return waiters_of(name) > before; }, 20s, "it is in line");
        else
            lab::wait_until([&] { return client.stats().attempts >= 1; }, 20s, "it has asked");
    }
};

/// How one of a crowd asks, and the units that it then has of the limit.
struct Turn {
    hf::AcquireOptions options;
    std::uint32_t units;
};

/// Four threads acquire one name and release it, fifteen times each: never more than one writer, or
/// readers, or so many permits at once, and no call fails.
template <class KindOf, class TurnOf>
void crowd(const std::string& name, std::uint32_t limit, KindOf kind_of, TurnOf turn_of) {
    std::atomic<std::uint32_t> in{0};
    std::atomic<int> overlaps{0}, failed{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t, own = OwnLock(name, kind_of(t))] {
            for (unsigned i = 0; i < 15; ++i) {
                Turn turn = turn_of(t, i);
                turn.options.wait = 60s;
                auto lease = own.lock->acquire(turn.options);
                if (!lease) {
                    ++failed;
                    continue;
                }
                if ((in += turn.units) > limit) ++overlaps;
                std::this_thread::yield();
                in -= turn.units;
                if (lease->release() != hf::ReleaseResult::released) ++failed;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(overlaps == 0);
    CHECK(failed == 0);
    require_clean(name);
}

}  // namespace

// --- readers and writers

TEST_CASE("kinds: readers are held beside each other, and a writer alone", "[kinds][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds");
    const auto client = open(), other = open();
    const auto one = lock_of(client, name, shared_mutex), two = lock_of(other, name, shared_mutex);
    const auto mutex = lock_of(other, name);
    {
        auto a = take_shared(*one), b = take_shared(*two), c = take_shared(*two);
        CHECK(a.mode() == hf::Mode::shared);
        CHECK(one->try_acquire().error() == errc::contended);
        CHECK(two->try_acquire().error() == errc::contended);
        CHECK(mutex->try_acquire().error() == errc::contended);
        CHECK(a.renew().has_value());
        for (auto* lease : {&a, &b, &c})
            wait_held_everywhere(*lease);
        const auto shown = client.inspect(name).value();
        CHECK(shown.kind == hf::Kind::shared_mutex);
        REQUIRE(shown.holders.size() == 3);
        for (const auto& holder : shown.holders)
            CHECK(holder.mode == hf::Mode::shared);
        CHECK(client.list(name).value().size() == 1);
        CHECK(a.release() == hf::ReleaseResult::released);
        CHECK(b.release() == hf::ReleaseResult::released);
        CHECK(one->try_acquire().error() == errc::contended);
        CHECK(c.renew().has_value());
        CHECK(c.release() == hf::ReleaseResult::released);
    }
    {
        auto writer = take(*mutex);
        CHECK(writer.mode() == hf::Mode::exclusive);
        CHECK(one->try_acquire_shared().error() == errc::contended);
        writer.release();
    }
    auto writer = take(*one);
    CHECK(two->try_acquire_shared().error() == errc::contended);
    CHECK(mutex->try_acquire().error() == errc::contended);
    CHECK(writer.release() == hf::ReleaseResult::released);
    require_clean(name);
}

TEST_CASE("kinds: tokens of readers lie between those of the writers around them", "[kinds][T15]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kind-tokens");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex), mutex = lock_of(client, name);
    hf::FencingToken highest{};
    for (int i = 0; i < 3; ++i) {
        auto writer = take(i == 1 ? *mutex : *lock);
        CHECK(writer.fencing_token() > highest);
        const auto written = writer.fencing_token();
        writer.release();
        auto a = take_shared(*lock), b = take_shared(*lock);
        CHECK(a.fencing_token() > written);
        CHECK(b.fencing_token() > written);
        highest = std::max(a.fencing_token(), b.fencing_token());
    }
    lab::wait_until([&] { return is_free(client, name); }, 10s, "free");
    CHECK(take(*lock).fencing_token() > highest);
    require_clean(name);
}

TEST_CASE("kinds: readers behind a writer that gives up are let in at once", "[kinds][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds-cancel");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex);
    auto reader = take_shared(*lock);
    KindWaiter writer(name, shared_mutex, {});
    if (has(Capability::fifo)) CHECK(lock->try_acquire_shared().error() == errc::contended);
    KindWaiter behind(name, shared_mutex, {.mode = hf::Mode::shared});
    if (has(Capability::fifo)) CHECK_FALSE(behind.done());
    writer.cancel();
    CHECK(writer.why() == errc::cancelled);
    auto beside = behind.lease();
    CHECK(beside.valid());
    CHECK(reader.valid());
    beside.release();
    reader.release();
    require_clean(name);
}

TEST_CASE("kinds: a writer that gave up after a long wait keeps no reader out", "[kinds][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds-gave-up");
    const auto client = open(), other = open();
    const auto lock = lock_of(client, name, shared_mutex);
    auto reader = take_shared(*lock);
    // Whoever polls gets a place after a second; it would outlast the reader's wait.
    const auto writer = lock_of(other, name, shared_mutex);
    CHECK(writer->acquire({.wait = 2100ms}).error() == errc::timed_out);
    auto beside = lock->acquire({.wait = 1s, .mode = hf::Mode::shared});
    REQUIRE(beside.has_value());
    CHECK(beside->release() == hf::ReleaseResult::released);
    CHECK(reader.release() == hf::ReleaseResult::released);
    require_clean(name);
}

TEST_CASE("kinds: a run of readers is granted together, and no writer in it", "[kinds][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds-run");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex);
    auto writer = take(*lock);
    std::vector<std::unique_ptr<KindWaiter>> readers;
    for (int i = 0; i < 3; ++i)
        readers.push_back(std::make_unique<KindWaiter>(
            name, shared_mutex, hf::AcquireOptions{.mode = hf::Mode::shared}));
    KindWaiter next(name, {}, {});
    writer.release();
    std::vector<hf::Lease> reading;
    if (has(Capability::fifo)) {
        for (auto& reader : readers)
            reading.push_back(reader->lease());
        CHECK_FALSE(next.done());
        for (const auto& lease : reading)
            CHECK(lease.valid());
        reading.clear();
        next.lease().release();
    } else {
        // In any order, and all of them.
        for (auto& reader : readers) {
            lab::wait_until(
                [&] {
                    if (next.done()) next.lease().release();
                    return reader->done();
                },
                30s, "a reader is granted");
            reading.push_back(reader->lease());
        }
        reading.clear();
        next.lease().release();
    }
    require_clean(name);
}

TEST_CASE("kinds: of readers that are gone none is left in the way", "[kinds][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds-lapse");
    const auto client = open(), other = open();
    const auto longer = lock_of(client, name, {.ttl = 3s, .kind = hf::Kind::shared_mutex});
    const auto shorter =
        lock_of(other, name, {.ttl = 1200ms, .renew = false, .kind = hf::Kind::shared_mutex});
    auto a = take_shared(*longer), b = take_shared(*shorter);
    KindWaiter writer(name, shared_mutex, {});
    // The first of two leaves, the other one's time runs out.
    CHECK(a.release() == hf::ReleaseResult::released);
    auto w = writer.lease();
    CHECK(now() >= b.valid_until());
    CHECK_FALSE(b.valid());
    CHECK(b.renew().error() == errc::lost);
    if (has(Capability::fencing)) CHECK(w.fencing_token() > b.fencing_token());
    w.release();
    require_clean(name);
}

TEST_CASE("kinds: what the last writer left is the next writer's to read", "[kinds]") {
    if (!has(Capability::shared) || !has(Capability::previous_holder)) return;
    const auto name = fresh_name("kinds-previous");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex);
    take(*lock).release(hf::Outcome::abandoned);
    {
        auto reader = take_shared(*lock);
        CHECK(reader.previous_holder() == hf::PreviousHolder::abandoned);
        reader.release();
    }
    {
        auto writer = take(*lock);
        CHECK(writer.previous_holder() == hf::PreviousHolder::abandoned);
        writer.release();
    }
    auto last = take(*lock);
    CHECK(last.previous_holder() == hf::PreviousHolder::released);
    last.release();
    require_clean(name);
}

TEST_CASE("kinds: nobody overlaps, whoever comes and goes", "[kinds][races][T18]") {
    if (!has(Capability::shared)) return;
    const auto name = fresh_name("kinds-crowd");
    constexpr std::uint32_t all = 1000;
    const auto kind_of = [](unsigned t) { return t == 0 ? hf::LockOptions() : shared_mutex; };
    crowd(name, all, kind_of, [](unsigned t, unsigned i) {
        const bool reads = t > 1 || (t == 1 && i % 2 == 0);
        return reads ? Turn{{.mode = hf::Mode::shared}, 1} : Turn{{}, all};
    });
}

// --- downgrade

TEST_CASE("kinds: downgrade lets readers in, and no writer between", "[kinds][T18]") {
    if (!has(Capability::downgrade)) return;
    const auto name = fresh_name("downgrade");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex);
    auto w = take(*lock);
    const auto token = w.fencing_token();
    std::optional<KindWaiter> reader, writer;
    reader.emplace(name, shared_mutex, hf::AcquireOptions{.mode = hf::Mode::shared});
    if (has(Capability::fifo)) writer.emplace(name, shared_mutex, hf::AcquireOptions());
    REQUIRE(w.downgrade().has_value());
    CHECK(w.mode() == hf::Mode::shared);
    CHECK(w.fencing_token() == token);
    auto r = reader->lease();
    CHECK(r.valid());
    CHECK(w.valid());
    CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(w.renew().has_value());
    CHECK(w.downgrade().has_value());  // it is already
    w.release();
    CHECK(lock->try_acquire().error() == errc::contended);
    if (writer) CHECK_FALSE(writer->done());
    r.release();
    auto last = writer ? writer->lease() : take(*lock);
    if (has(Capability::fencing)) CHECK(last.fencing_token() > token);
    if (has(Capability::previous_holder))
        CHECK(last.previous_holder() == hf::PreviousHolder::released);
    last.release();
    require_clean(name);
}

TEST_CASE("kinds: a break with `now` and a downgrade reach who waits at once", "[kinds]") {
    if (!has(Capability::notified)) return;
    // A waiter looks by itself after a second, or a third of its ttl. Whom nobody tells is late
    // each time; whom the machine is too busy to tell is not.
    constexpr auto at_once = 600ms;
    const auto told_after = [](bool breaks) {
        const auto name = fresh_name("at-once");
        const auto client = open();
        const hf::LockOptions kind{.ttl = 30s,
                                   .kind = breaks ? hf::Kind::mutex : hf::Kind::shared_mutex};
        auto holder = take(*lock_of(client, name, kind));
        wait_held_everywhere(holder);
        const OwnLock own(name, kind);
        test_support::Waiter waiter(*own.lock,
                                    {.mode = breaks ? hf::Mode::exclusive : hf::Mode::shared});
        // It has just looked, so that the next look of its own is far away.
        const auto looks = [&] { return own.client.stats().attempts; };
        lab::wait_until([&] { return looks() >= 1; }, 20s, "it has asked");
        const auto before = looks();
        (void)lab::reached([&] { return looks() > before; }, 1200ms);
        CHECK_FALSE(is_free(client, name));
        const auto began = now();
        if (breaks)
            REQUIRE(client.break_lock(name, {.now = true}).has_value());
        else
            REQUIRE(holder.downgrade().has_value());
        auto lease = waiter.lease();
        const auto took = now() - began;
        lease.release();
        holder.release();
        require_clean(name);
        return took;
    };
    for (const bool breaks : {true, false}) {
        if (!has(breaks ? Capability::break_lock : Capability::downgrade)) continue;
        auto best = told_after(breaks);
        for (int i = 0; i < 4 && best >= at_once; ++i)
            best = std::min(best, told_after(breaks));
        INFO((breaks ? "a break" : "a downgrade") << ": " << ms(best) << " ms");
        CHECK(best < at_once);
    }
}

TEST_CASE("kinds: a downgrade lets in no writer that stands first in line", "[kinds][T18]") {
    if (!has(Capability::downgrade)) return;
    const auto name = fresh_name("downgrade-first");
    const auto client = open();
    auto w = take(*lock_of(client, name, shared_mutex));
    KindWaiter writer(name, shared_mutex, {});
    REQUIRE(w.downgrade().has_value());
    CHECK(lab::stays_true([&] { return !writer.done(); }, 200ms));
    CHECK(w.renew().has_value());
    CHECK(w.release() == hf::ReleaseResult::released);
    writer.lease().release();
    require_clean(name);
}

TEST_CASE("kinds: a downgrade that is not answered is repeated by the next renewal",
          "[kinds][T1]") {
    if (!has(Capability::downgrade) || backend().proxy() == nullptr) return;
    const auto name = fresh_name("downgrade-lost");
    const auto proxied = open_proxied("ttl=6s&request_timeout=1s"), client = open();
    auto w = take(*lock_of(proxied, name, shared_mutex));
    wait_held_everywhere(w);
    backend().proxy()->swallow(lab::Direction::to_client);
    const auto answer = w.downgrade();
    backend().proxy()->heal();
    CHECK(w.mode() == hf::Mode::shared);
    if (!answer) CHECK(answer.error() == errc::unavailable);
    auto reader = take_shared(*lock_of(client, name, shared_mutex));
    CHECK(w.valid());
    CHECK(reader.valid());
    reader.release();
    // Where answers are missing the connection ends, and a renewal that meets that is not answered.
    lab::wait_until([&] { return w.renew().has_value(); }, 4s, "it is renewed");
    CHECK(w.valid());
    w.release();
    require_clean(name, 7s);
}

// --- permits

TEST_CASE("kinds: permits are counted, never beyond the limit", "[kinds][T19]") {
    if (!has(Capability::semaphore)) return;
    const auto name = fresh_name("permits");
    const auto client = open(), other = open();
    const auto sem = lock_of(client, name, semaphore(5)), too = lock_of(other, name, semaphore(5));
    auto three = take(*sem, {.permits = 3}), two = take(*too, {.permits = 2});
    CHECK(three.permits() == 3);
    CHECK_FALSE(three.fencing_token());
    CHECK(three.previous_holder() == hf::PreviousHolder::unknown);
    CHECK(sem->try_acquire().error() == errc::contended);
    CHECK(three.renew().has_value());
    const auto shown = client.inspect(name).value();
    CHECK(shown.kind == hf::Kind::semaphore);
    CHECK(shown.limit == 5);
    REQUIRE(shown.holders.size() == 2);
    CHECK(shown.holders[0].permits + shown.holders[1].permits == 5);
    KindWaiter four(name, semaphore(5), {.permits = 4}), one(name, semaphore(5), {.permits = 1});
    two.release();
    if (has(Capability::fifo)) {
        CHECK(lab::stays_true([&] { return !one.done(); }, 200ms));
        CHECK(too->try_acquire().error() == errc::contended);  // though two are free
    }
    three.release();
    auto a = four.lease(), b = one.lease();
    CHECK(too->try_acquire().error() == errc::contended);
    a.release();
    auto again = take(*too, {.permits = 4});
    again.release();
    b.release();
    require_clean(name);
}

TEST_CASE("kinds: 256 permits at once", "[kinds][T19]") {
    if (!has(Capability::semaphore)) return;
    const auto name = fresh_name("many-permits");
    const auto client = open();
    const auto sem = lock_of(client, name, semaphore(300));
    auto most = take(*sem, {.permits = 256}), rest = take(*sem, {.permits = 44});
    CHECK(sem->try_acquire().error() == errc::contended);
    CHECK(most.renew().has_value());
    CHECK(most.release() == hf::ReleaseResult::released);
    auto some = take(*sem, {.permits = 200});
    CHECK(holders_of(client, name) == 2);
    some.release();
    rest.release();
    require_clean(name);
}

TEST_CASE("kinds: another kind, or another limit, is refused while somebody holds",
          "[kinds][T22]") {
    if (!has(Capability::semaphore) || !has(Capability::shared)) return;
    const auto name = fresh_name("mismatch");
    const auto client = open(), other = open();
    const auto five = lock_of(client, name, semaphore(5)),
               three = lock_of(other, name, semaphore(3));
    const auto mutex = lock_of(other, name), readers = lock_of(other, name, shared_mutex);
    {
        auto held = take(*five);
        CHECK(three->try_acquire().error() == errc::kind_mismatch);
        CHECK(mutex->try_acquire().error() == errc::kind_mismatch);
        CHECK(readers->try_acquire_shared().error() == errc::kind_mismatch);
        CHECK(readers->try_acquire().error() == errc::kind_mismatch);
        CHECK(mutex->acquire({.wait = 2s}).error() == errc::kind_mismatch);
        CHECK(held.renew().has_value());
        held.release();
    }
    {
        auto held = take(*mutex);
        CHECK(five->try_acquire().error() == errc::kind_mismatch);
        held.release();
    }
    {
        auto held = take_shared(*readers);
        CHECK(five->try_acquire().error() == errc::kind_mismatch);
        held.release();
    }
    {
        auto held = take(*readers);
        CHECK(five->try_acquire().error() == errc::kind_mismatch);
        CHECK(five->acquire({.wait = 2s}).error() == errc::kind_mismatch);
        held.release();
    }
    // A name that is free changes its kind, and its limit.
    take(*three, {.permits = 3}).release();
    take(*five, {.permits = 5}).release();
    take(*mutex).release();
    require_clean(name);
}

TEST_CASE("kinds: permits in use are those of live holders", "[kinds][races][T19]") {
    if (!has(Capability::semaphore)) return;
    const auto name = fresh_name("permit-crowd");
    const auto kind_of = [](unsigned) { return semaphore(4); };
    crowd(name, 4, kind_of, [](unsigned t, unsigned i) {
        const std::uint32_t permits = 1 + (t + i) % 4;
        return Turn{{.permits = permits}, permits};
    });
}

TEST_CASE("kinds: permits whose time has run out are free again", "[kinds][T19]") {
    if (!has(Capability::semaphore)) return;
    const auto name = fresh_name("permits-lapse");
    const auto client = open(), other = open();
    auto gone =
        take(*lock_of(other, name,
                      {.ttl = 1200ms, .renew = false, .kind = hf::Kind::semaphore, .limit = 3}),
             {.permits = 2});
    const auto sem = lock_of(client, name, semaphore(3));
    auto one = take(*sem);
    auto two = take(*sem, {.permits = 2});
    CHECK(now() >= gone.valid_until());
    CHECK_FALSE(gone.valid());
    CHECK(sem->try_acquire().error() == errc::contended);
    gone.release();
    CHECK(sem->try_acquire().error() == errc::contended);
    two.release();
    one.release();
    require_clean(name);
}

// Its client does not know that it was broken, so the release is sent.
TEST_CASE("kinds: a late release frees nobody else's permits", "[kinds]") {
    if (!has(Capability::semaphore) || !has(Capability::break_lock)) return;
    const auto name = fresh_name("permits-late");
    const auto client = open(), other = open();
    auto gone =
        take(*lock_of(other, name,
                      {.ttl = 10s, .renew = false, .kind = hf::Kind::semaphore, .limit = 3}),
             {.permits = 2});
    const std::string owner(gone.owner_id());
    REQUIRE(client.break_lock(name, {.now = true, .owner = owner}).has_value());
    const auto sem = lock_of(client, name, semaphore(3));
    auto one = take(*sem);
    auto two = take(*sem, {.permits = 2});
    gone.release();
    CHECK(sem->try_acquire().error() == errc::contended);
    two.release();
    one.release();
    require_clean(name);
}

// --- one of several holders

TEST_CASE("kinds: one of several holders is broken, the others stay", "[kinds]") {
    if (!has(Capability::shared) || !has(Capability::break_lock)) return;
    const auto name = fresh_name("break-one");
    const auto client = open(), other = open();
    auto a = take_shared(*lock_of(client, name, shared_mutex)),
         b = take_shared(*lock_of(other, name, shared_mutex));
    for (auto* lease : {&a, &b})
        wait_held_everywhere(*lease);
    const std::string owner(a.owner_id());
    const auto broken = client.break_lock(name, {.now = true, .owner = owner});
    REQUIRE(broken.has_value());
    REQUIRE(broken->size() == 1);
    CHECK(broken->front().holder.owner == owner);
    const auto why = a.renew();
    REQUIRE_FALSE(why.has_value());
    CHECK(why.error() == after_break().lost_reason);
    CHECK(b.renew().has_value());
    CHECK(lock_of(client, name)->try_acquire().error() == errc::contended);
    CHECK(client.break_lock(name, {.owner = owner}).error() == errc::not_held);
    b.release();
    a.release();
    require_clean(name);
}

TEST_CASE("kinds: who waits when the holders are broken comes to hold, and is not broken",
          "[kinds]") {
    if (!has(Capability::shared) || !has(Capability::break_lock)) return;
    const auto name = fresh_name("break-waiter");
    const auto client = open();
    const auto lock = lock_of(client, name, shared_mutex);
    auto a = take_shared(*lock), b = take_shared(*lock);
    for (auto* lease : {&a, &b})
        wait_held_everywhere(*lease);
    KindWaiter writer(name, shared_mutex, {});
    const auto broken = client.break_lock(name, {.now = true});
    REQUIRE(broken.has_value());
    CHECK(broken->size() == 2);
    auto w = writer.lease();
    CHECK(w.renew().has_value());
    CHECK(w.release() == hf::ReleaseResult::released);
    a.release();
    b.release();
    require_clean(name);
}

TEST_CASE("kinds: a broken reader keeps the writers out until its time is over", "[kinds]") {
    if (!has(Capability::shared) || !has(Capability::break_lock)) return;
    const auto name = fresh_name("break-all");
    const auto client = open(), other = open();
    auto a = take_shared(*lock_of(client, name, {.ttl = 2s, .kind = hf::Kind::shared_mutex})),
         b = take_shared(*lock_of(other, name, {.ttl = 2s, .kind = hf::Kind::shared_mutex}));
    for (auto* lease : {&a, &b})
        wait_held_everywhere(*lease);
    const auto until = std::max(a.valid_until(), b.valid_until());
    const auto broken = client.break_lock(name);
    REQUIRE(broken.has_value());
    CHECK(broken->size() == 2);
    auto w = take(*lock_of(client, name));
    // The holders may have been told before; nobody has it as long as one believes it has.
    CHECK_FALSE(a.valid());
    CHECK_FALSE(b.valid());
    CHECK((now() >= until || (a.lost().stop_requested() && b.lost().stop_requested())));
    w.release();
    require_clean(name);
}

TEST_CASE("kinds: a holder is asked to release, and decides", "[kinds]") {
    if (!has(Capability::release_request)) return;
    const auto name = fresh_name("asked");
    const auto client = open(), other = open();
    const hf::LockOptions options{.ttl = 3s, .kind = hf::Kind::shared_mutex};
    CHECK(client.request_release(name).error() == errc::not_held);
    auto a = take_shared(*lock_of(client, name, options)),
         b = take_shared(*lock_of(other, name, options));
    const std::string owner(a.owner_id());
    const auto asked = other.request_release(name, {.owner = owner});
    REQUIRE(asked.has_value());
    REQUIRE(asked->size() == 1);
    CHECK(asked->front().owner == owner);
    lab::wait_until([&] { return a.release_requested().stop_requested(); }, 10s, "it is asked");
    CHECK(a.valid());
    CHECK(a.renew().has_value());
    CHECK(b.renew().has_value());
    CHECK_FALSE(b.release_requested().stop_requested());
    const auto shown = client.inspect(name).value();
    for (const auto& holder : shown.holders)
        CHECK(holder.asked == (holder.owner == owner));
    a.release();
    // Nothing of it is left for the next grant.
    auto next = take_shared(*lock_of(client, name, options));
    CHECK(next.renew().has_value());
    CHECK_FALSE(next.release_requested().stop_requested());
    CHECK(client.request_release(name).value().size() == 2);
    lab::wait_until([&] { return b.release_requested().stop_requested(); }, 10s, "all are asked");
    next.release();
    b.release();
    require_clean(name);
}

// --- names that stay closed

TEST_CASE("kinds: lock_delay keeps a lost name closed until its holder lets go", "[kinds]") {
    if (!has(Capability::lock_delay)) return;
    const auto name = fresh_name("delay");
    const auto client = open();
    const hf::LockOptions delayed{.ttl = 1200ms, .renew = false, .lock_delay = 15s};
    auto lease = take(*lock_of(client, name, delayed));
    REQUIRE(lease.renew());  // a renewal keeps the delay
    CHECK(lease.valid_until() <= now() + 1200ms);
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "it is lost");
    const auto lock = lock_of(open(), name);
    CHECK(lock->try_acquire().error() == errc::contended);
    lease.release();
    auto next = take(*lock);
    CHECK(next.valid());
    next.release();
    require_clean(name);
}

TEST_CASE("kinds: lock_delay ends by itself, and not early", "[kinds]") {
    if (!has(Capability::lock_delay)) return;
    const auto name = fresh_name("delay-ends");
    const auto client = open();
    auto lease = take(*lock_of(client, name, {.ttl = 1200ms, .renew = false, .lock_delay = 2s}));
    REQUIRE(lease.renew());
    const auto until = lease.valid_until();  // a renewal may rest on what was proved before it
    auto next = take(*lock_of(open(), name));
    CHECK(now() >= until + 2s);
    CHECK(lease.lost().stop_requested());
    next.release();
    require_clean(name);
}

TEST_CASE("kinds: min_hold keeps a name closed that was released early", "[kinds]") {
    if (!has(Capability::min_hold)) return;
    const auto name = fresh_name("min-hold");
    const auto client = open(), other = open();
    {
        auto lease = take(*lock_of(client, name, {.min_hold = 60s}));
        CHECK(lease.release() == hf::ReleaseResult::released);
        CHECK(lock_of(other, name)->try_acquire().error() == errc::contended);
        const auto shown = other.inspect(name).value();
        CHECK(shown.holders.empty());
        REQUIRE(shown.closed_for.has_value());
        CHECK(*shown.closed_for > 30s);
    }
    const auto soon = fresh_name("min-hold");
    const auto lock = lock_of(client, soon, {.min_hold = 1500ms});
    const auto before = now();
    take(*lock).release();
    auto next = take(*lock_of(other, soon));
    CHECK(now() - before >= 1500ms);
    next.release();
    require_clean(soon);
}

TEST_CASE("kinds: min_hold keeps a name closed that a reader released early", "[kinds]") {
    if (!has(Capability::min_hold) || !has(Capability::shared)) return;
    const auto name = fresh_name("min-hold-reader");
    const auto client = open(), other = open();
    auto reader =
        take_shared(*lock_of(client, name, {.kind = hf::Kind::shared_mutex, .min_hold = 60s}));
    REQUIRE(reader.renew());  // a renewal keeps it
    CHECK(reader.release() == hf::ReleaseResult::released);
    CHECK(lock_of(other, name, shared_mutex)->try_acquire().error() == errc::contended);
    const auto shown = other.inspect(name).value();
    CHECK(shown.holders.empty());
    REQUIRE(shown.closed_for.has_value());
    CHECK(*shown.closed_for > 30s);
}
