// The store of the memory backend without core: what it keeps of a name, and whom it calls when.
#include "store.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <future>
#include <thread>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::memory {
namespace {

using namespace std::chrono_literals;

struct Events final : spi::BackendEvents {
    void wake(std::string_view owner) override {
        woken.emplace_back(owner);
        if (when_told) when_told();
    }
    void at_risk(std::string_view) override {}
    void lost(std::string_view, error_code) override {}
    void asked(std::string_view owner) override {
        asked_of.emplace_back(owner);
        if (when_told) when_told();
    }
    void warn(std::string) override {}
    std::vector<std::string> woken, asked_of;
    std::function<void()> when_told;
};

const spi::Units writer{}, reader{1, spi::Units::all, Mode::shared};

/// One owner of one name.
struct Owner {
    Store& store;
    Events& events;
    std::string name, id;
    spi::Units units = writer;
    milliseconds ttl{10s}, lock_delay{0}, min_hold{0};
    spi::Attempt::Granted grant{};

    bool take(bool queue = false) {
        spi::Attempt a;
        a.name = name;
        a.owner = id;
        a.units = units;
        a.ttl = ttl;
        a.lock_delay = lock_delay;
        a.min_hold = min_hold;
        a.queue = queue;
        a.deadline = boot_clock::now() + 5s;
        store.attempt(a, name, events);
        const auto* granted = std::get_if<spi::Attempt::Granted>(&a.outcome);
        if (granted != nullptr) grant = *granted;
        return granted != nullptr;
    }
    spi::Held held() {
        spi::Held h;
        h.name = name;
        h.owner = id;
        h.token = grant.token;
        h.units = units;
        h.ttl = ttl;
        h.lock_delay = lock_delay;
        h.min_hold = min_hold;
        return h;
    }
    error_code renew() {
        auto h = held();
        store.renew(h, name);
        return h.renewal_error;
    }
    ReleaseResult release() {
        auto h = held();
        store.release(h, name);
        return h.released;
    }
    void withdraw() {
        spi::Attempt a;
        a.name = name;
        a.owner = id;
        a.units = units;
        store.withdraw(a, name);
    }
    milliseconds closed_for() { return store.survey(name).closed_for.value_or(0ms); }
};

}  // namespace

TEST_CASE("memory: clients are called without the store's mutex") {
    Store store;
    Events events;
    const auto look = [&](const std::string& name) {
        // From another thread: it would wait for ever for a mutex that this one holds.
        auto looked = std::async(std::launch::async, [&] { (void)store.survey(name); });
        const bool free = looked.wait_for(5s) == std::future_status::ready;
        CHECK(free);
        if (!free) std::_Exit(1);
    };
    events.when_told = [&] { look("N"); };
    Owner a{store, events, "N", "a"}, b{store, events, "N", "b"};
    REQUIRE(a.take());
    CHECK_FALSE(b.take(true));
    REQUIRE(store.tell("N", {}, spi::Tell::asked).has_value());
    CHECK(events.asked_of == std::vector<std::string>{"a"});
    CHECK(a.release() == ReleaseResult::released);
    CHECK(events.woken == std::vector<std::string>{"b"});
}

TEST_CASE("memory: a grant that was given back unused is no holder that crashed") {
    Store store;
    Events events;
    Owner a{store, events, "N", "a"}, b{store, events, "N", "b"}, c{store, events, "N", "c"};
    REQUIRE(a.take());
    CHECK(a.release() == ReleaseResult::released);
    REQUIRE(b.take());
    b.withdraw();
    REQUIRE(c.take());
    CHECK(c.grant.previous == PreviousHolder::released);
}

TEST_CASE("memory: a client that has closed is not called any more, not even by a call under way") {
    Store store;
    Events here, there;
    Owner a{store, here, "N", "a"}, b{store, there, "N", "b"};
    REQUIRE(a.take());
    CHECK_FALSE(b.take(true));
    std::promise<void> called, go_on;
    there.when_told = [&] {
        called.set_value();
        go_on.get_future().wait();
    };
    std::thread releasing([&] { a.release(); });
    called.get_future().wait();
    std::atomic<bool> forgotten{false};
    std::thread closing([&] {
        store.forget(there);
        forgotten = true;
    });
    std::this_thread::yield();
    CHECK_FALSE(forgotten);  // its engine must live until that call has ended
    go_on.set_value();
    closing.join();
    releasing.join();
    CHECK(there.woken.size() == 1);
    b.take();
    CHECK_FALSE(a.take(true));
    store.forget(here);
    b.release();
    CHECK(here.woken.empty());
}

TEST_CASE("memory: closing the backend takes its waiters away, before it is destroyed") {
    const auto* described = spi::Registry::linked().find("memory");
    REQUIRE(described != nullptr);
    boost::asio::io_context io;
    Events events, others;
    spi::Settings settings;
    settings.path = "closing";
    const auto backend = described->make(settings, {io.get_executor(), events});
    const auto store = Store::named("closing");
    Owner a{*store, others, "N", "a"};
    REQUIRE(a.take());
    Owner b{*store, events, "N", "b"};
    CHECK_FALSE(b.take(true));
    auto closing = backend->close();
    boost::asio::co_spawn(io, std::move(closing), boost::asio::detached);
    io.run();
    a.release();
    CHECK(events.woken.empty());
}

TEST_CASE("memory: names that nobody uses any more cost nothing, and tokens go on") {
    Store store(0ms);
    Events events;
    FencingToken first;
    for (int i = 0; i < 20'000; ++i) {
        Owner a{store, events, std::to_string(i), "a"};
        REQUIRE(a.take());
        if (i == 0) first = a.grant.token;
        if (i == 7) continue;  // it crashes
        CHECK(a.release() == ReleaseResult::released);
    }
    CHECK(store.size() < 2'000);
    Owner again{store, events, "0", "b"};
    REQUIRE(again.take());
    CHECK(again.grant.token > first);
    Owner crashed{store, events, "7", "b"};
    CHECK_FALSE(crashed.take());
}

TEST_CASE("memory: after a break a holder hears why, however soon the next one holds") {
    Store store;
    Events events;
    for (const auto& units : {writer, reader}) {
        Owner a{store, events, "N", "a", units}, b{store, events, "N", "b"};
        REQUIRE(a.take());
        CHECK_FALSE(b.take(true));
        events.woken.clear();
        REQUIRE(store.tell("N", {}, spi::Tell::gone).has_value());
        CHECK(events.woken == std::vector<std::string>{"b"});
        CHECK(a.renew() == errc::revoked);
        REQUIRE(b.take());
        CHECK(b.grant.previous ==
              (units.exclusive() ? PreviousHolder::crashed : PreviousHolder::released));
        CHECK(a.renew() == errc::revoked);
        CHECK(a.release() == ReleaseResult::owned_by_other);
        CHECK(b.release() == ReleaseResult::released);
        CHECK(a.release() == ReleaseResult::owned_by_other);
    }
}

TEST_CASE("memory: a renewal keeps the lock delay, and a reader its shortest time") {
    Store store;
    Events events;
    Owner a{store, events, "delay", "a", writer, 20ms, 60s};
    REQUIRE(a.take());
    CHECK_FALSE(a.renew());
    lab::wait_until([&] { return store.survey("delay").holders.empty(); }, 10s, "it ends");
    CHECK(a.closed_for() > 50s);
    Owner r{store, events, "hold", "r", reader, 10s, 0ms, 60s};
    REQUIRE(r.take());
    CHECK(r.release() == ReleaseResult::released);
    CHECK(r.closed_for() > 50s);
}

TEST_CASE("memory: a downgrade lets the readers that wait try at once") {
    Store store;
    Events events;
    Owner w{store, events, "N", "w"}, r{store, events, "N", "r", reader};
    REQUIRE(w.take());
    CHECK_FALSE(r.take(true));
    w.units = reader;
    CHECK_FALSE(w.renew());
    CHECK(events.woken == std::vector<std::string>{"r"});
    CHECK(r.take());
}

}  // namespace holdfast::memory
