// Readers and writers at nodes that run the scripts as they are shipped: nobody beside a writer, no
// token in the wrong order, in any order of messages, with crashes, downgrades, leases that end and
// nodes that lose their data. A rule that is left out is caught. A failure prints its seed.
#include <array>
#include <iostream>

#include "five.hpp"
#include "holdfast/spi/drift.hpp"
#include "world.hpp"

using namespace redlock_tests;

namespace {

/// Clients that come and go for a while.
class Mixed {
public:
    Mixed(unsigned seed, Weaker weaker, bool votes_at_once)
        : world_(seed % 2 == 0 ? 3 : 5, seed), votes_at_once_(votes_at_once) {
        world_.weaker = std::move(weaker);
    }
    /// Why it is wrong; empty: it is not.
    std::string run() {
        for (int i = 0; i < 150 && wrong_.empty(); ++i) {
            Part& p = parts_[world_.dice(parts_.size())];
            if (p.client.over) next(p);
            for (unsigned k = world_.dice(6); k > 0; --k)
                world_.step(p.client);
            if (p.client.over) look(p);
            maybe_lose_data();
        }
        return wrong_;
    }
    int grants = 0, together = 0, downgrades = 0;

private:
    enum class Doing { nothing, acquiring, holding, renewing, releasing };
    struct Part {
        World::Client client;
        Doing doing = Doing::nothing;
        Units units;
        boot_clock::time_point valid_until{};
        std::uint64_t above_any = 0, above_writers = 0;  // when it began
    };

    bool valid(const Part& p) const {
        return (p.doing == Doing::holding || p.doing == Doing::renewing) &&
               world_.now < p.valid_until;
    }
    void next(Part& p) {
        if (p.doing == Doing::holding && !valid(p)) p.doing = Doing::nothing;
        if (p.doing == Doing::nothing) {
            // Whoever held it before has crashed, or has released it.
            p.units = world_.dice(2) == 0 ? reader : Units();
            p.above_any = highest_, p.above_writers = highest_written_;
            world_.begin(p.client, letter_ + std::to_string(++owners_), p.units);
            letter_ = letter_ == 'z' ? 'a' : static_cast<char>(letter_ + 1);
            p.doing = Doing::acquiring;
            return;
        }
        const auto what = world_.dice(8);
        if (what == 0) {
            p.doing = Doing::nothing;  // a crash: what it holds ends by itself
        } else if (what < 4) {
            if (what == 1 && p.units.exclusive()) {
                p.units = reader;
                ++downgrades;
            }
            p.client.held.units = p.units;
            world_.renew(p.client, p.units);
            p.doing = Doing::renewing;
        } else {
            p.client.held.units = p.units;
            world_.release(p.client);
            p.doing = Doing::releasing;
        }
    }
    void look(Part& p) {
        const auto ttl = World::ttl - holdfast::spi::drift(World::ttl);
        if (p.doing == Doing::acquiring) {
            if (!World::granted(p.client) && world_.dice(3) > 0) {
                p.above_any = highest_, p.above_writers = highest_written_;
                return world_.again(p.client);
            }
            p.doing = Doing::nothing;
            if (!World::granted(p.client)) return;
            ++grants;
            p.doing = Doing::holding;
            p.valid_until = p.client.attempt.sent + ttl;
            const auto token = World::token(p.client);
            const auto floor = p.units.exclusive() ? p.above_any : p.above_writers;
            if (token <= floor) wrong_ = "a token in the wrong order";
            highest_ = std::max(highest_, token);
            if (p.units.exclusive()) highest_written_ = std::max(highest_written_, token);
            compare(p);
        } else if (p.doing == Doing::renewing) {
            p.doing = Doing::holding;
            if (p.client.held.renewal == Held::Renewal::renewed)
                p.valid_until = std::max(p.valid_until, p.client.held.sent + ttl);
            if (p.client.held.renewal == Held::Renewal::lost) p.doing = Doing::nothing;
            if (valid(p)) compare(p);
        } else if (p.doing == Doing::releasing) {
            p.doing = Doing::nothing;
        }
    }
    void compare(const Part& p) {
        for (const Part& other : parts_)
            if (&other != &p && valid(other)) {
                if (p.units.exclusive() || other.units.exclusive()) wrong_ = "two holders";
                ++together;
            }
    }
    void maybe_lose_data() {
        for (std::size_t i = 0; i < world_.voters.n; ++i)
            if (!world_.voters.may_vote[i] && world_.now >= votes_from_[i])
                world_.voters.may_vote[i] = true;
        const auto what = world_.dice(40);
        if (what == 0) world_.now += std::chrono::seconds(4);
        // One after the other: the next one when this one votes again, and where somebody holds.
        const bool held =
            std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return valid(p); });
        if (!loses_ || !held || what > 8 || world_.now < next_loss_) return;
        const auto node = world_.dice(world_.voters.n);
        world_.restart(node, votes_at_once_);
        votes_from_[node] = world_.now + World::ttl;
        next_loss_ = votes_at_once_ ? world_.now : votes_from_[node];
    }

    World world_;
    const bool votes_at_once_;
    std::array<Part, 4> parts_;
    std::array<boot_clock::time_point, 5> votes_from_{};
    boot_clock::time_point next_loss_{};
    bool loses_ = false;
    std::string wrong_;
    std::uint64_t highest_ = 0, highest_written_ = 0;
    char letter_ = 'a';
    unsigned owners_ = 0;

public:
    void lose_data() { loses_ = true; }
};

struct Ran {
    std::string wrong;
    int grants = 0, together = 0, downgrades = 0;
};

/// Until something is wrong; with lost data tokens may go back, so they are not looked at.
Ran runs(unsigned seed, unsigned count, const Weaker& weaker, bool lose, bool votes_at_once) {
    Ran out;
    for (unsigned i = 0; i < count; ++i) {
        Mixed mixed(seed + i, weaker, votes_at_once);
        if (lose) mixed.lose_data();
        const std::string wrong = mixed.run();
        out.grants += mixed.grants;
        out.together += mixed.together;
        out.downgrades += mixed.downgrades;
        if (wrong.empty() || (lose && wrong != "two holders")) continue;
        out.wrong = wrong + ", run " + std::to_string(i);
        break;
    }
    return out;
}

}  // namespace

TEST_CASE("units: readers beside each other, nobody beside a writer, in any order of messages",
          "[units][model]") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    const Ran all = runs(seed, 800, {}, false, false);
    CHECK(all.wrong == "");
    const Ran lost = runs(seed, 500, {}, true, false);
    CHECK(lost.wrong == "");
    std::cout << "redlock units, seed " << seed << ": " << all.grants << " grants, " << all.together
              << " beside others, " << all.downgrades << " downgrades\n";
    CHECK(all.grants > 1600);
    CHECK(all.together > 160);
    CHECK(all.downgrades > 10);
}

TEST_CASE("units: a rule that is left out is caught", "[units][model]") {
    const Weaker rules[] = {
        // A reader beside a writer.
        {"local free = not cur or (shares", "local free = true or (shares"},
        // A writer beside readers.
        {"local shares = mode == 'r' and cur == READERS", "local shares = cur == READERS"},
        // Readers' tokens are not compared with writers',
        {"if exclusive >= token then", "if false then"},
        // nor writers' with readers'.
        {"if last < token then last = token end", "last = exclusive"},
        // Whoever releases takes the others' marker.
        {"if call('ZCARD', hold) == 0 then call('DEL', lock) else measure() end",
         "call('DEL', lock)"},
    };
    const unsigned seed = std::random_device{}();
    for (const Weaker& rule : rules) {
        INFO("seed " << seed << ": " << rule.to);
        CHECK_FALSE(runs(seed, 3000, rule, false, false).wrong.empty());
    }
    // A node that has lost its data votes at once.
    CHECK_FALSE(runs(seed, 3000, {}, true, true).wrong.empty());
}

namespace {

/// One node, asked by several acquisitions.
struct Single {
    std::string enter(const std::string& owner, char mode, int ticket, int window = 0) {
        ++token_;
        const rl::Standing as{mode == 'r', mark(owner, mode, ticket), milliseconds(window)};
        return say(rl::enter_units_ask(keys(), owner, World::ttl, rl::token_text(token_), as,
                                       now + milliseconds(100)));
    }
    std::string mutex(const std::string& owner) {
        ++token_;
        return say(rl::enter_ask(keys(), owner, World::ttl, rl::token_text(token_),
                                 now + milliseconds(100)));
    }
    void leave(const std::string& owner, const std::string& marked = {},
               boot_clock::time_point closed_until = rl::Place::never) {
        node.run(rl::leave_ask(keys(), owner, marked, closed_until), now, {});
    }
    static std::string mark(const std::string& owner, char mode, int ticket) {
        return rl::mark_text(static_cast<std::uint64_t>(ticket), mode == 'r', owner);
    }
    boot_clock::time_point now{std::chrono::hours(1)};
    Node node;

private:
    static rl::Keys keys() {
        rl::Keys k;
        k.assign("", "name");
        return k;
    }
    std::string say(const Ask& a) { return node.run(a, now, {}).text.substr(0, 1); }
    std::uint64_t token_ = 1'000'000'000'000'000;
};

}  // namespace

TEST_CASE("units: who has waited is not passed, as long as it looks", "[units]") {
    Single a;
    REQUIRE(a.enter("r1", 'r', 1) == "g");
    CHECK(a.mutex("m") == "u");
    CHECK(a.enter("w5", 'w', 5, 300) == "b");
    CHECK(a.enter("r9", 'r', 9) == "b");     // it came later
    CHECK(a.enter("r3", 'r', 3) == "g");     // it did not
    CHECK(a.enter("again", 'r', 0) == "g");  // a repair
    CHECK(a.enter("w4", 'w', 4, 300) == "b");
    CHECK(a.enter("w6", 'w', 6, 300) == "b");
    for (const char* reader : {"r1", "r3", "again"})
        a.leave(reader);
    REQUIRE(a.node.lock(a.now).empty());
    // Of three that wait, the first; a mutex asks as they do.
    CHECK(a.mutex("m") == "u");
    REQUIRE(a.node.lock(a.now).empty());
    CHECK(a.enter("m", 'w', 9) == "b");
    CHECK(a.enter("w6", 'w', 6, 300) == "b");
    CHECK(a.enter("w5", 'w', 5, 300) == "b");
    // The first one looks no more.
    a.now += milliseconds(301);
    CHECK(a.enter("w6", 'w', 6, 300) == "g");
    a.leave("w6");
    CHECK(a.mutex("m") == "g");  // nobody waits
    a.leave("m");
}

TEST_CASE("units: readers behind a writer that gives up are let in at once", "[units]") {
    Single a;
    REQUIRE(a.enter("r1", 'r', 1) == "g");
    CHECK(a.enter("w2", 'w', 2, 300) == "b");
    CHECK(a.enter("r3", 'r', 3, 300) == "b");
    a.leave("w2", Single::mark("w2", 'w', 2));
    CHECK(a.enter("r3", 'r', 3) == "g");
    // A reader that waits keeps writers that come later out, one after the other.
    a.leave("r1");
    a.leave("r3");
    REQUIRE(a.enter("w4", 'w', 4) == "g");
    CHECK(a.enter("r5", 'r', 5, 300) == "b");
    a.leave("w4");
    CHECK(a.enter("w6", 'w', 6) == "b");
    CHECK(a.enter("r5", 'r', 5) == "g");
}

TEST_CASE(
    "units: a reader that releases before min_hold keeps writers out until then, and no reader",
    "[units]") {
    Single a;
    REQUIRE(a.enter("r1", 'r', 1) == "g");
    a.leave("r1", {}, a.now + milliseconds(500));
    CHECK(a.mutex("m") == "u");
    CHECK(a.enter("w2", 'w', 2) == "b");
    a.now += milliseconds(499);
    CHECK(a.enter("w2", 'w', 2) == "b");
    CHECK(a.enter("r3", 'r', 3) == "g");
    a.leave("r3");
    a.now += milliseconds(2);
    CHECK(a.enter("w2", 'w', 2) == "g");
}
