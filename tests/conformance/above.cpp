// What stands above a Lock, over each backend's own: several at once, re-entry, election, and the
// interfaces of std.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "after_break.hpp"
#include "suite.hpp"

using namespace suite;
namespace asio = boost::asio;

TEST_CASE("above: several names are held together, or none of them", "[above]") {
    const auto a = fresh_name("all-a"), b = fresh_name("all-b"), c = fresh_name("all-c");
    const auto client = open(), other = open();
    const auto la = lock_of(client, a), lb = lock_of(client, b), lc = lock_of(other, c);
    {
        auto set = hf::acquire_all({*lc, *la, *lb}, {.wait = 10s}).value();
        CHECK(set.valid());
        CHECK(lock_of(other, b)->try_acquire().error() == errc::contended);
        CHECK(set.release() == hf::ReleaseResult::released);
    }
    {
        auto busy = hold(*lock_of(other, b));
        std::size_t failed = 9;
        CHECK(hf::acquire_all({*lc, *lb, *la}, {.wait = 200ms, .failed = &failed}).error() ==
              errc::timed_out);
        CHECK(failed == 1);
        std::promise<hf::error_code> ended;
        asio::cancellation_signal signal;
        hf::async_acquire_all(
            {*la, *lb, *lc}, {.wait = 60s},
            asio::bind_cancellation_slot(
                signal.slot(), [&](hf::error_code ec, hf::LeaseSet) { ended.set_value(ec); }));
        lab::wait_until([&] { return !is_free(other, a); }, 10s, "the first one is held");
        signal.emit(asio::cancellation_type::terminal);
        CHECK(ended.get_future().get() == errc::cancelled);
        CHECK(busy.release() == hf::ReleaseResult::released);
    }
    for (const auto& name : {a, b, c})
        require_clean(name);
}

TEST_CASE("above: callers that name their locks in another order do not deadlock", "[above]") {
    const auto a = fresh_name("order-a"), b = fresh_name("order-b");
    std::atomic<int> inside{0}, overlaps{0}, failed{0};
    std::vector<hf::Client> clients;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        clients.push_back(open());
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, one = lock_of(clients[t], t % 2 == 0 ? a : b),
                              two = lock_of(clients[t], t % 2 == 0 ? b : a)] {
            for (int i = 0; i < 5; ++i) {
                auto set = hf::acquire_all({*one, *two}, {.wait = 60s});
                if (!set) {
                    ++failed;
                    continue;
                }
                if (++inside > 1) ++overlaps;
                std::this_thread::yield();
                --inside;
                if (set->release() != hf::ReleaseResult::released) ++failed;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(failed == 0);
    CHECK(overlaps == 0);
    require_clean(a);
    require_clean(b);
}

TEST_CASE("above: one that is lost while the next is waited for ends the set", "[above]") {
    if (!has(Capability::break_lock)) return;
    const auto a = fresh_name("lost-a"), b = fresh_name("lost-b");
    const auto client = open(), other = open();
    const auto la = lock_of(client, a, {.ttl = 3s}), lb = lock_of(client, b);
    auto busy = hold(*lock_of(other, b));
    std::promise<hf::error_code> ended;
    hf::async_acquire_all({*la, *lb}, {.wait = 60s},
                          [&](hf::error_code ec, hf::LeaseSet) { ended.set_value(ec); });
    lab::wait_until([&] { return !is_free(other, a); }, 10s, "the first one is held");
    REQUIRE(other.break_lock(a, {.now = true}).has_value());
    const auto why = ended.get_future().get();
    CHECK(why == after_break().lost_reason);
    CHECK(busy.release() == hf::ReleaseResult::released);
    require_clean(a, 10s);
    require_clean(b);
}

TEST_CASE("above: an owner takes its lock again without a request", "[above]") {
    const auto name = fresh_name("again");
    const auto client = open();
    hf::Reentrant<int> lock(lock_of(client, name));
    auto outer = lock.acquire(1, {.wait = 10s}).value();
    const auto requests = client.stats().attempts;
    auto inner = lock.try_acquire(1).value();
    CHECK(inner.fencing_token() == outer.fencing_token());
    CHECK(client.stats().attempts == requests);
    CHECK(lock.try_acquire(2).error() == errc::contended);
    CHECK(outer.release() == hf::ReleaseResult::released);
    CHECK(lock.try_acquire(2).error() == errc::contended);
    CHECK(inner.release() == hf::ReleaseResult::released);
    auto next = lock.acquire(2, {.wait = 10s}).value();
    CHECK(next.release() == hf::ReleaseResult::released);
    hf::recursive_mutex m(lock_of(client, name));
    {
        const std::lock_guard once(m), again(m);
        CHECK(m.lease().valid());
    }
    require_clean(name);
}

TEST_CASE("above: candidates lead one after another, and the others see who", "[above]") {
    const auto name = fresh_name("elect");
    const auto client = open();
    auto one = client.make_election(name).value(), two = open().make_election(name).value();
    auto term = one.campaign("one", {.wait = 10s}).value();
    CHECK(two.campaign("two", {.wait = 0ms}).error() == errc::contended);
    const auto leader = two.leader();
    if (has(Capability::inspect) && leader.has_value() && leader->has_value()) {
        CHECK((*leader)->owner == term.owner_id());
    } else {
        CHECK_FALSE(has(Capability::inspect));
    }
    term.release();
    auto next = two.campaign("two", {.wait = 10s}).value();
    if (has(Capability::fencing)) CHECK(next.fencing_token() > term.fencing_token());
    next.release();
    require_clean(name);
}

TEST_CASE("above: an observer is told of each change, also after its connection was cut",
          "[above]") {
    Trial& trial = this_trial();
    if (!has(Capability::inspect)) return;
    auto* const proxy = has(Capability::watch) ? backend().proxy() : nullptr;
    const auto name = fresh_name("observed");
    // An observer that is notified looks by itself only once in a ttl.
    const auto watching = proxy != nullptr ? open_proxied("ttl=10s") : open("ttl=10s");
    const auto other = open("ttl=10s");
    const auto observer = watching.make_election(name).value();
    const auto candidate = other.make_election(name).value();
    const auto bound = has(Capability::watch) ? 2s : 5s;
    const int changes = has(Capability::watch) ? 8 : 2;
    std::optional<hf::Leader> known;
    hf::Lease term;
    for (int i = 0; i < changes; ++i) {
        auto next = observer.async_observe(known, 30s, asio::use_future);
        // Meanwhile it has looked, most likely, and waits.
        for (int look = 0; look < 5; ++look)
            REQUIRE(candidate.leader().has_value());
        if (proxy != nullptr && i % 4 > 1) proxy->cut_all();
        const auto begun = now();
        if (known)
            term.release();
        else
            term = candidate.campaign("leads", {.wait = 10s}).value();
        known = next.get();
        CHECK(known.has_value() == (i % 2 == 0));
        if (known) CHECK(known->owner == term.owner_id());
        trial.within(now() - begun, bound, "a change is observed");
    }
    require_clean(name);
}
