// One caller, and what it is told: grants, errors, tokens, releases, the std family, coroutines.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "suite.hpp"

using namespace suite;
namespace asio = boost::asio;

TEST_CASE("a lease is held, valid, named, and released", "[basics]") {
    const auto client = open();
    const auto name = fresh_name("basics");
    const auto lock = lock_of(client, name);
    const auto before = now();
    auto lease = hold(*lock);
    CHECK(lease.valid());
    CHECK(lease.state() == hf::LeaseState::held);
    CHECK(lease.name() == name);
    CHECK(lease.owner_id().size() >= 22);
    CHECK(lease.valid_until() > before + 9s);
    // 10 s less 1 % and 2 ms, counted from before the request
    CHECK(lease.valid_until() <= now() + 10s - 102ms);
    CHECK_FALSE(lease.lost().stop_requested());
    CHECK(lease.renew().has_value());
    CHECK(lease.release() == hf::ReleaseResult::released);
    CHECK(lease.state() == hf::LeaseState::released);
    CHECK_FALSE(lease.lost().stop_requested());
    CHECK(lease.renew().error() == errc::not_held);
    require_clean(name);
}

TEST_CASE("busy is a value: contended at once, timed_out at the deadline", "[basics]") {
    Trial& trial = this_trial();
    const auto client = open();
    const auto name = fresh_name("busy");
    const auto lock = lock_of(client, name);
    const auto other = lock_of(open(), name);
    auto lease = hold(*lock);
    CHECK(other->try_acquire().error() == errc::contended);
    CHECK(lock->try_acquire().error() == errc::contended);  // the holder's own Lock is no key
    const auto start = now();
    const auto ended = other->acquire({.wait = 500ms}).error();
    const auto took = now() - start;
    // A last request that a stall leaves unanswered is in doubt, rightly.
    trial.holds(ended == errc::timed_out, 500ms, ended.message());
    CHECK(ms(took) >= 499);
    trial.within(took, 800ms, "the end of a wait of 500 ms");
    lease.release();
    require_clean(name);
}

TEST_CASE("a waiter gets it when the holder releases", "[basics][races]") {
    const auto name = fresh_name("handover");
    const auto lock = lock_of(open(), name);
    const auto other = lock_of(open(), name);
    auto lease = hold(*lock);
    hf::result<hf::Lease> second = hf::Lease();
    std::thread waiting([&] { second = other->acquire({.wait = 10s}); });
    if (has(Capability::fifo))
        lab::wait_until([&] { return waiters_of(name) == 1; }, 20s, "the waiter is in line");
    const auto token = lease.fencing_token();
    CHECK(lease.release() == hf::ReleaseResult::released);
    waiting.join();
    REQUIRE(second.has_value());
    CHECK(second->valid());
    if (has(Capability::fencing)) CHECK(second->fencing_token() > token);
    second->release();
    require_clean(name);
}

TEST_CASE("fencing tokens: declared and growing, or zero", "[basics][T15]") {
    const auto name = fresh_name("token");
    const auto lock = lock_of(open(), name);
    hf::FencingToken last;
    for (int i = 0; i < 20; ++i) {
        auto lease = hold(*lock);
        if (has(Capability::fencing))
            CHECK(lease.fencing_token() > last);
        else
            CHECK_FALSE(lease.fencing_token());
        last = lease.fencing_token();
    }
    require_clean(name);
}

TEST_CASE("previous_holder tells none, released and abandoned, or unknown", "[basics][T28]") {
    const auto name = fresh_name("previous");
    const auto lock = lock_of(open(), name);
    const bool told = has(Capability::previous_holder);
    const auto expect = [&](hf::PreviousHolder p) {
        return told ? p : hf::PreviousHolder::unknown;
    };
    auto first = hold(*lock);
    CHECK(first.previous_holder() == expect(hf::PreviousHolder::none));
    first.release(hf::Outcome::done);
    auto second = hold(*lock);
    CHECK(second.previous_holder() == expect(hf::PreviousHolder::released));
    second.release(hf::Outcome::abandoned);
    auto third = hold(*lock);
    CHECK(third.previous_holder() == expect(hf::PreviousHolder::abandoned));
    third.release();
    require_clean(name);
}

TEST_CASE("T28: an exception releases as abandoned and is what the caller sees", "[T28]") {
    const auto name = fresh_name("unwind");
    const auto client = open();
    const auto lock = lock_of(client, name);
    const auto fail = [&] {
        const auto lease = hold(*lock);
        throw std::runtime_error("the work failed");
    };
    CHECK_THROWS_WITH(fail(), "the work failed");
    auto next = hold(*lock);
    if (has(Capability::previous_holder))
        CHECK(next.previous_holder() == hf::PreviousHolder::abandoned);
    next.release();

    hf::mutex guarded{client.make_lock(name)};
    const auto fail_guarded = [&] {
        const std::lock_guard hold_it(guarded);
        throw std::runtime_error("the guarded work failed");
    };
    CHECK_THROWS_WITH(fail_guarded(), "the guarded work failed");
    auto last = hold(*lock);
    if (has(Capability::previous_holder))
        CHECK(last.previous_holder() == hf::PreviousHolder::abandoned);
    last.release();
    require_clean(name);
}

TEST_CASE("the std family works over two locks and four threads", "[basics][races]") {
    // The family tells an unanswered request by an exception, so a request has time on a busy
    // machine.
    const auto client = open("ttl=30s&request_timeout=10s");
    const auto a_name = fresh_name("std-a"), b_name = fresh_name("std-b");
    hf::mutex a{client.make_lock(a_name)}, b{client.make_lock(b_name)};
    int unguarded = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 5; ++i) {
                if (t % 2 == 0) {
                    const std::scoped_lock both(a, b);
                    ++unguarded;
                } else {
                    const std::scoped_lock both(b, a);
                    ++unguarded;
                }
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(unguarded == 20);
    {
        std::unique_lock held(a);
        CHECK(a.lease().valid());
        std::thread([&] {
            CHECK_FALSE(a.try_lock());
            CHECK_FALSE(a.try_lock_for(20ms));
        }).join();
    }
    CHECK_THROWS_AS(hf::mutex{client.make_lock("")}, boost::system::system_error);
    require_clean(a_name);
    require_clean(b_name);
}

TEST_CASE("four threads on one Lock object take turns", "[basics][races]") {
    const auto client = open("ttl=30s&request_timeout=10s");
    const auto name = fresh_name("one-lock");
    const auto lock = lock_of(client, name);
    std::atomic<int> inside{0}, together{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i) {
                auto lease = lock->acquire({.wait = 60s});
                if (!lease) {
                    ++refused;
                    continue;
                }
                if (++inside != 1) ++together;
                --inside;
                lease->release();
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(refused == 0);
    CHECK(together == 0);
    CHECK(client.stats().acquired == 40);
    require_clean(name);
}

TEST_CASE("completion tokens: coroutine, future, callback", "[basics][races]") {
    asio::io_context io;
    const auto name = fresh_name("async");
    bool coroutine_done = false, wrong = false;
    hf::ClientOptions options;
    const auto client = open({}, options);
    const auto lock = lock_of(client, name);
    const auto task = [](hf::Lock& l, bool& done) -> asio::awaitable<void> {
        hf::Lease lease = co_await l.async_acquire({.wait = 5s}, asio::use_awaitable);
        done = lease.valid();
        const auto answer = co_await lease.async_release(hf::Outcome::done, asio::use_awaitable);
        done = done && answer == hf::ReleaseResult::released;
    };
    asio::co_spawn(io, task(*lock, coroutine_done), asio::detached);
    io.run();
    CHECK(coroutine_done);

    auto future = lock->async_acquire({}, asio::use_future);
    auto lease = future.get();
    CHECK(lease.valid());

    std::promise<hf::error_code> told;
    lock->async_acquire({.wait = 1s}, [&](hf::error_code ec, hf::Lease l) {
        wrong = l.valid();
        told.set_value(ec);
    });
    CHECK(told.get_future().get() == errc::timed_out);
    CHECK_FALSE(wrong);

    std::promise<hf::error_code> renewed, released;
    lease.async_renew([&](hf::error_code ec) { renewed.set_value(ec); });
    CHECK_FALSE(renewed.get_future().get());
    lease.async_lost([&](hf::error_code ec) { released.set_value(ec); });
    lease.release();
    CHECK(released.get_future().get() == errc::not_held);
    require_clean(name);
}

TEST_CASE("who waits for the loss of a lease can stop waiting", "[basics][races]") {
    asio::io_context io;
    const auto name = fresh_name("async-lost");
    const auto lock = lock_of(open(), name);
    auto lease = hold(*lock);
    std::vector<hf::error_code> told(3);
    asio::cancellation_signal stop;
    const auto wait = [&](std::size_t i, asio::cancellation_slot slot) {
        auto handler = [&told, i](hf::error_code ec) { told[i] = ec; };
        lease.async_lost(
            asio::bind_cancellation_slot(slot, asio::bind_executor(io, std::move(handler))));
    };
    wait(0, {});
    wait(1, stop.slot());
    wait(2, {});
    stop.emit(asio::cancellation_type::terminal);
    const auto run_until_told = [&](std::size_t i) {
        lab::wait_until(
            [&] {
                io.restart();
                io.poll();
                return bool(told[i]);
            },
            10s, "who waits is told");
    };
    run_until_told(1);
    CHECK(told[1] == errc::cancelled);
    CHECK_FALSE(told[0]);
    CHECK_FALSE(told[2]);
    lease.release();
    run_until_told(0);
    run_until_told(2);
    CHECK(told[0] == errc::not_held);
    CHECK(told[2] == errc::not_held);
    require_clean(name);
}

TEST_CASE("T20: a release by somebody who does not hold it frees nothing", "[T20]") {
    const auto name = fresh_name("foreign-release");
    const auto lock = lock_of(open(), name, {.ttl = 1200ms, .renew = false});
    auto old = hold(*lock);
    lab::wait_until([&] { return !old.valid(); }, 5s, "the fixed lease ends");
    CHECK(old.state() == hf::LeaseState::lost);
    const auto other = lock_of(open(), name);
    auto mine = hold(*other);
    const auto answer = old.release();
    CHECK((answer == hf::ReleaseResult::already_expired ||
           answer == hf::ReleaseResult::owned_by_other));
    CHECK(mine.renew().has_value());
    CHECK(mine.release() == hf::ReleaseResult::released);
    CHECK(mine.release() == hf::ReleaseResult::released);  // again: the same answer, nothing sent
    CHECK(hf::Lease().release() == hf::ReleaseResult::already_expired);
    require_clean(name);
}

TEST_CASE("T21: names are refused clearly or kept apart exactly", "[T21]") {
    const auto client = open();
    const auto refused = [&](const std::string& name) {
        const auto lock = client.make_lock(name);
        return !lock && lock.error() == errc::bad_name;
    };
    CHECK(refused(""));
    CHECK(refused(std::string(513, 'x')));
    CHECK(refused("\xff\xfe"));
    CHECK(refused("\xc0\xaf"));
    CHECK(refused("\xed\xa0\x80"));
    CHECK(refused(std::string("a\0b", 3)));

    const auto tail = fresh_name("");
    std::vector<std::string> names{"'; DROP TABLE holdfast_lease; --",
                                   "\"quoted\"",
                                   "a b",
                                   "a\nb",
                                   "a\r\n$3\r\nDEL",
                                   "{tag}x",
                                   "x{y",
                                   "x}y{z}",
                                   "a/b",
                                   "a/b/",
                                   "../up",
                                   ".",
                                   "..",
                                   "%",
                                   "_",
                                   "a%",
                                   "a_",
                                   "*",
                                   "[a]",
                                   "?",
                                   "A",
                                   "a",
                                   "a ",
                                   "\xc3\xa9",
                                   "e\xcc\x81",
                                   "\xe6\x97\xa5\xe6\x9c\xac",
                                   "\xf0\x9f\x94\x92",
                                   "0",
                                   "00",
                                   "null",
                                   "\\",
                                   std::string(400, 'n')};
    // What looks like a hash tag of Redis Cluster, and is none.
    const std::vector<std::string> broken{"{}x", "x}y"};
    if (backend().in_slots())
        for (const auto& n : broken)
            CHECK(refused(n + tail));
    else
        names.insert(names.end(), broken.begin(), broken.end());
    std::vector<hf::Lease> all;
    for (const auto& n : names) {
        INFO(n);
        const auto lock = client.make_lock(n + tail);
        REQUIRE(lock.has_value());
        auto lease = (*lock)->try_acquire();
        REQUIRE(lease.has_value());  // no two of them are one
        all.push_back(std::move(*lease));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        INFO(names[i]);
        CHECK(lock_of(client, names[i] + tail)->try_acquire().error() == errc::contended);
        const auto seen = client.inspect(names[i] + tail);
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].owner == all[i].owner_id());
    }
    all.clear();
    for (const auto& n : names)
        require_clean(n + tail);
    CHECK(hold(*lock_of(client, std::string(512, 'm'))).valid());
}

TEST_CASE("T32: namespaces keep clients apart, and inspect shows where one looks", "[T32]") {
    const auto name = fresh_name("namespace");
    const auto one = open("namespace=one/"), two = open("namespace=two/");
    auto held = hold(*lock_of(one, name));
    CHECK(hold(*lock_of(two, name)).valid());
    CHECK(holders_of(one, name) == 1);
    lab::wait_until([&] { return is_free(two, name); }, 5s, "two is released");
    const auto names = one.list(name);
    REQUIRE(names.has_value());
    CHECK(*names == std::vector<std::string>{name});
    held.release();
    CHECK(one.list(name).value().empty());
}

TEST_CASE("T32: two modes on one name exclude each other, and leave each other's lease alone",
          "[T32]") {
    const auto mode = backend().other_mode();
    if (mode.empty()) return;
    const auto name = fresh_name("modes");
    const auto one = open("ttl=10s"), other = open("ttl=10s&" + mode);
    hf::FencingToken last;
    for (int i = 0; i < 4; ++i) {
        const auto &holder = i % 2 == 0 ? one : other, &guest = i % 2 == 0 ? other : one;
        INFO((i % 2 == 0 ? "held without " : "held with ") << mode);
        auto lease = hold(*lock_of(holder, name));
        wait_held_everywhere(lease);
        const auto lock = lock_of(guest, name);
        CHECK(lock->try_acquire().error() == errc::contended);
        CHECK(lock->acquire({.wait = 300ms}).error() == errc::timed_out);
        const auto seen = guest.inspect(name);
        REQUIRE(seen.has_value());
        REQUIRE(seen->holders.size() == 1);
        CHECK(seen->holders[0].owner == lease.owner_id());
        CHECK(lease.renew().has_value());
        // The mode without tokens in between takes none of them back.
        if (lease.fencing_token()) {
            CHECK(lease.fencing_token() > last);
            last = lease.fencing_token();
        }
        hf::result<hf::Lease> next = hf::Lease();
        std::thread waiting([&] { next = lock->acquire({.wait = 20s}); });
        lab::wait_until([&] { return guest.stats().waiting == 1; }, 10s, "it waits");
        CHECK(lease.release() == hf::ReleaseResult::released);
        waiting.join();
        REQUIRE(next.has_value());
        CHECK(next->release() == hf::ReleaseResult::released);
        require_clean(name);
    }
    CHECK(last);
}

TEST_CASE("inspect, list and break do what is declared", "[basics][T33]") {
    const auto client = open("ttl=6s");
    const auto name = fresh_name("operate");
    const auto lock = lock_of(client, name);
    CHECK(client.break_lock(name).error() == errc::not_held);
    auto lease = lock->acquire({.wait = 5s, .note = "night shift"});
    REQUIRE(lease.has_value());
    const auto seen = client.inspect(name);
    REQUIRE(seen.has_value());
    REQUIRE(seen->holders.size() == 1);
    const auto& who = seen->holders[0];
    CHECK(who.owner == lease->owner_id());
    CHECK(who.note == "night shift");
    CHECK(who.pid == ::getpid());
    CHECK_FALSE(who.host.empty());
    CHECK_FALSE(who.foreign);
    CHECK(who.ttl_left > 0ms);
    CHECK(who.ttl_left <= 6000ms);
    if (has(Capability::fencing)) CHECK(who.token == lease->fencing_token());
    CHECK(client.list(name).value().size() == 1);
    lease->release();
    CHECK(client.list(name).value().empty());
    require_clean(name);
}

TEST_CASE("what is promised is what is asked for", "[basics]") {
    auto client = open();
    const auto found = client.probe();
    REQUIRE(found.has_value());
    for (int i = 0; i < static_cast<int>(Capability::count_); ++i) {
        const auto c = static_cast<Capability>(i);
        hf::Diagnostics words;
        hf::ClientOptions options;
        options.diagnostics = &words;
        const auto again =
            hf::Client::open(backend().url("require=" + std::string(hf::to_string(c))), options);
        INFO(hf::to_string(c) << ": " << words.text());
        CHECK(again.has_value() == found->has(c));
        if (!again) CHECK(again.error() == errc::not_supported);
    }
}
