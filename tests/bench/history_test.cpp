// The checker's two promises: a history of a lock that kept its own raises nothing, and every kind
// of trouble that is put into one is found and called by its name.
#include <iostream>

#include "catch.hpp"
#include "histories.hpp"
#include "injection.hpp"

using namespace histories;
using history::Gravity;
using history::Trouble;
using history::Verdict;

namespace {

Shape some_shape(Random& random) {
    Shape s;
    s.processes = static_cast<int>(pick(random, 1, 6));
    s.names = static_cast<int>(pick(random, 1, 3));
    s.rounds = static_cast<int>(pick(random, 1, 25));
    s.fifo = chance(random, 0.6);
    s.kills = chance(random, 0.6);
    s.errors = chance(random, 0.6);
    s.pauses = chance(random, 0.6);
    return s;
}

}  // namespace

TEST_CASE("a history of a lock that kept its promises raises nothing", "[history]") {
    std::uint64_t stale = 0, found = 0, held = 0, held_found = 0, granted = 0, silent = 0,
                  judged = 0;
    for (int i = 0; i < times(300); ++i) {
        Random random(seed() + static_cast<std::uint64_t>(i));
        const World world = correct(random, some_shape(random));
        const Verdict v = world.judge();
        INFO("seed " << seed() << " + " << i << "\n" << v.text());
        REQUIRE(v.sound());
        REQUIRE(v.count(Gravity::damage) == 0);
        // What is observed was so: no more of it than there was.
        REQUIRE(v.count(Trouble::stale_unfenced) <= world.stale);
        REQUIRE((world.held_after > 0 || v.count(Trouble::held_after_error) == 0));
        REQUIRE(v.exit_code() == 0);
        stale += world.stale;
        found += v.count(Trouble::stale_unfenced);
        held += world.held_after;
        held_found += v.count(Trouble::held_after_error);
        granted += v.figures.granted;
        silent += v.figures.silent;
        judged += v.figures.inversions_judged;
    }
    // The histories were worth looking at.
    std::cout << granted << " grants, " << silent << " silent holders, " << judged
              << " seen in line, stale writes found " << found << " of " << stale
              << ", errors that held found " << held_found << " of " << held << '\n';
    CHECK(granted > 5000);
    CHECK(silent > 20);
    CHECK(judged > 500);
    CHECK(found > 20);
    CHECK(found * 2 > stale);
    CHECK(held_found > 0);
}

namespace {

/// Granted ones of a name, by grant.
std::vector<Trace> grants(const World& world, std::uint16_t name = 1) {
    std::vector<Trace> out;
    for (const Trace& t : traces(world))
        if (t.name == name && t.has(Kind::granted)) out.push_back(t);
    return out;
}

Nanos end_of(World& world, const Trace& t) {
    Nanos end = record(world, t, Kind::granted).until;
    for (const Kind k : {Kind::renewed, Kind::releasing, Kind::lost}) {
        if (!t.has(k)) continue;
        end = std::max(end, record(world, t, k).until);
    }
    for (const Kind k : {Kind::releasing, Kind::lost})
        if (t.has(k)) end = std::min(end, record(world, t, k).at);
    return end;
}

bool believed(World& world, const Trace& t) {
    return end_of(world, t) > record(world, t, Kind::granted).at;
}

/// Two beliefs of which the second follows the first, whatever is between them.
bool pair(World& world, Random& random, Trace& a, Trace& b, bool silent = false) {
    const auto all = grants(world);
    for (int tries = 0; all.size() >= 2 && tries < 1000; ++tries) {
        const auto i = static_cast<std::size_t>(pick(random, 0, std::ssize(all) - 2));
        a = all[i];
        b = all[static_cast<std::size_t>(
            pick(random, static_cast<std::int64_t>(i) + 1, std::ssize(all) - 1))];
        if (silent == (a.has(Kind::releasing) || a.has(Kind::lost))) continue;
        if (believed(world, a) && believed(world, b)) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("broken exclusion is found", "[history]") {
    find_always(Trouble::overlap, {}, [](World& world, Random& random) {
        Trace a, b;
        if (!pair(world, random, a, b)) return false;
        // The grant of b moves into the belief of a, which is known to have lived to its end.
        const Nanos from = record(world, a, Kind::granted).at;
        Record& grant = record(world, b, Kind::granted);
        grant.at = pick(random, from, end_of(world, a) - 1);
        Record& invoked = record(world, b, Kind::invoked);
        invoked.at = std::min(invoked.at, grant.at);
        return true;
    });
    find_always(Trouble::within_validity, {}, [](World& world, Random& random) {
        Trace a, b;
        if (!pair(world, random, a, b, true)) return false;
        record(world, a, Kind::granted).until =
            record(world, b, Kind::granted).at + pick(random, 1, 1000);
        return true;
    });
}

TEST_CASE("two grants in one nanosecond overlap, whoever is never heard of again", "[history]") {
    for (const bool silent : {true, false}) {
        World world;
        for (int p = 0; p < 2; ++p) {
            Random random(static_cast<std::uint64_t>(p));
            const Shape nobody{.processes = 1, .names = 1, .rounds = 0, .kills = false};
            world.logs.push_back(correct(random, nobody).logs[0]);
            auto& records = world.logs.back().records;
            records.pop_back();
            Record r;
            r.name = 1;
            r.id = std::uint64_t{world.logs.back().header.recorder} << 32U | 1U;
            const auto add = [&](Kind kind, Nanos at, Nanos until) {
                r.kind = kind;
                r.at = at;
                r.until = until;
                records.push_back(r);
            };
            add(Kind::invoked, 10, 0);
            r.token = static_cast<std::uint64_t>(p) + 1;
            add(Kind::granted, 100 + 100 * p, 300);
            if (p == 1 || !silent) add(Kind::releasing, 200 + 50 * p, 300);
        }
        // One after the other: at most within the validity of a holder of whom nothing is known.
        CHECK(world.judge().count(Trouble::overlap) == 0);
        CHECK(world.judge().count(Trouble::within_validity) == (silent ? 1 : 0));
        for (const int first : {0, 1}) {
            World same = world;
            for (Record& r : same.logs[1].records)
                if (r.kind == Kind::granted) r.at = 100;
            if (first == 1) std::swap(same.logs[0], same.logs[1]);
            CHECK(same.judge().count(Trouble::overlap) == 1);
        }
    }
}

TEST_CASE("tokens that lie are found", "[history]") {
    find_always(Trouble::token_order, {}, [](World& world, Random& random) {
        Trace a, b;
        if (!pair(world, random, a, b)) return false;
        // Tokens are given at least 3 apart.
        record(world, b, Kind::granted).token = record(world, a, Kind::granted).token - 1;
        return true;
    });
    find_always(Trouble::token_repeated, {}, [](World& world, Random& random) {
        const auto all = grants(world);
        if (all.size() < 2) return false;
        const auto i = static_cast<std::size_t>(pick(random, 1, std::ssize(all) - 1));
        const auto j = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(i) - 1));
        record(world, all[i], Kind::granted).token = record(world, all[j], Kind::granted).token;
        return true;
    });
    find_always(Trouble::token_missing, {}, [](World& world, Random& random) {
        const auto all = grants(world);
        if (all.empty()) return false;
        const auto i = static_cast<std::size_t>(pick(random, 0, std::ssize(all) - 1));
        record(world, all[i], Kind::granted).token = 0;
        return true;
    });
}

TEST_CASE("what stores should not have done is found", "[history]") {
    const auto fenced = [](const Record& r) {
        return r.kind == Kind::write && (r.detail & history::store_is_fenced) != 0;
    };
    find_always(Trouble::stale_fenced, {}, [&](World& world, Random& random) {
        Record* r = some(random, stores(world), fenced);
        if (r == nullptr) return false;
        Record late = *r;
        late.detail = history::store_is_fenced | history::write_accepted;
        late.token = r->token - 1;
        stores(world).insert(stores(world).begin() + (r - stores(world).data()) + 1, late);
        return true;
    });
    find_always(Trouble::rightful_refused, {}, [&](World& world, Random& random) {
        Record* r = some(random, stores(world), [&](const Record& x) {
            return fenced(x) && (x.detail & history::write_accepted) != 0;
        });
        if (r == nullptr) return false;
        r->detail = history::store_is_fenced;
        return true;
    });
    for (const bool by_id : {true, false})
        find_always(Trouble::stale_unfenced, {.pauses = false}, [=](World& world, Random& random) {
            Trace a, b;
            if (!pair(world, random, a, b)) return false;
            Record late;
            late.kind = Kind::write;
            late.name = 1;
            late.detail = history::write_accepted;
            late.id = by_id ? a.id : 0;
            late.token = record(world, a, Kind::granted).token;
            late.at = record(world, b, Kind::granted).at + pick(random, 1, 1000);
            insert(random, stores(world), late);
            return true;
        });
}

TEST_CASE("grants out of order and names left alone are found", "[history]") {
    find_always(Trouble::inversion, {}, [](World& world, Random& random) {
        Trace a, b;
        if (!pair(world, random, a, b)) return false;
        // b, granted later, had been seen in line before a asked.
        Record& asked = record(world, a, Kind::invoked);
        asked.at = std::min(asked.at + 5, record(world, a, Kind::granted).at);
        Record& early = record(world, b, Kind::invoked);
        early.at = std::min(early.at, asked.at - 3);
        Record seen;
        seen.kind = Kind::in_line;
        seen.name = 1;
        seen.id = b.id;
        seen.at = asked.at - 2;
        insert(random, stores(world), seen);
        return true;
    });
    constexpr Nanos limit = 100'000;
    find_always(Trouble::left_alone, {.errors = false},
                [](World& world, Random& random) {
                    const auto all = grants(world);
                    if (all.empty()) return false;
                    const auto i = static_cast<std::size_t>(pick(random, 0, std::ssize(all) - 1));
                    const Nanos then = record(world, all[i], Kind::granted).at;
                    if (!believed(world, all[i])) return false;
                    for (Log& log : world.logs)
                        for (Record& r : log.records) {
                            if (r.kind == Kind::name) continue;
                            if (r.at >= then) r.at += limit + 1;
                            if (r.kind >= Kind::granted && r.kind <= Kind::lost && r.until > then)
                                r.until += limit + 1;
                        }
                    // Holders of that time would hold on: nobody held when this one was granted.
                    return true;
                },
                {.alone = limit});
}

TEST_CASE("what holders say of others, and errors that held, are found", "[history]") {
    const Shape quiet{.kills = false, .errors = false, .pauses = false};
    find_always(Trouble::previous_holder, quiet, [](World& world, Random& random) {
        const auto all = grants(world);
        if (all.size() < 2) return false;
        Record& grant =
            record(world, all[static_cast<std::size_t>(pick(random, 1, std::ssize(all) - 1))],
                   Kind::granted);
        grant.detail = static_cast<std::uint8_t>(history::Previous::crashed);
        return true;
    });
    // Work half done is not told from work done, or the other way round.
    find_always(Trouble::previous_holder, quiet, [](World& world, Random& random) {
        std::vector<Record*> words;
        for (const Trace& t : grants(world)) {
            Record& grant = record(world, t, Kind::granted);
            const auto previous = static_cast<history::Previous>(grant.detail);
            if (previous == history::Previous::released || previous == history::Previous::abandoned)
                words.push_back(&grant);
        }
        if (words.empty()) return false;
        const auto i = static_cast<std::size_t>(pick(random, 0, std::ssize(words) - 1));
        const bool released =
            words[i]->detail == static_cast<std::uint8_t>(history::Previous::released);
        words[i]->detail = static_cast<std::uint8_t>(released ? history::Previous::abandoned
                                                              : history::Previous::released);
        return true;
    });
    // A reply that is lost would be such an error already.
    const Shape waits{
        .names = 1, .rounds = 6, .kills = false, .pauses = false, .lost_replies = false};
    const auto an_error = [](World& world, Random& random, Trace& out) {
        std::vector<Trace> errors;
        for (const Trace& t : traces(world))
            if (t.has(Kind::failed)) errors.push_back(t);
        if (errors.empty()) return false;
        out = errors[static_cast<std::size_t>(pick(random, 0, std::ssize(errors) - 1))];
        return true;
    };
    find_always(Trouble::held_after_error, waits, [&](World& world, Random& random) {
        Trace t;
        if (!an_error(world, random, t)) return false;
        const Record& failed = record(world, t, Kind::failed);
        Record r;
        r.name = t.name;
        if (chance(random, 0.5)) {
            r.kind = Kind::seen;
            r.owner = failed.owner;
            r.until = failed.at + 1;
        } else {
            r.kind = Kind::write;
            r.detail = history::write_accepted;
            r.id = t.id;
        }
        r.at = failed.at + 2;
        insert(random, stores(world), r);
        return true;
    });
    // An owner that nobody was granted as, while nobody was asking.
    find_always(Trouble::held_after_error, waits, [&](World& world, Random& random) {
        Trace t;
        if (!an_error(world, random, t)) return false;
        record(world, t, Kind::failed).owner = {};
        Record r;
        r.kind = Kind::seen;
        r.name = t.name;
        history::put_text(r.owner, "stranger");
        for (const Log& log : world.logs)
            r.until = std::max(r.until, log.records.back().at + 1);
        r.at = r.until + 1;
        insert(random, stores(world), r);
        return true;
    });
}

namespace {

/// One holder that releases from 200 to 220, valid until 1000; another that is granted after it and
/// says that it crashed; and a server that was killed in between.
struct Forgetting {
    const char* what;
    Nanos unsynced = 100, killed_from = 300, killed_to = 310, next_granted = 1100;
    history::Previous said = history::Previous::crashed;
    bool forgiven = false;
};

Verdict judge(const Forgetting& f) {
    World world;
    Random random(1);
    for (int p = 0; p < 3; ++p) {
        world.logs.push_back(correct(random, {.processes = 1, .names = 1, .rounds = 0}).logs[0]);
        auto& records = world.logs.back().records;
        records.resize(1);  // the name
        Record r;
        const auto add = [&](Kind kind, Nanos at, Nanos until, std::uint8_t detail = 0) {
            r.kind = kind;
            r.at = at;
            r.until = until;
            r.detail = detail;
            records.push_back(r);
        };
        if (p == 2) {
            if (f.killed_to != 0) add(Kind::server_killed, f.killed_to, f.killed_from);
            break;
        }
        r.name = 1;
        r.id = std::uint64_t{world.logs.back().header.recorder} << 32U | 1U;
        r.token = static_cast<std::uint64_t>(p) + 1;
        const Nanos granted = p == 0 ? 100 : f.next_granted, until = granted + 900;
        add(Kind::invoked, granted - 50, 0);
        add(Kind::granted, granted, until,
            static_cast<std::uint8_t>(p == 0 ? history::Previous::none : f.said));
        add(Kind::releasing, granted + 100, until);
        add(Kind::released, granted + 120, 0, static_cast<std::uint8_t>(history::Answer::released));
    }
    return world.judge({.unsynced_release = f.unsynced});
}

}  // namespace

TEST_CASE("a release that a killed server may have forgotten is told as that, where it is declared",
          "[history]") {
    const Forgetting all[] = {
        {.what = "declared, and killed soon after it", .forgiven = true},
        {.what = "killed as late as it may be",
         .killed_from = 320,
         .killed_to = 330,
         .forgiven = true},
        {.what = "killed as early as it may be",
         .killed_from = 190,
         .killed_to = 200,
         .forgiven = true},
        {.what = "not declared", .unsynced = 0},
        {.what = "nobody was killed", .killed_from = 0, .killed_to = 0},
        {.what = "killed when it was synced", .killed_from = 321, .killed_to = 330},
        {.what = "killed before it began", .killed_from = 190, .killed_to = 199},
        {.what = "killed after the next was granted",
         .unsynced = 10'000,
         .killed_from = 1100,
         .killed_to = 1110},
        {.what = "granted before the time of the one forgotten was over", .next_granted = 999},
        {.what = "another word than `crashed`", .said = history::Previous::abandoned},
    };
    for (const Forgetting& f : all) {
        const Verdict v = judge(f);
        INFO(f.what << "\n" << v.text());
        CHECK(v.count(Trouble::release_forgotten) == (f.forgiven ? 1 : 0));
        CHECK(v.count(Trouble::previous_holder) == (f.forgiven ? 0 : 1));
        CHECK(v.count(Gravity::damage) == 0);
        CHECK(v.sound() == f.forgiven);
        if (f.forgiven) CHECK_THAT(v.text(), ContainsSubstring("1 x release_forgotten"));
    }
}
