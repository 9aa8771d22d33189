// The store of the memory backend without core: whom it calls when, and what names cost.
#include "store.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <future>
#include <thread>

#include "catch.hpp"
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
    void changed(std::string_view name) override {
        changes.emplace_back(name);
        if (when_told) when_told();
    }
    void warn(std::string) override {}
    std::vector<std::string> woken, asked_of, changes;
    std::function<void()> when_told;
};

/// One owner of one name.
struct Owner {
    Store& store;
    Events& events;
    std::string name, id;
    spi::Attempt::Granted grant{};

    bool take(bool queue = false) {
        spi::Attempt a;
        a.name = name;
        a.owner = id;
        a.ttl = 10s;
        a.queue = queue;
        a.deadline = boot_clock::now() + 5s;
        store.attempt(a, name, events);
        const auto* granted = std::get_if<spi::Attempt::Granted>(&a.outcome);
        if (granted != nullptr) grant = *granted;
        return granted != nullptr;
    }
    ReleaseResult release() {
        spi::Held h;
        h.name = name;
        h.owner = id;
        h.token = grant.token;
        h.ttl = 10s;
        store.release(h, name);
        return h.released;
    }
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

TEST_CASE(
    "memory: a watcher of a name is notified when a holder comes or goes, and of nothing else") {
    Store store;
    Events watching, ours;
    watching.when_told = [&] { store.list("", 10); };  // without the mutex
    const auto told = [&] { return std::exchange(watching.changes, {}).size(); };
    Owner a{store, ours, "lock", "a"}, b{store, ours, "lock", "b"}, other{store, ours, "no", "a"};
    store.watch("lock", {&watching, "by this name"}, true);
    REQUIRE(a.take());
    CHECK(watching.changes == std::vector<std::string>{"by this name"});
    told();
    CHECK_FALSE(b.take(true));
    CHECK(told() == 0);
    a.release();
    CHECK(told() == 1);
    REQUIRE(b.take(true));
    CHECK(told() == 1);
    HolderFilter all;
    REQUIRE(store.tell("lock", all, spi::Tell::asked).has_value());
    CHECK(told() == 0);
    REQUIRE(store.tell("lock", all, spi::Tell::gone).has_value());
    CHECK(told() == 1);
    REQUIRE(other.take());
    CHECK(told() == 0);
    store.watch("lock", {&watching, ""}, false);
    REQUIRE(a.take());
    a.release();
    store.watch("lock", {&watching, "again"}, true);
    store.forget(watching);
    REQUIRE(a.take());
    CHECK(told() == 0);
    CHECK(ours.changes.empty());
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

}  // namespace holdfast::memory
