// Several locks at once: all or nothing, in one order, lost as one; blocking and asynchronous.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <mutex>
#include <thread>

#include "buried.hpp"
#include "call.hpp"
#include "catch.hpp"
#include "ends_inside.hpp"
#include "scripted.hpp"

namespace asio = boost::asio;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using hf::LeaseState;
using hf::ReleaseResult;
using namespace std::chrono_literals;

namespace {

struct Several {
    hf::Client client = hf::Client::open(url()).value();
    std::unique_ptr<hf::Lock> a = made("a"), b = made("b"), c = made("c");

    std::unique_ptr<hf::Lock> made(const char* name, const hf::LockOptions& o = {}) const {
        return client.make_lock(name, o).value();
    }
    bool held(const char* name) const { return !client.inspect(name)->holders.empty(); }
    bool waited_for(const char* name) const { return !client.inspect(name)->waiters.empty(); }
    bool free() const {
        for (const char* name : {"a", "b", "c"})
            if (held(name) || waited_for(name)) return false;
        return true;
    }
    static std::string url() {
        static std::atomic<int> number{0};
        return "memory:several" + std::to_string(++number);
    }
};

struct AllCall : Call<hf::LeaseSet> {
    AllCall(std::vector<hf::Part> parts, const hf::AcquireAllOptions& options = {})
        : Call([&](auto handler) {
              hf::async_acquire_all(std::move(parts), options, std::move(handler));
          }) {}
};

/// What a caller's coroutine has in its frame.
struct Locals {
    explicit Locals(std::unique_ptr<hf::Lock> b) : lock(std::make_unique<Locked>(std::move(b))) {}
    void end() {
        words.end();
        failed.end();
        lock->end();
    }
    /// A decorator: no more than what it has to be.
    struct Plain final : hf::Lock {
        explicit Plain(std::unique_ptr<hf::Lock> l) : inner(std::move(l)) {}
        std::string_view name() const noexcept override { return inner->name(); }
        const hf::Capabilities& capabilities() const noexcept override {
            return inner->capabilities();
        }
        hf::Kind kind() const noexcept override { return inner->kind(); }
        std::string place() const override { return inner->place(); }
        std::unique_ptr<hf::Lock> clone() const override {
            return std::make_unique<Plain>(inner->clone());
        }
        void do_async_acquire(const hf::AcquireOptions& o, Handler h) const override {
            inner->async_acquire(o, std::move(h));
        }
        std::unique_ptr<hf::Lock> inner;
    };
    using Locked = test_support::Buried<Plain>;
    test_support::Buried<hf::Diagnostics> words;
    test_support::Buried<std::size_t> failed;
    std::unique_ptr<Locked> lock;
};

/// A server whose releases are recorded in their order, and whose answers a test decides.
struct Releases {
    Releases() {
        server->release = [this](scripted::spi::Held& h) {
            const std::lock_guard hold(mutex);
            order += h.name;
        };
    }
    /// The names of the next releases.
    std::string next(std::size_t releases) {
        lab::wait_until(
            [&] {
                const std::lock_guard hold(mutex);
                return order.size() >= releases;
            },
            10s, "they are released");
        const std::lock_guard hold(mutex);
        return std::exchange(order, {});
    }
    const std::shared_ptr<scripted::Server> server = std::make_shared<scripted::Server>();
    std::mutex mutex;
    std::string order;
    hf::Client client = scripted::open(server);
    std::unique_ptr<hf::Lock> a = client.make_lock("a").value(), b = client.make_lock("b").value(),
                              c = client.make_lock("c").value();
};

}  // namespace

TEST_CASE("acquire_all: all are held, in the order that the caller gave, and released", "[all]") {
    Several g;
    auto set = hf::acquire_all({*g.c, *g.a, *g.b}, {.wait = 5s, .note = "move"}).value();
    REQUIRE(set.size() == 3);
    CHECK(set[0].name() == "c");
    CHECK(set[1].name() == "a");
    CHECK(set.valid());
    CHECK(set.state() == LeaseState::held);
    CHECK(set.valid_until() ==
          std::min({set[0].valid_until(), set[1].valid_until(), set[2].valid_until()}));
    CHECK(g.client.inspect("b")->holders.at(0).note == "move");
    CHECK(set.release(hf::Outcome::abandoned) == ReleaseResult::released);
    CHECK(set.release() == ReleaseResult::released);
    CHECK(set.state() == LeaseState::released);
    CHECK_FALSE(set.valid());
    CHECK_FALSE(set.lost().stop_requested());
    CHECK(g.free());
    CHECK(g.a->try_acquire()->previous_holder() == hf::PreviousHolder::abandoned);
}

TEST_CASE("acquire_all: a set that is destroyed, moved or empty", "[all]") {
    Several g;
    hf::LeaseSet none;
    CHECK_FALSE(none.valid());
    CHECK(none.state() == LeaseState::empty);
    CHECK(none.release() == ReleaseResult::already_expired);
    CHECK_FALSE(none.lost().stop_possible());
    {
        auto set = hf::acquire_all({*g.a, *g.b}).value();
        none = std::move(set);
        CHECK(none.valid());
    }
    CHECK(g.held("a"));
    none = hf::LeaseSet();
    lab::wait_until([&] { return g.free(); }, 10s, "it is free");
}

TEST_CASE("acquire_all: kinds and modes meet in one set", "[all]") {
    Several g;
    const auto book = g.made("book", {.kind = hf::Kind::shared_mutex});
    const auto pool = g.made("pool", {.kind = hf::Kind::semaphore, .limit = 3});
    auto set =
        hf::acquire_all({{*book, hf::Mode::shared}, {*pool, hf::Mode::exclusive, 2}, *g.a}).value();
    CHECK(book->try_acquire_shared().has_value());
    CHECK(set[0].mode() == hf::Mode::shared);
    CHECK(set[1].permits() == 2);
    CHECK(pool->try_acquire().has_value());
    CHECK(pool->acquire({.wait = 0ms, .permits = 2}).error() == errc::contended);
}

TEST_CASE("acquire_all: the first failure gives all back", "[all]") {
    Several g;
    std::size_t failed = 9;
    auto other = g.b->try_acquire().value();
    CHECK(hf::acquire_all({*g.c, *g.b, *g.a}, {.wait = 0ms, .failed = &failed}).error() ==
          errc::contended);
    CHECK(failed == 1);
    CHECK(hf::acquire_all({*g.c, *g.b, *g.a}, {.wait = 20ms}).error() == errc::timed_out);
    lab::wait_until([&] { return !g.held("a") && !g.held("c") && !g.waited_for("b"); }, 10s,
                    "they are given back");
    hf::Diagnostics words;
    const auto pool = g.made("pool", {.kind = hf::Kind::semaphore, .limit = 3});
    CHECK(
        hf::acquire_all({*g.a, {*pool, hf::Mode::exclusive, 4}}, {.diagnostics = &words}).error() ==
        errc::bad_config);
    CHECK(words.text().find("4 permits of 3") != std::string::npos);
    lab::wait_until([&] { return !g.held("a"); }, 10s, "it is given back");
}

TEST_CASE("acquire_all: a name twice is one part, and in two ways none", "[all]") {
    Several g;
    const auto again = g.made("a");
    auto set = hf::acquire_all({*g.a, *g.b, *again, *g.a}, {.wait = 0ms}).value();
    CHECK(set.size() == 4);
    CHECK(&set[0] == &set[2]);
    CHECK(&set[0] == &set[3]);
    set.release();
    const auto book = g.made("a", {.kind = hf::Kind::shared_mutex});
    const auto pool = g.made("pool", {.kind = hf::Kind::semaphore, .limit = 3});
    hf::Diagnostics words;
    CHECK(hf::acquire_all({*book, {*book, hf::Mode::shared}}, {.diagnostics = &words}).error() ==
          errc::bad_config);
    CHECK(words.text().find("named twice, differently") != std::string::npos);
    CHECK(hf::acquire_all({*g.a, *book}).error() == errc::bad_config);
    CHECK(hf::acquire_all({*pool, {*pool, hf::Mode::exclusive, 2}}).error() == errc::bad_config);
    CHECK(hf::acquire_all({}).error() == errc::bad_config);
    CHECK(g.free());
    // A namespace is the beginning of a name, so these two are one as well.
    const auto inside = hf::Client::open(g.client.url() + "?namespace=x:").value();
    CHECK(inside.make_lock("a").value()->place() == g.made("x:a")->place());
    CHECK(g.a->place() < g.b->place());
    CHECK(inside.make_lock("a").value()->place() > g.a->place());
}

TEST_CASE("acquire_all: two that ask in opposite orders do not deadlock", "[all]") {
    Several g;
    std::atomic<int> rounds{0};
    const auto turn = [&](std::vector<hf::Part> parts) {
        for (int i = 0; i < 50; ++i) {
            auto set = hf::acquire_all(parts, {.wait = 60s});
            if (set) ++rounds;
        }
    };
    std::thread one(turn, std::vector<hf::Part>{*g.a, *g.b, *g.c});
    std::thread two(turn, std::vector<hf::Part>{*g.c, *g.b, *g.a});
    std::vector<AllCall> calls;
    for (int i = 0; i < 20; ++i)
        calls.emplace_back(std::vector<hf::Part>{*g.b, *g.c});
    for (AllCall& call : calls)
        if (!call.take().first) ++rounds;
    one.join();
    two.join();
    CHECK(rounds == 120);
}

TEST_CASE("acquire_all: the loss of one is the loss of all", "[all]") {
    Several g;
    auto set = hf::acquire_all({*g.a, *g.b}).value();
    std::promise<hf::error_code> heard;
    set.async_lost([&](hf::error_code ec) { heard.set_value(ec); });
    REQUIRE(g.client.break_lock("b", {.now = true}).has_value());
    lab::wait_until([&] { return g.client.inspect("b")->holders.empty(); }, 10s, "it is broken");
    const auto in_time = set[1].valid_until();
    lab::wait_until([&] { return set.lost().stop_requested(); }, 20s, "it is lost");
    CHECK(hf::boot_clock::now() < in_time + 5s);
    CHECK_FALSE(set.valid());
    CHECK(set.state() == LeaseState::lost);
    CHECK(set.lost_reason() == errc::revoked);
    CHECK(heard.get_future().get() == errc::revoked);
    CHECK(set[0].valid());
    CHECK(set.release() == ReleaseResult::owned_by_other);
    CHECK_FALSE(g.held("a"));
}

TEST_CASE("acquire_all: async_lost ends with a release or a cancellation", "[all]") {
    Several g;
    auto set = hf::acquire_all({*g.a, *g.b}).value();
    std::promise<hf::error_code> cancelled, released;
    asio::cancellation_signal signal;
    set.async_lost(asio::bind_cancellation_slot(
        signal.slot(), [&](hf::error_code ec) { cancelled.set_value(ec); }));
    set.async_lost([&](hf::error_code ec) { released.set_value(ec); });
    signal.emit(asio::cancellation_type::terminal);
    CHECK(cancelled.get_future().get() == errc::cancelled);
    std::promise<ReleaseResult> answer;
    set.async_release([&](hf::error_code ec, ReleaseResult r) {
        CHECK_FALSE(ec);
        answer.set_value(r);
    });
    CHECK(answer.get_future().get() == ReleaseResult::released);
    CHECK(released.get_future().get() == errc::not_held);
    CHECK(g.free());
}

TEST_CASE("acquire_all: a part that is lost while the next is waited for gives all back", "[all]") {
    Several g;
    const auto brief = g.made("a", {.ttl = 200ms, .renew = false});
    auto other = g.b->try_acquire().value();
    std::size_t failed = 9;
    CHECK(hf::acquire_all({*g.b, *brief, *g.c}, {.wait = 60s, .failed = &failed}).error() ==
          errc::lost);
    CHECK(failed == 1);
    lab::wait_until([&] { return !g.held("a") && !g.waited_for("b"); }, 10s, "given back");
    AllCall call({*g.b, *brief, *g.c}, {.wait = 60s, .failed = &failed});
    CHECK(call.take().first == errc::lost);
    CHECK(failed == 1);
    CHECK_FALSE(g.held("c"));
    lab::wait_until([&] { return !g.held("a") && !g.waited_for("b"); }, 10s, "given back");
}

TEST_CASE("acquire_all: an answer that comes while its loop is destroyed blocks nothing", "[all]") {
    test_support::EndsInside waits("waits");
    bool ran = false;
    {
        asio::io_context loop;
        hf::async_acquire_all({waits}, {}, asio::bind_executor(loop, [&](auto...) { ran = true; }));
    }
    CHECK_FALSE(ran);
}

TEST_CASE("acquire_all: cancelled at each of its locks it leaves nothing", "[all]") {
    Several g;
    for (const char* name : {"a", "b", "c"}) {
        auto other = g.made(name)->try_acquire().value();
        std::stop_source stop;
        std::thread stopper([&] {
            lab::wait_until([&] { return g.waited_for(name); }, 10s, "it waits");
            stop.request_stop();
        });
        CHECK(hf::acquire_all({*g.a, *g.b, *g.c}, {.wait = 60s}, stop.get_token()).error() ==
              errc::cancelled);
        stopper.join();
        AllCall call({*g.a, *g.b, *g.c}, {.wait = 60s});
        lab::wait_until([&] { return g.waited_for(name); }, 10s, "it waits");
        call.state->signal.emit(asio::cancellation_type::total);
        CHECK(call.take().first == errc::cancelled);
        other.release();
        lab::wait_until([&] { return g.free(); }, 10s, "nothing is left");
    }
}

TEST_CASE("acquire_all: the asynchronous form completes where its handler wants to run", "[all]") {
    Several g;
    asio::io_context loop;
    hf::LeaseSet set;
    bool inside = true;
    const auto here = std::this_thread::get_id();
    hf::async_acquire_all({*g.b, *g.a}, {.wait = 5s},
                          asio::bind_executor(loop, [&](hf::error_code ec, hf::LeaseSet s) {
                              CHECK_FALSE(ec);
                              CHECK(std::this_thread::get_id() == here);
                              CHECK_FALSE(inside);
                              set = std::move(s);
                          }));
    inside = false;
    loop.run();  // the call is work of this loop, so it does not return before
    CHECK(set.valid());
    CHECK(set[0].name() == "b");
    inside = true;
    loop.restart();
    hf::async_acquire_all({}, {}, asio::bind_executor(loop, [&](hf::error_code ec, hf::LeaseSet) {
                              CHECK(ec == errc::bad_config);
                              CHECK_FALSE(inside);
                          }));
    inside = false;
    CHECK(loop.run() == 1);
}

TEST_CASE("acquire_all: a loop that is destroyed ends the wait", "[all]") {
    Several g;
    auto other = g.b->try_acquire().value();
    {
        asio::io_context loop;
        hf::async_acquire_all({*g.a, *g.b}, {}, asio::bind_executor(loop, [](auto...) {}));
        lab::wait_until([&] { return g.waited_for("b"); }, 10s, "it waits");
    }
    lab::wait_until([&] { return !g.held("a") && !g.waited_for("b"); }, 10s, "given back");
}

TEST_CASE("acquire_all: a call whose loop is destroyed writes nothing there any more", "[all]") {
    Several g;
    auto other = g.b->try_acquire().value();
    Locals locals(g.made("b"));
    {
        asio::io_context loop;
        hf::async_acquire_all(
            {*g.a, *g.b}, {.diagnostics = &*locals.words, .failed = &*locals.failed},
            asio::bind_executor(loop, [frame = test_support::frame_of(locals)](auto...) {}));
        lab::wait_until([&] { return g.waited_for("b"); }, 10s, "it waits");
    }
    lab::wait_until([&] { return !g.held("a") && !g.waited_for("b"); }, 10s, "given back");
    CHECK(locals.words.untouched());
    CHECK(locals.failed.untouched());
}

TEST_CASE("acquire_all: a Lock that ends with the loop of its caller is not used again", "[all]") {
    Several g;
    auto other = g.a->try_acquire().value();
    Locals locals(g.made("b"));
    {
        asio::io_context loop;
        // The first lock is granted when the second has just ended with the handler.
        auto frame = std::shared_ptr<void>(&locals, [&](void*) {
            locals.end();
            other.release();
            lab::wait_until([&] { return !g.held("a") || g.waited_for("b"); }, 10s, "it goes on");
        });
        hf::async_acquire_all({*g.a, **locals.lock}, {},
                              asio::bind_executor(loop, [frame = std::move(frame)](auto...) {}));
        lab::wait_until([&] { return g.waited_for("a"); }, 10s, "it waits");
    }
    lab::wait_until([&] { return g.free(); }, 10s, "given back");
    CHECK(locals.lock->untouched());
}

TEST_CASE("acquire_all: what was written is there when the caller hears of it", "[all]") {
    Several g;
    const auto pool = g.made("pool", {.kind = hf::Kind::semaphore, .limit = 3});
    hf::Diagnostics words;
    std::size_t failed = 9;
    AllCall call({*g.a, {*pool, hf::Mode::exclusive, 4}},
                 {.diagnostics = &words, .failed = &failed});
    CHECK(call.take().first == errc::bad_config);
    CHECK(words.text().find("4 permits of 3") != std::string::npos);
    CHECK(failed == 1);
}

TEST_CASE("acquire_all: what has not begun goes on when its objects have moved or ended", "[all]") {
    Several g;
    Locals locals(g.made("b"));
    auto later = hf::async_acquire_all({*g.a, **locals.lock}, {.wait = 5s}, asio::deferred);
    locals.end();
    auto set = std::move(later)(asio::use_future).get();
    CHECK(set.valid());
    CHECK(locals.lock->untouched());
    auto lost = set.async_lost(asio::deferred);
    auto release = set.async_release(asio::deferred);
    auto moved = std::move(set);
    auto over = std::move(lost)(asio::use_future);
    CHECK(std::move(release)(asio::use_future).get() == ReleaseResult::released);
    CHECK_THROWS_AS(over.get(), boost::system::system_error);
    CHECK(g.free());
    CHECK(moved.state() == LeaseState::released);
}

TEST_CASE("acquire_all: the order is that of the servers, and then of the names", "[all]") {
    Several one, two;
    // A name that comes later at the server that comes earlier.
    const bool first = one.a->place() < two.a->place();
    Several& early = first ? one : two;
    Several& late = first ? two : one;
    const std::vector<hf::Part> parts{*late.a, *early.c};
    auto other = early.c->try_acquire().value();
    AllCall call(parts, {.wait = 60s});
    lab::wait_until([&] { return early.waited_for("c") || late.held("a"); }, 10s, "it waits");
    CHECK_FALSE(late.held("a"));
    auto next = late.a->try_acquire().value();
    other.release();
    lab::wait_until([&] { return late.waited_for("a"); }, 10s, "it waits for the other");
    CHECK(early.held("c"));
    next.release();
    CHECK_FALSE(call.take().first);
}

TEST_CASE("acquire_all: a set is given back in the reverse order, however it ends", "[all]") {
    Releases g;
    const auto all = [&] { return hf::acquire_all({*g.b, *g.a, *g.c}).value(); };
    CHECK(all().release() == ReleaseResult::released);
    CHECK(g.next(3) == "cba");
    CHECK(all().async_release(asio::use_future).get() == ReleaseResult::released);
    CHECK(g.next(3) == "cba");
    { const auto set = all(); }
    CHECK(g.next(3) == "cba");
    g.server->attempt = [](scripted::spi::Attempt& a) {
        if (a.name != "c") return scripted::Server::grants(a);
        a.outcome = scripted::spi::Attempt::Failed{hf::make_error_code(errc::denied), true};
    };
    CHECK(hf::acquire_all({*g.b, *g.a, *g.c}).error() == errc::denied);
    CHECK(g.next(2) == "ba");
}

TEST_CASE("acquire_all: a release without an answer is an error, as that of a lease is", "[all]") {
    Releases g;
    g.server->release = [](scripted::spi::Held& h) {
        if (h.name == "b") h.released = ReleaseResult::unreachable;
    };
    const auto brief = [&](const char* name) {
        return g.client.make_lock(name, {.ttl = 300ms}).value();
    };
    const auto a = brief("a"), b = brief("b");
    auto set = hf::acquire_all({*a, *b}).value();
    std::promise<std::pair<hf::error_code, ReleaseResult>> answer;
    set.async_release([&](hf::error_code ec, ReleaseResult r) { answer.set_value({ec, r}); });
    const auto [ec, result] = answer.get_future().get();
    CHECK(ec == errc::unavailable);
    CHECK(result == ReleaseResult::unreachable);
}

TEST_CASE("acquire_all: a closed client ends it, and of the other one nothing is left", "[all]") {
    Several g;
    hf::Client other = hf::Client::open(Several::url()).value();
    const auto there = other.make_lock("z").value();
    auto in_the_way = there->try_acquire().value();
    AllCall call({*there, *g.a});
    lab::wait_until([&] { return !other.inspect("z")->waiters.empty(); }, 10s, "it waits");
    other.close();
    CHECK(call.take().first == errc::closed);
    lab::wait_until([&] { return g.free(); }, 10s, "nothing is left");
}

TEST_CASE("acquire_all: a decorator has to say where it is", "[all]") {
    Several g;
    struct Nowhere : hf::Lock {
        std::string_view name() const noexcept override { return "n"; }
        const hf::Capabilities& capabilities() const noexcept override { return has; }
        hf::Kind kind() const noexcept override { return hf::Kind::mutex; }
        std::string place() const override { return {}; }
        std::unique_ptr<hf::Lock> clone() const override { return std::make_unique<Nowhere>(); }
        void do_async_acquire(const hf::AcquireOptions&, Handler) const override {}
        hf::Capabilities has;
    } nowhere;
    hf::Diagnostics words;
    CHECK(hf::acquire_all({*g.a, nowhere}, {.diagnostics = &words}).error() == errc::bad_config);
    CHECK(words.text().find("Lock::place") != std::string::npos);
    CHECK(g.free());
}

TEST_CASE("acquire_all: the worst answer of the releases counts", "[all]") {
    const auto server = std::make_shared<scripted::Server>();
    server->release = [](scripted::spi::Held& h) {
        if (h.name == "b") h.released = ReleaseResult::owned_by_other;
    };
    auto client = scripted::open(server);
    const auto a = client.make_lock("a").value(), b = client.make_lock("b").value();
    auto set = hf::acquire_all({*a, *b}).value();
    CHECK(set.release() == ReleaseResult::owned_by_other);
}
