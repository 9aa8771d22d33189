// Readers and writers at real nodes: what is sent, what a node that lost them gets back, and what
// is refused.
#include <algorithm>

#include "five.hpp"

using namespace redlock_tests;

namespace {

const hf::LockOptions shared{.renew = false, .kind = hf::Kind::shared_mutex};
const std::string readers_key = "{name}:hf:r";

/// At how many nodes there are so many readers.
std::size_t with_readers(Five& five, long long readers) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < five.size(); ++i)
        n += five[i].cli({"ZCARD", readers_key}).integer == readers ? 1 : 0;
    return n;
}

}  // namespace

TEST_CASE("units: a reader asks each node once to acquire, and once to release", "[units]") {
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=2s"));
    const auto lock = lock_of(client, "name", shared);
    // Connected to all, with the scripts told.
    std::uint64_t before = 0;
    const auto cycle = [&] {
        before = client.stats().requests;
        auto lease = lock->acquire_shared({.wait = 5s}).value();
        lab::wait_until([&] { return with_readers(five, 1) == 5; }, 5s, "held at all");
        CHECK(lease.release() == hf::ReleaseResult::released);
        lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "free");
    };
    for (int i = 0; i < 5; ++i)
        cycle();
    CHECK(client.stats().requests - before == 10);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(five[i].cli({"EXISTS", readers_key, "{name}:hf:m"}).integer == 0);
}

TEST_CASE("units: readers come back to a node that has lost them, and keep a writer out",
          "[units]") {
    Five three(false, {}, 3);
    const auto client = open(three.url()), other = open(three.url());
    auto a = lock_of(client, "name", shared)->acquire_shared({.wait = 5s}).value(),
         b = lock_of(other, "name", shared)->acquire_shared({.wait = 5s}).value();
    lab::wait_until(
        [&] {
            return a.renew().has_value() && b.renew().has_value() && with_readers(three, 2) == 3;
        },
        5s, "both at all");
    three[1].cli({"DEL", "name", readers_key});
    CHECK(a.renew().has_value());
    CHECK(b.renew().has_value());
    lab::wait_until([&] { return with_readers(three, 2) == 3; }, 5s, "both are back");
    CHECK(refusal(*lock_of(client, "name")) == errc::contended);
    // Somebody else's key at a majority: whoever was beside the marker has lost.
    for (const std::size_t i : {0U, 2U})
        three[i].cli({"SET", "name", "theirs", "PX", "60000"});
    CHECK(a.renew().error() == errc::lost);
    CHECK_FALSE(b.renew().has_value());
}

TEST_CASE("units: what is refused, in words", "[units][config]") {
    Five three(false, {}, 3);
    const auto client = open(three.url());
    hf::Diagnostics said;
    CHECK(client.make_lock("name", {.kind = hf::Kind::semaphore, .limit = 2}, &said).error() ==
          errc::not_supported);
    CHECK(client.request_release("name").error() == errc::not_supported);
    const auto plain = open(three.url("durable=yes&fencing=off"));
    CHECK(plain.make_lock("name", shared).error() == errc::not_supported);
    CHECK(plain.make_lock("name", {.min_hold = 1s}).error() == errc::not_supported);
    std::string words;
    for (const hf::LockOptions& longer :
         {hf::LockOptions{.ttl = 30s, .lock_delay = 31s}, hf::LockOptions{.min_hold = 61s}}) {
        CHECK(refusal(*lock_of(client, "name", longer), &words) == errc::bad_config);
        CHECK(words.find("max_ttl") != words.npos);
    }
    auto reader = lock_of(client, "name", shared)->acquire_shared().value();
    lab::wait_until([&] { return reader.renew().has_value() && with_readers(three, 1) == 3; }, 5s,
                    "held at all");
    CHECK(client.break_lock("name", {.if_token = reader.fencing_token()}).error() ==
          errc::not_supported);
    CHECK(client.break_lock("name", {.owner = "another"}).error() == errc::not_held);
    CHECK(reader.renew().has_value());
    CHECK(client.break_lock("name", {.owner = std::string(reader.owner_id())})->size() == 1);
    CHECK(reader.renew().error() == errc::revoked);
}
