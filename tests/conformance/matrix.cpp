// What each backend has to promise, and what it must not: a promise that goes missing, or one that
// nobody expected, is a failing test, and not another product. The other cases assert that what is
// declared holds; the last ones here assert that what is not declared is not there either.
#include <cstdlib>
#include <holdfast/spi/registry.hpp>
#include <iterator>
#include <set>
#include <sstream>

#include "ground.hpp"
#include "suite.hpp"

using namespace suite;

const AfterBreak& suite::after_break() {
    return grounds().at(backend().name()).after_break;
}

TEST_CASE("every ground is a suite that CTest runs, and every backend has one", "[.][grounds]") {
    const char* grounds = std::getenv("HOLDFAST_TEST_GROUNDS");
    REQUIRE(grounds != nullptr);
    std::istringstream listed(grounds);
    const std::set<std::string> run{std::istream_iterator<std::string>(listed), {}};
    std::set<std::string> made;
    for (const auto& name : Harness::names())
        made.insert(name);
    CHECK(made == run);
    for (const auto& d : hf::spi::Registry::linked().all()) {
        INFO(d->name);
        CHECK(made.contains(d->name));
    }
}

TEST_CASE("the required matrix: what has to be promised is, and nothing else", "[basics]") {
    const auto& promises = grounds().at(backend().name()).promises;
    const auto client = open();
    const auto found = client.probe();
    REQUIRE(found.has_value());
    for (const Capability c : decided) {
        INFO(hf::to_string(c));
        CHECK(has(c) == promises.contains(c));
        CHECK(found->has(c) == promises.contains(c));
    }
    CHECK((backend().name() != "zookeeper-3" || has(C::survives_failover)));
}

TEST_CASE("what is not declared is not there either", "[basics]") {
    const auto client = open("ttl=3s");
    const auto name = fresh_name("undeclared");
    auto lease = hold(*lock_of(client, name));
    const auto holder = client.inspect(name);
    const auto names = client.list(name);
    CHECK(holder.has_value() == has(C::inspect));
    CHECK(names.has_value() == has(C::list));
    if (!holder) CHECK(holder.error() == errc::not_supported);
    if (!names) CHECK(names.error() == errc::not_supported);
    CHECK(bool(lease.fencing_token()) == has(C::fencing));
    const std::pair<hf::LockOptions, Capability> kinds[] = {
        {{.kind = hf::Kind::shared_mutex}, C::shared},
        {{.kind = hf::Kind::semaphore, .limit = 2}, C::semaphore},
        {{.lock_delay = 1s}, C::lock_delay},
        {{.min_hold = 1s}, C::min_hold}};
    for (const auto& [options, capability] : kinds) {
        INFO(hf::to_string(capability));
        const auto made = client.make_lock(name, options);
        CHECK(made.has_value() == has(capability));
        if (!made) CHECK(made.error() == errc::not_supported);
    }
    CHECK(client.request_release(name).has_value() == has(C::release_request));
    if (!has(C::downgrade)) CHECK(lease.downgrade().error() == errc::not_supported);
    CHECK((lease.previous_holder() == hf::PreviousHolder::unknown) != has(C::previous_holder));
    CHECK(lease.renew().has_value() == has(C::renewal));
    // Where nobody can be seen to wait, no line can be seen, either.
    const auto waiting = open();
    std::atomic<bool> ended{false};
    lock_of(waiting, name)->async_acquire({.wait = 20s}, [&](hf::error_code, hf::Lease l) {
        l.release();
        ended = true;
    });
    lab::wait_until([&] { return waiting.stats().attempts >= 1; }, 10s, "it has asked");
    if (has(C::inspect)) {
        if (has(C::fifo))
            CHECK(lab::reached([&] { return waiters_of(name) == 1; }, 5s));
        else if (!has(C::notified))
            CHECK(waiters_of(name) == 0);
    }
    // Nor can it be broken where that is not declared.
    const auto broken = client.break_lock(name);
    CHECK(broken.has_value() == has(C::break_lock));
    if (!broken) CHECK(broken.error() == errc::not_supported);
    lease.release();
    CHECK(lab::reached([&] { return ended.load(); }, 15s));
    require_clean(name);
}

TEST_CASE("who is not notified hears nothing that was not asked for", "[basics]") {
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    const auto name = fresh_name("unasked");
    auto lease = hold(*lock_of(open("ttl=60s"), name));
    const auto client = open_proxied("ttl=60s");
    hf::error_code answer;
    std::atomic<bool> ended{false};
    lock_of(client, name)->async_acquire({.wait = 60s}, [&](hf::error_code ec, hf::Lease l) {
        answer = ec;
        l.release();
        ended = true;
    });
    lab::wait_until(
        [&] { return client.stats().attempts >= 1 && (!has(C::fifo) || waiters_of(name) == 1); },
        10s, "it waits");
    const auto heard = [&] { return proxy->counters().forwarded_to_client; };
    const auto quiet = [&] {
        const auto before = heard();
        return lab::stays_true([&] { return heard() == before; }, 200ms);
    };
    if (has(C::notified)) CHECK(lab::reached(quiet, 10s));  // it stands in line
    // From now on it can ask for nothing. What it has asked for is answered first.
    proxy->delay(lab::Direction::to_server, 60s);
    CHECK(lab::reached(quiet, 10s));
    const auto before = heard();
    CHECK(lease.release() == hf::ReleaseResult::released);
    CHECK(lab::reached([&] { return heard() > before; }, has(C::notified) ? 10'000ms : 500ms) ==
          has(C::notified));
    proxy->heal();
    CHECK(lab::reached([&] { return ended.load(); }, 30s));
    CHECK_FALSE(answer);
    require_clean(name);
}

TEST_CASE("who does not reach other processes keeps none of them out", "[basics]") {
    const auto name = fresh_name("elsewhere");
    const auto lease = hold(*lock_of(open("ttl=60s"), name));
    lab::TempDir dir;
    lab::Process worker(worker_in("try", backend().url(), name, dir));
    require_ended(worker, has(C::cross_process) ? 2 : 0);
    CHECK(lease.valid());
}
