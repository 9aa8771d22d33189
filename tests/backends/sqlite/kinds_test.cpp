// Kinds of locks in a file: what a program that knows exclusive locks only makes of the rows, what
// is deleted of them, and that a mutex goes its own way again afterwards.
#include <atomic>
#include <vector>

#include "fixture.hpp"

namespace holdfast::sqlite::test {
namespace {

Step beside(Table& t, Step::Kind kind, const std::string& owner, std::int64_t token = 0,
            const spi::Units& units = {1, spi::Units::all, Mode::shared}) {
    Step s = t.step(kind, "a", owner);
    s.units = units;
    s.token = token;
    return t.run(s);
}

std::int64_t token_of(const Step& s) {
    const auto* g = std::get_if<spi::Attempt::Granted>(&s.outcome);
    REQUIRE(g != nullptr);
    return static_cast<std::int64_t>(g->token.value);
}

}  // namespace

TEST_CASE("kinds: a program that knows exclusive locks only sees a row that is held and not its") {
    const File file;
    Table t(file);
    const auto first = t.grant("a", "writer");
    REQUIRE(t.release("a", "writer", first.token) == ReleaseResult::released);
    const auto reader = token_of(beside(t, Step::Kind::attempt, "reader"));
    // It refuses rows with `meta`, shows those that have an owner and have not run out, and deletes
    // those that have none.
    CHECK(file.sql("SELECT meta IS NOT NULL AND owner = 'hf:s' AND expires - ttl < expires FROM "
                   "holdfast_lease") == "1");
    CHECK(t.busy("a", "mutex"));
    CHECK(beside(t, Step::Kind::release, "reader", reader).released == ReleaseResult::released);
    CHECK(file.sql("SELECT meta IS NULL AND owner IS NULL AND mark = 1 FROM holdfast_lease") ==
          "1");
    CHECK(t.grant("a", "mutex").previous == PreviousHolder::released);
}

TEST_CASE("kinds: the sweeper leaves what is held beside others, and takes what has run out") {
    const File file;
    Table t(file);
    (void)beside(t, Step::Kind::attempt, "reader");
    file.sql("UPDATE holdfast_lease SET token = 1, mark = 1");
    sweep(t.connection, boot_clock::now() + 2s);
    CHECK(file.sql("SELECT count(*) FROM holdfast_lease") == "1");
    file.sql("UPDATE holdfast_lease SET expires = 1");
    sweep(t.connection, boot_clock::now() + 2s);
    CHECK(file.sql("SELECT count(*) FROM holdfast_lease") == "0");
}

TEST_CASE("kinds: the sweeper leaves the place of a waiter that nobody is before any more") {
    const File file;
    Table t(file);
    const spi::Units two{2, 3, Mode::exclusive}, three{3, 3, Mode::exclusive};
    const auto holds = token_of(beside(t, Step::Kind::attempt, "holder", 0, two));
    Step waits = t.step(Step::Kind::attempt, "a", "waiter");
    waits.units = three;
    waits.queue = true;
    waits.ticket = boot_us() - 2 * spi::NameState().place_after;
    REQUIRE(std::holds_alternative<spi::Attempt::Busy>(t.run(waits).outcome));
    REQUIRE(beside(t, Step::Kind::release, "holder", holds, two).released ==
            ReleaseResult::released);
    // Permits take no token: a row of theirs always looks as if it were old.
    sweep(t.connection, boot_clock::now() + 2s);
    CHECK(file.sql("SELECT meta LIKE '% waiter%' FROM holdfast_lease") == "1");
    file.sql("UPDATE holdfast_lease SET expires = 1");
    sweep(t.connection, boot_clock::now() + 2s);
    CHECK(file.sql("SELECT count(*) FROM holdfast_lease") == "0");
}

TEST_CASE("kinds: who waits notices what another process does, all that can come in at once") {
    const File file;
    Table t(file);  // tells nobody of this process
    auto client = Client::open(file.url + "?ttl=60s");
    REQUIRE(client.has_value());
    std::atomic<int> in{0};
    std::vector<Lease> leases(3);
    const auto wait_for = [&](const LockOptions& kind, const AcquireOptions& how) {
        in = 0;
        for (auto& lease : leases)
            client->make_lock("a", kind).value()->async_acquire(
                how, [&in, &lease](error_code ec, Lease l) {
                    CHECK_FALSE(ec);
                    lease = std::move(l);
                    ++in;
                });
        lab::wait_until([&] { return client->stats().waiting == 3; }, 10s, "they wait");
    };
    const auto all_in = [&] {
        lab::wait_until([&] { return in == 3; }, 10s, "all are in");
        for (auto& lease : leases)
            CHECK(lease.release() == ReleaseResult::released);
    };
    const auto writer = t.grant("a", "writer");
    wait_for({.kind = Kind::shared_mutex}, {.wait = 60s, .mode = Mode::shared});
    REQUIRE(t.release("a", "writer", writer.token) == ReleaseResult::released);
    all_in();
    const spi::Units two{2, 3, Mode::exclusive}, one{1, 3, Mode::exclusive};
    (void)token_of(beside(t, Step::Kind::attempt, "two", 0, two));
    (void)token_of(beside(t, Step::Kind::attempt, "one", 0, one));
    wait_for({.kind = Kind::semaphore, .limit = 3}, {.wait = 60s});
    CHECK(beside(t, Step::Kind::release, "one", 0, one).released == ReleaseResult::released);
    lab::wait_until([&] { return in == 1; }, 10s, "one permit, one of them");
    CHECK(beside(t, Step::Kind::release, "two", 0, two).released == ReleaseResult::released);
    all_in();
    CHECK(file.sql("SELECT meta IS NULL AND owner IS NULL FROM holdfast_lease") == "1");
}

}  // namespace holdfast::sqlite::test
