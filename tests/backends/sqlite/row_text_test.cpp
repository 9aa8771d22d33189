// What a row says of a name's state, and that nothing of it depends on who wrote it.
#include <map>
#include <random>

#include "fixture.hpp"

namespace holdfast::sqlite::test {
namespace {

using spi::NameState;
using sql::Columns;

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
        state->least_token = now;
        return *state;
    }
    Step& run(Step& s) {
        NameState state = read();
        s.run(state);
        keep(state);
        return s;
    }
    /// The row says all of it that counts.
    void keep(const NameState& state) {
        if (!state.changed) return;
        row = sql::columns_of(state, row);
        const NameState again = read();
        CHECK(again.token == state.token);
        CHECK(again.holders == state.holders);
        CHECK(again.waiters == state.waiters);
        CHECK(again.broken == state.broken);
        const bool alone = !state.holders.empty() && state.holders.front().exclusive();
        if (!alone && !state.ended) CHECK(again.previous == state.previous);
        // What removes rows looks at no text.
        if (!state.holders.empty() || state.ended) return;
        for (const auto& w : state.waiters)
            CHECK(row.expires >= w.until);
        for (const auto& b : state.broken)
            CHECK(row.expires >= b.until);
    }
    /// Breaks one of the holders, or asks it to release.
    void operate(const std::string& owner, bool breaks, bool now_too) {
        NameState state = read();
        HolderFilter which;
        which.owner = owner;
        const spi::Tell what = !breaks   ? spi::Tell::asked
                               : now_too ? spi::Tell::gone
                                         : spi::Tell::revoked;
        CHECK(state.tell(which, what)->holders.size() == 1);
        keep(state);
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

TEST_CASE("row: what stood before the machine was started keeps nobody out for longer") {
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

TEST_CASE("row: a text that is not ours, or not whole, is nobody's state") {
    RowOnly t;
    REQUIRE(t.granted("r1", reader));
    t.now += NameState().place_after;
    CHECK_FALSE(t.granted("w", writer, t.now - NameState().place_after));
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

TEST_CASE("row: whoever comes and goes, nobody is beside one who is alone, and tokens grow") {
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
        const auto what = random() % 7;
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
            believers[owner] = {t.read().find(owner)->units, token, t.now + spi::to_us(s.ttl)};
        } else if (!believers.empty()) {
            const auto [owner, b] = any(believers);
            if (what == 3 && b.units.exclusive() && random() % 2 == 0)
                believers[owner].units = reader;  // from the call on
            if (what == 3) {
                const Step s = t.end(Step::Kind::renew, owner, believers[owner].units);
                REQUIRE(s.renewal == spi::Held::Renewal::renewed);
                believers[owner].until = t.now + 10 * second;
            } else if (what == 6) {
                const auto breaks = random() % 3;
                t.operate(owner, breaks != 0, breaks == 2);
                if (breaks != 0) believers.erase(owner);
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
