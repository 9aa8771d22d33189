// What the public interface and the backends' one promise beside locking itself.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/spi/config.hpp>
#include <holdfast/spi/forwarding_lease.hpp>
#include <holdfast/spi/mapped_handler.hpp>
#include <holdfast/spi/registry.hpp>
#include <thread>

#include "../support/catch.hpp"
#include "buried.hpp"

namespace hf = holdfast;
namespace spi = hf::spi;
namespace asio = boost::asio;
using namespace std::chrono_literals;

// One meaning of bool: of a result, "no error". A lease has valid().
static_assert(!std::is_constructible_v<bool, hf::Lease>);

namespace {

/// As short as a decorator's lease can be: it counts what ends.
class Counted final : public spi::ForwardingLease {
public:
    Counted(hf::Lease inner, int& ended) : ForwardingLease(std::move(inner)), ended_(ended) {}
    hf::ReleaseResult release(hf::Outcome o) noexcept override {
        ++ended_;
        return inner().release(o);
    }
    void drop(hf::Outcome o) noexcept override {
        ++ended_;
        ForwardingLease::drop(o);
    }

private:
    int& ended_;
};

class CountedLock final : public hf::Lock {
public:
    CountedLock(std::unique_ptr<hf::Lock> inner, int& ended)
        : inner_(std::move(inner)), ended_(ended) {}
    std::string_view name() const noexcept override { return inner_->name(); }
    const hf::Capabilities& capabilities() const noexcept override {
        return inner_->capabilities();
    }
    hf::Kind kind() const noexcept override { return inner_->kind(); }
    std::string place() const override { return inner_->place(); }
    std::unique_ptr<hf::Lock> clone() const override {
        return std::make_unique<CountedLock>(inner_->clone(), ended_);
    }

protected:
    void do_async_acquire(const hf::AcquireOptions& options, Handler handler) const override {
        auto counted = [&ended = ended_](Handler done, hf::error_code ec, hf::Lease lease) {
            if (!ec) lease = hf::Lease(std::make_shared<Counted>(std::move(lease), ended));
            std::move(done)(ec, std::move(lease));
        };
        inner_->async_acquire(options, spi::map_handler(std::move(handler), counted));
    }

private:
    std::unique_ptr<hf::Lock> inner_;
    int& ended_;
};

/// The four verbs that a backend has to write, and nothing else.
class Four final : public spi::Backend {
public:
    const hf::Capabilities& capabilities() const noexcept override { return has_; }
    spi::awaitable<void> attempt(std::span<spi::Attempt* const>) override { co_return; }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const>) override { co_return; }
    spi::awaitable<void> renew(std::span<spi::Held* const>) override { co_return; }
    spi::awaitable<void> release(std::span<spi::Held* const>) override { co_return; }

private:
    const hf::Capabilities has_{hf::SafetyClass::b, {hf::Capability::cross_host}};
};

spi::Descriptor four() {
    spi::Descriptor d;
    d.name = "four";
    d.schemes = {"four"};
    d.hosts = spi::Descriptor::Hosts::none;
    d.capabilities = [](const spi::Settings&) { return hf::Capabilities(); };
    d.make = [](const spi::Settings&, spi::Context) { return std::make_unique<Four>(); };
    return d;
}

}  // namespace

TEST_CASE("a decorator's lease is the other one, but for what it overrides", "[core]") {
    const auto client = hf::Client::open("memory:interface").value();
    const auto lock = client.make_lock("a").value();
    int ended = 0;
    const auto counted = [&] {
        return hf::Lease(std::make_shared<Counted>(lock->acquire().value(), ended));
    };
    {
        auto lease = counted();
        CHECK(lease.valid());
        CHECK(lease.name() == "a");
        CHECK(lease.fencing_token().value == 1);
        CHECK(lease.renew().has_value());
        CHECK(lease.async_renew(asio::use_future).wait_for(5s) == std::future_status::ready);
        CHECK(lock->try_acquire().error() == hf::errc::contended);
        CHECK(lease.release() == hf::ReleaseResult::released);
        CHECK(lease.state() == hf::LeaseState::released);
        CHECK(ended == 1);
    }
    ended = 0;
    { const auto dropped = counted(); }
    CHECK(ended == 1);
    // How it was dropped goes through, too.
    try {
        const auto abandoned = counted();
        throw std::runtime_error("unfinished");
    } catch (const std::runtime_error&) {
    }
    auto next = lock->acquire().value();
    CHECK(next.previous_holder() == hf::PreviousHolder::abandoned);
}

TEST_CASE("a decorator keeps the executor and the cancellation slot of its caller", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    int ended = 0;
    CountedLock lock(client.make_lock("a").value(), ended);
    auto held = lock.acquire().value();
    CHECK(lock.try_acquire().error() == hf::errc::contended);
    asio::io_context loop;
    asio::cancellation_signal cancel;
    hf::error_code seen;
    std::thread::id thread;
    auto done = [&](hf::error_code ec, const hf::Lease&) {
        seen = ec;
        thread = std::this_thread::get_id();
    };
    lock.async_acquire(
        asio::bind_executor(loop, asio::bind_cancellation_slot(cancel.slot(), done)));
    asio::post(loop, [&] { cancel.emit(asio::cancellation_type::terminal); });
    loop.run();
    CHECK(seen == hf::errc::cancelled);
    CHECK(thread == std::this_thread::get_id());
    CHECK(held.release() == hf::ReleaseResult::released);
    CHECK(ended == 1);
}

TEST_CASE("asynchronous calls have the defaults of the blocking ones", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    const auto lock = client.make_lock("a").value();
    auto lease = lock->async_acquire(asio::use_future).get();
    CHECK(lease.valid());
    CHECK(lease.async_release(asio::use_future).get() == hf::ReleaseResult::released);
    CHECK(lock->acquire().value().previous_holder() == hf::PreviousHolder::released);
    // Nothing starts before it is asked to.
    auto later = lock->async_acquire({.wait = 0ms}, asio::deferred);
    CHECK(client.stats().held == 0);
    CHECK(std::move(later)(asio::use_future).get().valid());
    // What has not begun goes on when its Lock has ended.
    int ended = 0;
    test_support::Buried<CountedLock> brief(client.make_lock("b").value(), ended);
    auto of_brief = brief->async_acquire({.wait = 0ms}, asio::deferred);
    brief.end();
    CHECK(std::move(of_brief)(asio::use_future).get().valid());
    CHECK(brief.untouched());
    CHECK(ended == 1);
}

TEST_CASE("a mutex waits for a time that milliseconds cannot count", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    hf::mutex mutex{client.make_lock("a").value()};
    REQUIRE(mutex.try_lock_for(std::chrono::hours::max()));
    std::jthread waits([&] {
        if (mutex.try_lock_for(std::chrono::nanoseconds::max())) mutex.unlock();
    });
    mutex.unlock();
}

TEST_CASE("make_lock explains what it refuses", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    const auto said = [&](std::string_view name, const hf::LockOptions& o, hf::errc why) {
        hf::Diagnostics d;
        CHECK(client.make_lock(name, o, &d).error() == why);
        return d.text();
    };
    CHECK(said("", {}, hf::errc::bad_name).find("is empty") != std::string::npos);
    CHECK(said("a\xff", {}, hf::errc::bad_name).find("not UTF-8") != std::string::npos);
    CHECK(said("a", {.ttl = 99ms}, hf::errc::bad_config).find("100 ms to 24 h") !=
          std::string::npos);
    CHECK(said("a", {.max_hold = 0ms}, hf::errc::bad_config).find("max_hold") != std::string::npos);
}

TEST_CASE("what a backend leaves out is not supported", "[core]") {
    spi::Registry registry;
    registry.add(four());
    const auto client = hf::Client::open("four:", {.registry = &registry}).value();
    CHECK(client.inspect("a").error() == hf::errc::not_supported);
    CHECK(client.list().error() == hf::errc::not_supported);
    CHECK(client.break_lock("a").error() == hf::errc::not_supported);
    CHECK(client.probe().value().has(hf::Capability::cross_host));
    CHECK(client.stats().requests == 0);
}

TEST_CASE("a backend that was built for another Holdfast is named and not used", "[core]") {
    spi::Registry registry;
    registry.add(four());
    auto old = four();
    old.name = "old";
    old.schemes = {"old"};
    registry.add(spi::version - 1, "old", &old);
    CHECK(registry.find("old") == nullptr);
    CHECK(registry.find_scheme("old") == nullptr);
    hf::Diagnostics d;
    const hf::ClientOptions options{.registry = &registry, .diagnostics = &d};
    CHECK(hf::Client::open("old:", options).error() == hf::errc::bad_config);
    CHECK(d.text().find("backend old was built for another Holdfast") != std::string::npos);
    CHECK(hf::Client::open("four:", {.registry = &registry}).has_value());
}
