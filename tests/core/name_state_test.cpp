// The rules of a name: who comes in beside whom and who has to wait, and what each verb and each
// operator's call leaves.
#include "holdfast/spi/name_state.hpp"

#include "catch.hpp"

#include "holdfast/spi/holder.hpp"

namespace hf = holdfast;
namespace spi = hf::spi;
using namespace std::chrono_literals;
using hf::errc;
using hf::PreviousHolder;
using hf::ReleaseResult;
using spi::NameState;
using spi::Tell;

namespace {

constexpr NameState::Time second = 1'000'000;

/// A name, and a clock that stands still until somebody moves it.
struct Name {
    NameState state;

    Name() { pass(1000 * second); }
    void pass(NameState::Time us) { state.expire(state.now + us); }
    NameState::Attempted attempt(const std::string& owner, const spi::Units& units,
                                 NameState::Time ticket = 0, hf::milliseconds delay = 0ms) {
        return state.attempt({.owner = owner,
                              .units = units,
                              .ttl = 10s,
                              .lock_delay = delay,
                              .queue = ticket != 0,
                              .ticket = ticket});
    }
    bool granted(const std::string& owner, const spi::Units& units, NameState::Time ticket = 0) {
        return attempt(owner, units, ticket).kind == NameState::Attempted::Kind::granted;
    }
    /// Of a grant.
    PreviousHolder told(const std::string& owner, const spi::Units& units,
                        NameState::Time ticket = 0) {
        const auto made = attempt(owner, units, ticket);
        REQUIRE(made.kind == NameState::Attempted::Kind::granted);
        return made.previous;
    }
    /// By the owner of a grant, with its token.
    NameState::Request of(const std::string& owner, const spi::Units& units,
                          hf::milliseconds min_hold = 0ms) {
        const auto* own = state.find(owner);
        return {.owner = own != nullptr ? std::string_view(own->owner) : std::string_view(owner),
                .units = units,
                .ttl = 10s,
                .min_hold = min_hold,
                .token = own != nullptr ? own->token : 0};
    }
    bool renews(const std::string& owner, const spi::Units& units) {
        return !state.renew(of(owner, units)).why;
    }
    ReleaseResult release(const std::string& owner, const spi::Units& units = {},
                          hf::milliseconds min_hold = 0ms) {
        return state.release(of(owner, units, min_hold)).result;
    }
};

const spi::Units writer{}, reader{1, spi::Units::all, hf::Mode::shared};

spi::Units permits(std::uint32_t take, std::uint32_t of) {
    return {take, of, hf::Mode::exclusive};
}

}  // namespace

TEST_CASE("name: a writer that has waited for long is not passed, and is no waiter for ever") {
    Name t;
    REQUIRE(t.granted("r1", reader));
    const auto came = t.state.now;
    CHECK_FALSE(t.granted("w", writer, came));
    CHECK(t.granted("r2", reader));  // it waits for a moment only
    t.pass(t.state.place_after);
    CHECK_FALSE(t.granted("w", writer, came));
    CHECK_FALSE(t.granted("r3", reader));
    CHECK_FALSE(t.granted("r4", reader, came + 1));
    CHECK(t.granted("r5", reader, came - 1));  // it came before
    SECTION("its mark is taken away with it") {
        t.state.withdraw("w");
        CHECK(t.granted("r3", reader));
    }
    SECTION("it lapses when nobody looks for it") {
        t.pass(NameState::place_lasts - 1);
        CHECK_FALSE(t.granted("r3", reader));
        t.pass(1);
        CHECK(t.granted("r3", reader));
    }
    SECTION("it is granted when the readers have left") {
        for (const auto* r : {"r1", "r2", "r5"})
            t.release(r, reader);
        CHECK_FALSE(t.granted("r3", reader));  // though nobody holds it
        CHECK(t.granted("w", writer, came));
    }
}

TEST_CASE("name: a reader is not passed by writers one after another") {
    Name t;
    REQUIRE(t.granted("w1", writer));
    const auto came = t.state.now;
    t.pass(t.state.place_after);
    CHECK_FALSE(t.granted("r", reader, came));
    CHECK(t.release("w1") == ReleaseResult::released);
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.granted("other", reader));  // fits beside it
    CHECK(t.granted("r", reader, came));
    CHECK(t.granted("r2", reader));
}

TEST_CASE("name: those with marks stand as they came, however a clock is read later on") {
    Name t;
    REQUIRE(t.granted("r", reader));
    const auto came = t.state.now;
    t.pass(t.state.place_after);
    CHECK_FALSE(t.granted("first", writer, came - 1));
    CHECK_FALSE(t.granted("second", writer, came));
    t.release("r", reader);
    // Each of them was there before the other, as far as it knows.
    CHECK_FALSE(t.granted("second", writer, came - 2));
    CHECK(t.granted("first", writer, came + 1));
}

TEST_CASE("name: exclusive ones leave no marks for each other") {
    Name t;
    REQUIRE(t.granted("w1", writer));
    t.pass(t.state.place_after);
    CHECK_FALSE(t.granted("w2", writer, t.state.now - t.state.place_after));
}

TEST_CASE("name: four permits that are waited for are not passed by one") {
    Name t;
    REQUIRE(t.granted("three", permits(3, 5)));
    REQUIRE(t.granted("two", permits(2, 5)));
    const auto came = t.state.now;
    t.pass(t.state.place_after);
    CHECK_FALSE(t.granted("four", permits(4, 5), came));
    t.release("two", permits(2, 5));
    CHECK_FALSE(t.granted("one", permits(1, 5), came + 1));
    t.release("three", permits(3, 5));
    CHECK(t.granted("one", permits(1, 5), came + 1));  // both fit
    CHECK(t.granted("four", permits(4, 5), came));
    CHECK_FALSE(t.granted("more", permits(1, 5)));
    // Another limit waits for nothing: it is refused until the last of these has left.
    const auto refused = [&] {
        return t.attempt("other", permits(1, 3)).kind ==
               NameState::Attempted::Kind::of_another_kind;
    };
    CHECK(refused());
    t.release("four", permits(4, 5));
    CHECK(refused());
    t.release("one", permits(1, 5));
    CHECK_FALSE(refused());
}

TEST_CASE("name: after a downgrade readers come in, and no writer that waits") {
    Name t;
    const auto token = t.granted("w", writer) ? t.state.token : 0;
    const auto came = t.state.now;
    t.pass(t.state.place_after + 1);
    CHECK_FALSE(t.granted("r", reader, came));
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.renews("w", reader));
    CHECK_FALSE(t.granted("w2", writer, came + 1));
    CHECK(t.granted("r", reader, came));
    CHECK_FALSE(t.granted("late", reader));  // behind the writer
    CHECK(t.state.find("w")->token == token);
    // Said once more, as the answer was lost.
    CHECK(t.renews("w", reader));
    t.release("w", reader);
    t.release("r", reader);
    CHECK(t.told("w2", writer, came + 1) == PreviousHolder::released);
}

TEST_CASE("name: a writer that crashed is what the next writer is told, not the reader") {
    Name t;
    REQUIRE(t.granted("w", writer));
    t.pass(11 * second);
    CHECK(t.told("r", reader) == PreviousHolder::crashed);
    t.release("r", reader);
    CHECK(t.told("w2", writer) == PreviousHolder::crashed);
}

TEST_CASE("name: a grant that was given back unused is no holder that crashed") {
    Name t;
    REQUIRE(t.granted("w1", writer));
    t.release("w1");
    REQUIRE(t.granted("w2", writer));
    t.state.withdraw("w2");
    CHECK(t.told("w3", writer) == PreviousHolder::released);
}

TEST_CASE("name: of several holders one leaves early, and the name is closed for it alone") {
    Name t;
    REQUIRE(t.granted("r1", reader));
    REQUIRE(t.granted("r2", reader));
    t.release("r1", reader, 5s);
    t.release("r2", reader);
    CHECK(t.state.survey().holders.empty());
    CHECK(t.state.survey().closed_for == 5001ms);
    CHECK(t.granted("r3", reader));
    CHECK_FALSE(t.granted("w", writer));
    t.release("r3", reader);
    t.pass(5 * second);
    CHECK(t.granted("w", writer));
}

TEST_CASE("name: a broken holder hears why until its lease would have ended") {
    for (const auto& units : {writer, reader, permits(2, 3)}) {
        Name t;
        REQUIRE(t.granted("a", units));
        const auto token = t.state.find("a")->token;
        const auto request = [&](const char* owner) {
            return NameState::Request{.owner = owner, .units = units, .ttl = 10s, .token = token};
        };
        const auto renewal = [&](const char* owner) { return t.state.renew(request(owner)).why; };
        REQUIRE(t.state.tell({}, Tell::gone)->holders.size() == 1);
        CHECK(t.state.survey().holders.empty());
        CHECK(renewal("a") == errc::revoked);
        CHECK(t.state.release(request("a")).result == ReleaseResult::owned_by_other);
        CHECK(t.told("b", units) == (units.permits()     ? PreviousHolder::unknown
                                     : units.exclusive() ? PreviousHolder::crashed
                                                         : PreviousHolder::none));
        CHECK(renewal("a") == errc::revoked);
        CHECK(t.state.release(request("a")).result == ReleaseResult::owned_by_other);
        CHECK(renewal("c") == errc::lost);
        t.pass(10 * second);
        CHECK(renewal("a") == errc::lost);
        CHECK(t.granted("d", units));
    }
}

TEST_CASE("name: a renewal keeps the lock delay, and a reader its shortest time") {
    for (const auto& units : {writer, reader}) {
        Name t;
        REQUIRE(t.attempt("a", units, 0, 60s).kind == NameState::Attempted::Kind::granted);
        t.pass(5 * second);
        auto renewal = t.of("a", units);
        renewal.lock_delay = 60s;
        CHECK_FALSE(t.state.renew(renewal).why);
        t.pass(69 * second);
        CHECK_FALSE(t.granted("b", writer));
        t.pass(1 * second);
        CHECK(t.granted("b", writer));
    }
    Name t;
    REQUIRE(t.granted("r", reader));
    t.release("r", reader, 5s);
    t.pass(5 * second - 1);
    CHECK_FALSE(t.granted("w", writer));
    t.pass(1);
    CHECK(t.granted("w", writer));
}

TEST_CASE("name: with places from the first attempt on they enter as they came") {
    Name t;
    t.state.place_after = 0;
    REQUIRE(t.granted("w1", writer));
    CHECK_FALSE(t.granted("w2", writer, t.state.now + 1));
    CHECK_FALSE(t.granted("r1", reader, t.state.now + 2));
    CHECK_FALSE(t.granted("r2", reader, t.state.now + 3));
    CHECK(t.state.admissible().empty());
    t.release("w1");
    CHECK(t.state.admissible() == std::vector<std::string_view>{"w2"});
    CHECK_FALSE(t.granted("r1", reader, t.state.now + 9));
    t.state.withdraw("w2");
    CHECK(t.state.admissible() == std::vector<std::string_view>{"r1", "r2"});
    CHECK(t.granted("r2", reader, t.state.now + 9));
    CHECK(t.state.waiters.size() == 1);
    t.pass(NameState::place_lasts);
    CHECK(t.state.waiters.empty());
}

TEST_CASE("survey: kind and limit are those of all in it, else of what closes the name") {
    const auto kind = [](const spi::Survey& s) { return spi::Survey(s).inspection("N").kind; };
    spi::Survey closed;
    CHECK(kind(closed) == hf::Kind::mutex);
    closed.units = permits(2, 5);
    CHECK(kind(closed) == hf::Kind::semaphore);
    spi::Survey shared;
    shared.holders.push_back({spi::holder_of("w"), writer});
    shared.holders.back().holder.token = {9};
    shared.waiters.push_back({spi::holder_of("r"), reader});
    shared.waiters.back().holder.token = {10};
    shared.waiters.back().holder.ttl_left = 1s;
    const auto seen = spi::Survey(shared).inspection("N");
    CHECK(seen.kind == hf::Kind::shared_mutex);
    CHECK(seen.holders.at(0).mode == hf::Mode::exclusive);
    CHECK(seen.last_token.value == 9);
    CHECK(seen.waiters.at(0).mode == hf::Mode::shared);
    CHECK(seen.waiters.at(0).token.value == 0);
    CHECK_FALSE(seen.waiters.at(0).ttl_left);
    spi::Survey some;
    some.holders.push_back({spi::holder_of("p"), permits(2, 5)});
    const auto held = spi::Survey(some).inspection("N");
    CHECK(held.limit == 5);
    CHECK(held.holders.at(0).permits == 2);
}

TEST_CASE("survey: what is gone is free at once, what is revoked when the backend says") {
    spi::Survey reached;
    reached.holders.push_back({spi::holder_of("w"), writer, 3s});
    const auto gone = spi::Survey(reached).broken(Tell::gone);
    CHECK(gone.at(0).free_in == 0ms);
    CHECK(gone.at(0).holder.revoked);
    CHECK(spi::Survey(reached).broken(Tell::revoked).at(0).free_in == 3s);
    CHECK(spi::Survey(reached).asked().at(0).asked);
}
