// robust=yes: what became of the holder before, and what stays behind in the store.
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/wait_until.hpp>

#include "catch.hpp"
#include "client.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using namespace std::chrono_literals;
using test_support::waiters_of;
using Was = hf::PreviousHolder;

TEST_CASE("marks: none, released, abandoned, crashed, and nothing is left of what went well") {
    auto server = lab::EtcdServers::start({});
    const auto client = hf::Client::open(server.url() + "?robust=yes&ttl=2s").value();
    const auto lock = client.make_lock("it").value();
    const auto next = [&] {
        auto lease = lock->acquire({.wait = 10s}).value();
        CHECK(lease.renew().has_value());
        return lease;
    };
    auto lease = next();
    CHECK(lease.previous_holder() == Was::none);
    lease.release();
    lease = next();
    CHECK(lease.previous_holder() == Was::released);
    lease.release(hf::Outcome::abandoned);
    lease = next();
    CHECK(lease.previous_holder() == Was::abandoned);
    // Two that never released, one after the other.
    for (int i = 0; i < 2; ++i) {
        REQUIRE(client.break_lock("it", {.now = true}).has_value());
        auto other = next();
        CHECK(other.previous_holder() == Was::crashed);
        lease = std::move(other);
    }
    CHECK(lease.release() == hf::ReleaseResult::released);
    lease = next();
    CHECK(lease.previous_holder() == Was::released);
    lease.release();
    lab::wait_until(
        [&] {
            // But for the record of the last break.
            const auto keys = server.ctl({"get", "--prefix", "--keys-only", "/"});
            return keys.find_first_not_of('\n') == keys.npos || keys == "/holdfast/%revoked/it\n\n";
        },
        20s, "nothing is left");
}

TEST_CASE("marks: a waiter is told, and one that gives up leaves no trace") {
    auto server = lab::EtcdServers::start({});
    const auto url = server.url() + "?robust=yes&ttl=5s";
    const auto first = hf::Client::open(url).value(), second = hf::Client::open(url).value();
    auto held = first.make_lock("it").value()->acquire().value();
    const auto lock = second.make_lock("it").value();
    CHECK_FALSE(lock->acquire({.wait = 100ms}).has_value());
    std::atomic<bool> granted{false};
    hf::Lease next;
    lock->async_acquire({.wait = 30s}, [&](hf::error_code ec, hf::Lease l) {
        CHECK_FALSE(ec);
        next = std::move(l);
        granted = true;
    });
    lab::wait_until([&] { return waiters_of(first, "it") == 1; }, 10s, "in line");
    held.release(hf::Outcome::abandoned);
    lab::wait_until([&] { return granted.load(); }, 10s, "the waiter is granted");
    CHECK(next.previous_holder() == Was::abandoned);
    next.release();
}

TEST_CASE("marks: readers read them and leave none, a downgrade is a release, permits have none") {
    auto server = lab::EtcdServers::start({});
    const auto client = hf::Client::open(server.url() + "?robust=yes&ttl=3s").value();
    const auto lock = client.make_lock("it", {.kind = hf::Kind::shared_mutex}).value();
    const auto break_all = [&] { REQUIRE(client.break_lock("it", {.now = true}).has_value()); };
    auto writer = lock->acquire().value();
    break_all();
    auto reader = lock->acquire_shared().value();
    CHECK(reader.previous_holder() == Was::crashed);
    reader.release();
    reader = lock->acquire_shared().value();
    CHECK(reader.previous_holder() == Was::crashed);  // it is the next writer's
    auto beside = lock->acquire_shared().value();
    CHECK(beside.previous_holder() == Was::crashed);
    break_all();
    writer = lock->acquire().value();
    CHECK(writer.previous_holder() == Was::crashed);
    REQUIRE(writer.downgrade().has_value());
    beside = lock->acquire_shared().value();
    CHECK(beside.previous_holder() == Was::released);
    CHECK(writer.release(hf::Outcome::abandoned) == hf::ReleaseResult::released);
    break_all();
    writer = lock->acquire().value();
    CHECK(writer.previous_holder() == Was::released);
    writer.release();
    // Whoever lost it has not finished, whatever it says when it lets go.
    const auto delayed =
        client.make_lock("it", {.ttl = 1s, .renew = false, .lock_delay = 60s}).value();
    auto lost = delayed->acquire().value();
    lab::wait_until([&] { return lost.lost().stop_requested(); }, 10s, "it is lost");
    CHECK(lost.release() == hf::ReleaseResult::already_expired);
    writer = lock->acquire().value();
    CHECK(writer.previous_holder() == Was::crashed);
    writer.release();
    auto permits = client.make_lock("other", {.kind = hf::Kind::semaphore, .limit = 2}).value();
    auto permit = permits->acquire().value();
    CHECK(permit.previous_holder() == Was::unknown);
    CHECK(server.ctl({"get", "--prefix", "--keys-only", "/holdfast/%mark/other/"}).empty());
}
