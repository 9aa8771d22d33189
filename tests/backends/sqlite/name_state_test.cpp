// The rules of all kinds of locks on a table, without one: who comes in beside whom and who has to
// wait, what a row says of it, and that nothing of it depends on which of them wrote it.
#include <map>
#include <random>

#include "fixture.hpp"

namespace holdfast::sqlite::test {
namespace {

using sql::Columns;
using sql::NameState;

constexpr std::int64_t second = 1'000'000;

/// A row, and a clock that stands still until somebody moves it.
struct RowOnly {
    Columns row;
    std::int64_t now = 1000 * second;
    bool restarts = true;

    RowOnly() { row.span = 0; }
    NameState read() const {
        auto state = sql::read_state(row, now, restarts);
        REQUIRE(state.has_value());
        state->least = now;
        return *state;
    }
    Step& run(Step& s) {
        NameState state = read();
        state.run(s);
        if (state.changed) row = sql::columns_of(state, row);
        return s;
    }
    Step attempt(const std::string& owner, const spi::Units& units, std::int64_t ticket = 0,
                 milliseconds ttl = 10s, milliseconds delay = 0ms) {
        Step s;
        s.kind = Step::Kind::attempt;
        s.owner = owner;
        s.units = units;
        s.ttl = ttl;
        s.lock_delay = delay;
        s.ticket = ticket;
        s.queue = ticket != 0;
        return run(s);
    }
    bool granted(const std::string& owner, const spi::Units& units, std::int64_t ticket = 0) {
        const Step s = attempt(owner, units, ticket);
        return std::holds_alternative<spi::Attempt::Granted>(s.outcome);
    }
    Step end(Step::Kind kind, const std::string& owner, const spi::Units& units = {},
             milliseconds min_hold = 0ms) {
        Step s;
        s.kind = kind;
        s.owner = owner;
        s.units = units;
        s.ttl = 10s;
        s.min_hold = min_hold;
        NameState state = read();
        if (const auto* own = state.find(owner)) s.token = own->token;
        return run(s);
    }
};

const spi::Units writer{}, reader{1, spi::Units::all, Mode::shared};

spi::Units permits(std::uint32_t take, std::uint32_t of) {
    return {take, of, Mode::exclusive};
}

}  // namespace

TEST_CASE(
    "name state: a writer that has waited for long is not passed, and is no waiter for ever") {
    RowOnly t;
    REQUIRE(t.granted("r1", reader));
    const auto came = t.now;
    CHECK_FALSE(t.granted("w", writer, came));
    CHECK(t.granted("r2", reader));  // it waits for a moment only
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("w", writer, came));
    CHECK_FALSE(t.granted("r3", reader));
    CHECK_FALSE(t.granted("r4", reader, came + 1));
    CHECK(t.granted("r5", reader, came - 1));  // it came before
    SECTION("its mark is taken away with it") {
        t.end(Step::Kind::withdraw, "w");
        CHECK(t.granted("r3", reader));
    }
    SECTION("it lapses when nobody looks for it") {
        t.now += NameState::mark_lasts - 1;
        CHECK_FALSE(t.granted("r3", reader));
        t.now += 1;
        CHECK(t.granted("r3", reader));
    }
    SECTION("it is granted when the readers have left") {
        for (const auto* r : {"r1", "r2", "r5"})
            t.end(Step::Kind::release, r, reader);
        CHECK_FALSE(t.granted("r3", reader));  // though nobody holds it
        CHECK(t.granted("w", writer, came));
        CHECK(t.row.text.empty());
        CHECK(t.row.owner == "w");
    }
}

TEST_CASE("name state: a reader is not passed by writers one after another") {
    RowOnly t;
    REQUIRE(t.granted("w1", writer));
    const auto came = t.now;
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("r", reader, came));
    CHECK(t.row.owner == "w1");  // in its own columns, as before
    CHECK(t.end(Step::Kind::release, "w1").released == ReleaseResult::released);
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.granted("other", reader));  // fits beside it
    CHECK(t.granted("r", reader, came));
    CHECK(t.granted("r2", reader));
}

TEST_CASE("name state: those with marks stand as they came, however a clock is read later on") {
    RowOnly t;
    REQUIRE(t.granted("r", reader));
    const auto came = t.now;
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("first", writer, came - 1));
    CHECK_FALSE(t.granted("second", writer, came));
    t.end(Step::Kind::release, "r", reader);
    // Each of them was there before the other, as far as it knows.
    CHECK_FALSE(t.granted("second", writer, came - 2));
    CHECK(t.granted("first", writer, came + 1));
}

TEST_CASE("name state: exclusive ones leave no marks for each other") {
    RowOnly t;
    REQUIRE(t.granted("w1", writer));
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("w2", writer, t.now - NameState::aged));
    CHECK(t.row.text.empty());
}

TEST_CASE("name state: four permits that are waited for are not passed by one") {
    RowOnly t;
    REQUIRE(t.granted("three", permits(3, 5)));
    REQUIRE(t.granted("two", permits(2, 5)));
    const auto came = t.now;
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("four", permits(4, 5), came));
    t.end(Step::Kind::release, "two", permits(2, 5));
    CHECK_FALSE(t.granted("one", permits(1, 5), came + 1));
    t.end(Step::Kind::release, "three", permits(3, 5));
    CHECK(t.granted("one", permits(1, 5), came + 1));  // both fit
    CHECK(t.granted("four", permits(4, 5), came));
    CHECK_FALSE(t.granted("more", permits(1, 5)));
    // Another limit waits for nothing: it is refused until the last of these has left.
    const auto refused = [&] {
        const Step s = t.attempt("other", permits(1, 3));
        return std::holds_alternative<spi::Attempt::Failed>(s.outcome);
    };
    CHECK(refused());
    t.end(Step::Kind::release, "four", permits(4, 5));
    CHECK(refused());
    t.end(Step::Kind::release, "one", permits(1, 5));
    CHECK_FALSE(refused());
}

TEST_CASE("name state: after a downgrade readers come in, and no writer that waits") {
    RowOnly t;
    const auto token = t.granted("w", writer) ? t.row.token : 0;
    const auto came = t.now;
    t.now += NameState::aged + 1;
    CHECK_FALSE(t.granted("r", reader, came));
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.end(Step::Kind::renew, "w", reader).renewal == spi::Held::Renewal::renewed);
    CHECK(t.row.owner == sql::shared_marker);
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.granted("r", reader, came));
    CHECK_FALSE(t.granted("late", reader));  // behind the writer
    CHECK(t.read().find("w")->token == token);
    // Said once more, as the answer was lost.
    CHECK(t.end(Step::Kind::renew, "w", reader).renewal == spi::Held::Renewal::renewed);
    t.end(Step::Kind::release, "w", reader);
    t.end(Step::Kind::release, "r", reader);
    const Step next = t.attempt("w2", writer, came + 1);
    const auto* g = std::get_if<spi::Attempt::Granted>(&next.outcome);
    REQUIRE(g != nullptr);
    CHECK(g->previous == PreviousHolder::released);
}

TEST_CASE("name state: a writer that crashed is what the next writer is told, not the reader") {
    RowOnly t;
    REQUIRE(t.granted("w", writer));
    t.now += 11 * second;
    const Step r = t.attempt("r", reader);
    CHECK(std::get<spi::Attempt::Granted>(r.outcome).previous == PreviousHolder::crashed);
    t.end(Step::Kind::release, "r", reader);
    const Step w = t.attempt("w2", writer);
    CHECK(std::get<spi::Attempt::Granted>(w.outcome).previous == PreviousHolder::crashed);
}

TEST_CASE("name state: a grant that was given back unused is no holder that crashed") {
    RowOnly t;
    REQUIRE(t.granted("w1", writer));
    t.end(Step::Kind::release, "w1");
    REQUIRE(t.granted("w2", writer));
    t.end(Step::Kind::withdraw, "w2");
    const Step w = t.attempt("w3", writer);
    CHECK(std::get<spi::Attempt::Granted>(w.outcome).previous == PreviousHolder::released);
}

TEST_CASE("name state: of several holders one leaves early, and the name is closed for it alone") {
    RowOnly t;
    REQUIRE(t.granted("r1", reader));
    REQUIRE(t.granted("r2", reader));
    t.end(Step::Kind::release, "r1", reader, 5s);
    t.end(Step::Kind::release, "r2", reader);
    CHECK(t.row.owner == sql::closed_marker);
    CHECK(t.read().inspect("N").holders.empty());
    CHECK(t.read().inspect("N").closed_for == 5001ms);
    CHECK(t.granted("r3", reader));
    CHECK_FALSE(t.granted("w", writer));
    t.end(Step::Kind::release, "r3", reader);
    t.now += 5 * second;
    CHECK(t.granted("w", writer));
}

TEST_CASE("name state: a broken holder hears why until its lease would have ended") {
    for (const auto& units : {writer, reader, permits(2, 3)}) {
        RowOnly t;
        REQUIRE(t.granted("a", units));
        const auto token = t.read().find("a")->token;
        const auto said_to = [&](Step::Kind kind, const char* owner) {
            Step s;
            s.kind = kind;
            s.owner = owner;
            s.units = units;
            s.token = token;
            s.ttl = 10s;
            return t.run(s);
        };
        NameState state = t.read();
        std::string detail;
        REQUIRE(state.break_up({.now = true}, detail).size() == 1);
        t.row = sql::columns_of(state, t.row);
        CHECK(t.read().inspect("N").holders.empty());
        CHECK(said_to(Step::Kind::renew, "a").error == errc::revoked);
        CHECK(said_to(Step::Kind::release, "a").released == ReleaseResult::owned_by_other);
        const Step next = t.attempt("b", units);
        const auto* g = std::get_if<spi::Attempt::Granted>(&next.outcome);
        REQUIRE(g != nullptr);
        CHECK(g->previous == (units.permits()     ? PreviousHolder::unknown
                              : units.exclusive() ? PreviousHolder::crashed
                                                  : PreviousHolder::none));
        CHECK(said_to(Step::Kind::renew, "a").error == errc::revoked);
        CHECK(said_to(Step::Kind::release, "a").released == ReleaseResult::owned_by_other);
        CHECK(said_to(Step::Kind::renew, "c").error == errc::lost);
        t.now += 10 * second;
        CHECK(said_to(Step::Kind::renew, "a").error == errc::lost);
        CHECK(t.granted("d", units));
        CHECK(t.row.text.find("gone") == std::string::npos);
    }
}

TEST_CASE("name state: a renewal keeps the lock delay, and a reader its shortest time") {
    for (const auto& units : {writer, reader}) {
        RowOnly t;
        REQUIRE(std::holds_alternative<spi::Attempt::Granted>(
            t.attempt("a", units, 0, 10s, 60s).outcome));
        t.now += 5 * second;
        Step renewal;
        renewal.kind = Step::Kind::renew;
        renewal.owner = "a";
        renewal.units = units;
        renewal.ttl = 10s;
        renewal.lock_delay = 60s;
        renewal.token = t.read().find("a")->token;
        CHECK(t.run(renewal).renewal == spi::Held::Renewal::renewed);
        t.now += 69 * second;
        CHECK_FALSE(t.granted("b", writer));
        t.now += 1 * second;
        CHECK(t.granted("b", writer));
    }
    RowOnly t;
    REQUIRE(t.granted("r", reader));
    t.end(Step::Kind::release, "r", reader, 5s);
    t.now += 5 * second - 1;
    CHECK_FALSE(t.granted("w", writer));
    t.now += 1;
    CHECK(t.granted("w", writer));
}

TEST_CASE("name state: what stood before the machine was started keeps nobody out for longer") {
    RowOnly t;
    REQUIRE(t.granted("r", reader));
    t.now = 30 * second;
    CHECK(t.granted("w", writer));
    // Another machine's clock goes on, whatever it says.
    RowOnly server;
    server.row.span = sql::any_span;
    server.restarts = false;
    REQUIRE(server.granted("r", reader));
    server.now = 30 * second;
    CHECK_FALSE(server.granted("w", writer));
}

TEST_CASE("name state: a text that is not ours, or not whole, is nobody's state") {
    RowOnly t;
    REQUIRE(t.granted("r1", reader));
    t.now += NameState::aged;
    CHECK_FALSE(t.granted("w", writer, t.now - NameState::aged));
    const Columns whole = t.row;
    for (const char* text : {"semaphore", "hf 2\n", "hf 1\npart\n", "hf 1\npart 1\n",
                             "hf 1\nwhat 1 x\n", "hf 1", "hf 1\nheld 1\n"}) {
        INFO(text);
        Columns other = whole;
        other.text = text;
        CHECK_FALSE(sql::read_state(other, t.now, true).has_value());
    }
    // Where a line was cut off, there is no state; where whole lines are, there is.
    for (std::size_t n = 1; n < whole.text.size(); ++n) {
        Columns cut = whole;
        cut.text.resize(n);
        CHECK(sql::read_state(cut, t.now, true).has_value() ==
              (n >= sql::text_begins.size() && cut.text.back() == '\n'));
    }
}

TEST_CASE(
    "name state: whoever comes and goes, nobody is beside one who is alone, and tokens grow") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    struct Believer {
        spi::Units units;
        std::int64_t token, until;
    };
    RowOnly t;
    std::map<std::string, Believer> believers;
    std::map<std::string, spi::Units> wanted;
    std::int64_t written = 0, read = 0;
    int next = 0, grants = 0, beside = 0;
    const bool of_permits = random() % 2 == 0;
    const auto units = [&] {
        if (of_permits) return permits(1 + static_cast<std::uint32_t>(random() % 4), 5);
        return random() % 3 == 0 ? writer : reader;
    };
    const auto any = [&](const auto& of) {
        auto at = of.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % of.size()));
        return *at;
    };
    for (int i = 0; i < 20'000; ++i) {
        t.now += static_cast<std::int64_t>(random() % 300'000);
        std::erase_if(believers, [&](const auto& b) { return b.second.until <= t.now; });
        const auto what = random() % 6;
        if (what < 3) {
            const std::string owner = "o" + std::to_string(next++ % 40);
            if (believers.contains(owner)) continue;
            const auto u = units();
            const auto ticket = t.now - (random() % 16 == 0 ? 2 * second : 0);
            const Step s = t.attempt(owner, u, ticket, milliseconds(1 + random() % 4000),
                                     milliseconds(random() % 2 * 500));
            const auto* g = std::get_if<spi::Attempt::Granted>(&s.outcome);
            if (g == nullptr) continue;
            ++grants;
            const auto token = static_cast<std::int64_t>(g->token.value);
            if (u.mode == Mode::shared) {
                CHECK(token > written);
                read = std::max(read, token);
            } else if (!u.permits()) {
                CHECK(token > std::max(written, read));
                written = token;
            }
            believers[owner] = {t.read().find(owner)->units, token, t.now + sql::us(s.ttl)};
        } else if (!believers.empty()) {
            const auto [owner, b] = any(believers);
            if (what == 3 && b.units.exclusive() && random() % 2 == 0)
                believers[owner].units = reader;  // from the call on
            if (what == 3) {
                const Step s = t.end(Step::Kind::renew, owner, believers[owner].units);
                REQUIRE(s.renewal == spi::Held::Renewal::renewed);
                believers[owner].until = t.now + 10 * second;
            } else {
                const auto kind = what == 4 ? Step::Kind::release : Step::Kind::withdraw;
                t.end(kind, owner, b.units, milliseconds(random() % 3 * 200));
                believers.erase(owner);
            }
        }
        std::uint64_t sum = 0, of = 0;
        for (const auto& [owner, b] : believers) {
            sum += b.units.take;
            of = b.units.of;
        }
        beside += believers.size() > 1;
        REQUIRE(sum <= of);
    }
    CHECK(grants > 100);
    CHECK(beside > 30);
}

}  // namespace holdfast::sqlite::test
