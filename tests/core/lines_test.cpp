// What a user of std, Asio or userver types first: each line compiles and does what it says.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <holdfast/async_lock.hpp>
#include <holdfast/async_with_lock.hpp>
#include <holdfast/holdfast.hpp>
#include <ranges>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <vector>

#include <holdfast/lab/wait_until.hpp>
#include "../support/catch.hpp"
#include "run.hpp"

namespace hf = holdfast;
namespace asio = boost::asio;
using namespace std::chrono_literals;
using test_support::run;

namespace {

hf::Client memory() {
    static int last = 0;
    return hf::Client::open("memory:lines" + std::to_string(++last)).value();
}

asio::awaitable<hf::FencingToken> acquire_twice(const hf::Lock& lock) {
    hf::Lease first = co_await lock.async_acquire();
    co_await first.async_renew();
    co_await first.async_release();
    hf::Lease second = co_await lock.async_acquire();
    const auto token = second.fencing_token();
    co_await second.async_release(hf::Outcome::abandoned);
    co_return token;
}

asio::awaitable<hf::Mode> share(const hf::Lock& lock) {
    hf::Lease reader = co_await lock.async_acquire_shared();
    const auto mode = reader.mode();
    co_await reader.async_release();
    co_return mode;
}

asio::awaitable<std::string> campaign(const hf::Election& election) {
    hf::Lease term = co_await election.async_campaign("one");
    auto looking = election.async_leader();
    const auto leader = co_await std::move(looking);
    co_await term.async_release();
    co_return leader->value;
}

asio::awaitable<std::size_t> ask(const hf::Client& client) {
    auto inspecting = client.async_inspect("a");
    const auto found = co_await std::move(inspecting);
    auto listing = client.async_list();
    const auto names = co_await std::move(listing);
    auto asking = client.async_request_release("a");
    const auto asked = co_await std::move(asking);
    auto examining = client.async_examine();
    const auto examined = co_await std::move(examining);
    auto breaking = client.async_break_lock("a");
    const auto broken = co_await std::move(breaking);
    CHECK(examined.verdict() == hf::Verdict::sound);
    co_return found.holders.size() + names.size() + asked.size() + broken.size();
}

asio::awaitable<hf::FencingToken> again(const hf::Reentrant<int>& lock) {
    hf::Lease outer = co_await lock.async_acquire(7);
    hf::Lease inner = co_await lock.async_acquire(7);
    co_return inner.fencing_token();
}

}  // namespace

TEST_CASE("a client member may be empty, and says closed", "[core]") {
    struct Service {
        hf::Client client;
    } service;
    CHECK(service.client.make_lock("a").error() == hf::errc::closed);
    CHECK(service.client.make_election("a").error() == hf::errc::closed);
    CHECK(service.client.inspect("a").error() == hf::errc::closed);
    CHECK(service.client.probe().error() == hf::errc::closed);
    CHECK(service.client.backend().empty());
    CHECK(service.client.url().empty());
    CHECK(service.client.stats().acquired == 0);
    CHECK(!service.client.capabilities().has(hf::Capability::fencing));
    auto listing = service.client.async_list(asio::use_future);
    CHECK_THROWS_AS(listing.get(), boost::system::system_error);
    service.client.close();
    service.client = memory();
    CHECK(service.client.make_lock("a").value()->try_acquire().has_value());
}

TEST_CASE("a fencing token is printed, hashed and compared", "[core]") {
    std::ostringstream out;
    out << std::hex << hf::FencingToken{4711};
    CHECK(out.str() == "4711");
    CHECK(to_string(hf::FencingToken{0}) == "0");
    std::unordered_map<hf::FencingToken, int> seen;
    seen[hf::FencingToken{1}] = 1;
    CHECK(seen.contains(hf::FencingToken{1}));
    CHECK_FALSE(seen.contains(hf::FencingToken{2}));
    CHECK(to_string(hf::Outcome::done) == "done");
    CHECK(to_string(hf::Outcome::abandoned) == "abandoned");
}

template <class L>
concept TakesSeconds = requires(const L& lock) {
    lock.acquire(5s);
};
static_assert(!TakesSeconds<hf::Lock>);  // in some libraries the time to wait, in others the ttl

TEST_CASE("acquiring is const, and waits as long as std's mutexes would", "[core]") {
    const auto client = memory();
    const std::unique_ptr<const hf::Lock> lock = client.make_lock("a").value();
    auto lease = lock->acquire().value();
    CHECK(lease.time_left() > 9s);
    CHECK(lease.time_left() <= 10s);
    CHECK(lock->try_acquire_for(1ms).error() == hf::errc::timed_out);
    CHECK(lock->try_acquire_for(0s).error() == hf::errc::contended);
    CHECK(lock->try_acquire_until(std::chrono::steady_clock::now() + 1ms).error() ==
          hf::errc::timed_out);
    using Time = std::chrono::system_clock::time_point;
    CHECK(lock->try_acquire_until(Time::min()).error() == hf::errc::contended);
    lease.release();
    CHECK(lease.time_left() == 0s);
    CHECK(hf::Lease().time_left() == 0s);
    CHECK(lock->try_acquire_until(Time::max()).has_value());
}

TEST_CASE("coroutines await without a token", "[core]") {
    const auto client = memory();
    const auto lock = client.make_lock("a").value();
    CHECK(run(acquire_twice(*lock)) > hf::FencingToken{1});
    const auto shared = client.make_lock("s", {.kind = hf::Kind::shared_mutex}).value();
    CHECK(run(share(*shared)) == hf::Mode::shared);
    CHECK(run(campaign(client.make_election("e").value())) == "one");
    CHECK(run(again(hf::Reentrant<int>(client, "r"))));
    const auto held = lock->acquire().value();
    CHECK(run(ask(client)) == 4);
    holdfast::lab::wait_until([&] { return held.lost_reason() == hf::errc::revoked; }, 10s,
                              "it is told of the break");
}

TEST_CASE("operators' calls take a token behind what they are asked for", "[core]") {
    const auto client = memory();
    const auto election = client.make_election("e").value();
    const auto held = client.make_lock("a").value()->acquire().value();
    using asio::use_future;
    CHECK(client.async_examine(use_future).get().verdict() == hf::Verdict::sound);
    CHECK(client.async_inspect("a", use_future).get().holders.size() == 1);
    CHECK(client.async_list(use_future).get().size() == 1);
    CHECK(client.async_list("b", use_future).get().empty());
    CHECK(client.async_list("a", 5, use_future).get().size() == 1);
    CHECK(client.async_request_release("a", use_future).get().size() == 1);
    CHECK(client.async_request_release("a", hf::HolderFilter(), use_future).get().size() == 1);
    CHECK(client.async_break_lock("a", hf::BreakOptions(), use_future).get().size() == 1);
    CHECK_THROWS_AS(client.async_break_lock("b", use_future).get(), boost::system::system_error);
    CHECK_FALSE(election.async_leader(use_future).get().has_value());
    const auto term = election.campaign("one").value();
    CHECK(election.async_observe({}, use_future).get()->value == "one");
}

TEST_CASE("a lazy operation owns its note", "[core]") {
    const auto client = memory();
    const auto lock = client.make_lock("a").value();
    const std::string text = "a note that is longer than what a string keeps in itself";
    const auto shown = [&](auto lazy, auto run_it) {
        const auto held = run_it(std::move(lazy));
        CHECK(client.inspect("a").value().holders.at(0).note == text);
    };
    // Each is made with a note that has ended when the operation begins.
    const auto with = [&](auto make) {
        const auto note = std::make_unique<std::string>(text);
        auto made = make(hf::AcquireOptions{.wait = 5s, .note = *note});
        note->assign(text.size(), '-');
        return made;
    };
    const auto begin = [](auto lazy) { return std::move(lazy)(asio::use_future).get(); };
    shown(with([&](auto o) { return lock->async_acquire(o); }), begin);
    const hf::Reentrant<int> again(client, "a");
    shown(with([&](auto o) { return again.async_acquire(7, o); }), begin);
    asio::io_context loop;
    const hf::async_lock here(loop.get_executor(), client.make_lock("a").value());
    shown(with([&](auto o) { return here.async_acquire(o); }), [&](auto lazy) {
        auto held = std::move(lazy)(asio::use_future);
        loop.run();
        return held.get();
    });
    shown(with([&](auto o) {
              return hf::async_acquire_all({*lock}, {.wait = o.wait, .note = o.note});
          }),
          begin);
    auto looks = [&]() -> asio::awaitable<void> {
        CHECK(client.inspect("a").value().holders.at(0).note == text);
        co_return;
    };
    run(with([&](auto o) { return hf::async_with_lock(*lock, o, looks); }));
}

TEST_CASE("std's adapters are made from a client and a name", "[core]") {
    const auto client = memory();
    hf::mutex m(client, "m");
    hf::shared_mutex s(client, "s");
    hf::recursive_mutex r(client, "r");
    {
        const std::scoped_lock all(m, s, r);
        CHECK(client.list()->size() == 3);
    }
    CHECK_FALSE(m.try_lock_until(std::chrono::steady_clock::time_point::min()) == false);
    m.unlock();
    try {
        hf::mutex bad(client, "");
        FAIL("a mutex without a name was made");
    } catch (const boost::system::system_error& e) {
        CHECK(e.code() == hf::errc::bad_name);
        CHECK(std::string(e.what()).find("512 bytes") != std::string::npos);
    }
}

TEST_CASE("a LeaseSet is a range", "[core][all]") {
    static_assert(std::ranges::random_access_range<const hf::LeaseSet>);
    static_assert(std::ranges::sized_range<const hf::LeaseSet>);
    const auto client = memory();
    const auto a = client.make_lock("a").value(), b = client.make_lock("b").value();
    auto set = hf::acquire_all({*b, *a, *b}).value();
    std::string names;
    for (const hf::Lease& l : set)
        names += l.name();
    CHECK(names == "bab");
    CHECK(set.begin()[1].name() == "a");
    CHECK(set.end() - set.begin() == 3);
    CHECK(set.time_left() > 9s);
    CHECK_THROWS_AS(set.at(3), std::out_of_range);
    CHECK(&set.at(2) == &set[0]);
    set.release();
    CHECK(set.time_left() == 0s);
    const hf::LeaseSet none;
    CHECK(none.begin() == none.end());
    CHECK(none.empty());
    CHECK(none.time_left() == 0s);
    CHECK_THROWS_AS(none.at(0), std::out_of_range);
}

TEST_CASE("permits together: all or none, told when one is lost", "[core]") {
    const auto client = memory();
    hf::counting_semaphore s(client, "s", 4);
    s.acquire(3);
    CHECK(s.held() == 3);
    CHECK_FALSE(s.try_acquire(2));
    s.acquire();
    s.release(2);  // of the three, which the server frees together
    CHECK(s.held() == 2);
    CHECK(client.inspect("s")->holders.size() == 2);
    s.release();
    CHECK(client.inspect("s")->holders.size() == 1);

    const auto lost = s.lost();
    CHECK_FALSE(lost.stop_requested());
    s.acquire(2);  // later than the call, and watched as well
    hf::BreakOptions last;
    last.owner = client.inspect("s")->holders.back().owner;
    REQUIRE(client.break_lock("s", last).has_value());
    holdfast::lab::wait_until([&] { return lost.stop_requested(); }, 10s, "it is told");
    CHECK(s.held() == 1);
    s.release(2);  // the lost ones
    CHECK(s.held() == 1);
    CHECK_FALSE(s.lost().stop_requested());
    CHECK_THROWS_AS(s.release(2), boost::system::system_error);
    CHECK(s.held() == 1);
}

namespace {

using Awaitable = asio::use_awaitable_t<>;
using AwaitableLock = Awaitable::as_default_on_t<hf::async_lock<>>;

asio::awaitable<bool> acquire_by_default(const hf::Client& client) {
    const auto here = co_await asio::this_coro::executor;
    const AwaitableLock lock =
        Awaitable::as_default_on(hf::async_lock(here, client.make_lock("a").value()));
    // The default token makes an awaitable, not a deferred operation.
    asio::awaitable<hf::Lease> acquiring = lock.async_acquire();
    hf::Lease lease = co_await std::move(acquiring);
    bool contended = false;
    asio::awaitable<hf::Lease> late = lock.async_acquire({.wait = 0ms});
    try {
        (void)co_await std::move(late);
    } catch (const boost::system::system_error& e) {
        contended = e.code() == hf::errc::contended;
    }
    co_await lease.async_release();
    co_return contended;
}

asio::awaitable<hf::error_code> acquire_as_tuple(const hf::Client& client) {
    const auto here = co_await asio::this_coro::executor;
    const auto lock = asio::as_tuple_t<Awaitable>::as_default_on(
        hf::async_lock(here, client.make_lock("a").value()));
    auto acquiring = lock.async_acquire();
    auto [ec, lease] = co_await std::move(acquiring);
    co_return ec;
}

}  // namespace

TEST_CASE("a default token is bound to a lock as to Asio's own objects", "[core]") {
    const auto client = memory();
    CHECK(run(acquire_by_default(client)));
    CHECK_FALSE(run(acquire_as_tuple(client)));
    // Without a default it is deferred; a handler that names no executor runs on the lock's.
    asio::io_context io;
    const hf::async_lock plain(io.get_executor(), client.make_lock("a").value());
    std::thread::id where;
    plain.async_acquire()([&](hf::error_code, hf::Lease) { where = std::this_thread::get_id(); });
    io.run();
    CHECK(where == std::this_thread::get_id());
}

TEST_CASE("a leader is observed without blocking, and the wait can be cancelled", "[core]") {
    const auto client = memory();
    const auto one = client.make_election("e").value();
    auto nobody = one.async_observe(std::nullopt, 1h, asio::use_future);
    const auto term = one.campaign("one").value();
    const auto leader = nobody.get();
    REQUIRE(leader);
    CHECK(leader->value == "one");
    CHECK(one.observe(leader, 1ms).error() == hf::errc::timed_out);

    asio::io_context loop;
    asio::cancellation_signal cancel;
    hf::error_code ec;
    one.async_observe(
        leader, hf::forever,
        asio::bind_executor(loop, asio::bind_cancellation_slot(
                                      cancel.slot(), [&](hf::error_code e, auto) { ec = e; })));
    asio::post(loop, [&] { cancel.emit(asio::cancellation_type::terminal); });
    loop.run();
    CHECK(ec == hf::errc::cancelled);
}

TEST_CASE("observers of one name share a watch, and one that is cancelled leaves it to the others",
          "[core]") {
    // Nobody looks by itself within the test: the ttl is longer.
    const auto client = hf::Client::open("memory:shared-watch?ttl=1h").value();
    const auto one = client.make_election("e").value();
    std::vector<std::future<std::optional<hf::Leader>>> waiting;
    for (int i = 0; i < 3; ++i)
        waiting.push_back(one.async_observe(std::nullopt, 1h, asio::use_future));
    std::stop_source stop;
    hf::error_code ended;
    std::thread cancelled(
        [&] { ended = one.observe(std::nullopt, hf::forever, stop.get_token()).error(); });
    stop.request_stop();
    cancelled.join();
    CHECK(ended == hf::errc::cancelled);
    const auto term = one.campaign("one").value();
    for (auto& each : waiting)
        CHECK(each.get()->owner == term.owner_id());
    // Nor does one that begins after the others have ended miss anything.
    auto ends = one.async_observe(one.leader().value(), 1h, asio::use_future);
    REQUIRE(client.break_lock("e", {.now = true}).has_value());
    CHECK_FALSE(ends.get().has_value());
}

TEST_CASE("an observation ends when its client closes", "[core]") {
    auto client = memory();
    const auto one = client.make_election("e").value();
    auto waiting = one.async_observe(std::nullopt, hf::forever, asio::use_future);
    std::thread closes([&] { client.close(); });
    try {
        (void)waiting.get();
        FAIL("somebody leads");
    } catch (const boost::system::system_error& e) {
        CHECK(e.code() == hf::errc::closed);
    }
    closes.join();
}
