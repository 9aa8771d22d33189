// Kinds and modes before a request is sent, and after a grant: what is refused, and what a store
// makes of the tokens of both modes.
#include <holdfast/holdfast.hpp>

#include "catch.hpp"

namespace hf = holdfast;
using hf::errc;
using namespace std::chrono_literals;

namespace {

std::string kinds_url() {
    static std::atomic<int> number{0};
    return "memory:kinds" + std::to_string(++number);
}

struct Kinds {
    hf::Client client = hf::Client::open(kinds_url()).value();
    std::unique_ptr<hf::Lock> mutex = client.make_lock("it").value();
    std::unique_ptr<hf::Lock> shared =
        client.make_lock("it", {.kind = hf::Kind::shared_mutex}).value();
    std::unique_ptr<hf::Lock> semaphore(std::uint32_t limit) {
        return client.make_lock("it", {.kind = hf::Kind::semaphore, .limit = limit}).value();
    }
};

}  // namespace

TEST_CASE("kinds: a store with two numbers refuses the stale ones of both modes", "[kinds]") {
    Kinds g;
    hf::FencedResource store;
    const auto nothing = [] {};
    auto stale_writer = g.shared->try_acquire().value();
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    auto reader = g.shared->try_acquire_shared().value();
    CHECK(store.write(stale_writer.fencing_token(), nothing));  // nobody has read yet
    CHECK(store.read(reader.fencing_token(), nothing));
    CHECK_FALSE(store.write(stale_writer.fencing_token(), nothing));
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    auto writer = g.shared->try_acquire().value();
    CHECK(store.write(writer.fencing_token(), nothing));
    CHECK_FALSE(store.read(reader.fencing_token(), nothing));
    CHECK_FALSE(store.read({}, nothing));
    CHECK(store.highest() == writer.fencing_token());
}

TEST_CASE("kinds: what a lock does not have is refused before anything is sent", "[kinds]") {
    Kinds g;
    const auto words = [](auto&& call) {
        hf::Diagnostics d;
        const auto r = call(d);
        REQUIRE_FALSE(r.has_value());
        return std::pair<hf::error_code, std::string>(r.error(), d.text());
    };
    const auto acquire = [&](hf::Lock& lock, hf::AcquireOptions o) {
        return words([&](hf::Diagnostics& d) {
            o.diagnostics = &d;
            return lock.acquire(o);
        });
    };
    const auto make = [&](const hf::LockOptions& o) {
        return words([&](hf::Diagnostics& d) { return g.client.make_lock("x", o, &d); });
    };
    const auto sem = g.semaphore(4);
    CHECK(acquire(*g.mutex, {.mode = hf::Mode::shared}).first == errc::not_supported);
    CHECK(acquire(*sem, {.mode = hf::Mode::shared}).first == errc::not_supported);
    CHECK(acquire(*g.shared, {.permits = 2}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 0}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 5}).first == errc::bad_config);
    CHECK(acquire(*sem, {.permits = 5}).second.find("5 permits of 4") != std::string::npos);
    CHECK(make({.kind = hf::Kind::semaphore, .limit = 0}).first == errc::bad_config);
    CHECK(make({.kind = hf::Kind::semaphore, .limit = 65'536}).first == errc::bad_config);
    CHECK(make({.limit = 2}).first == errc::bad_config);
    CHECK(make({.lock_delay = -1ms}).first == errc::bad_config);
    CHECK(make({.min_hold = 25h}).first == errc::bad_config);
    CHECK(g.client.list("").value().empty());
    auto permit = sem->acquire().value();
    CHECK(permit.downgrade().error() == errc::not_supported);
}
