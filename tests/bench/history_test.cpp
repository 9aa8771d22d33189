// The checker's two promises: a history of a lock that kept its own raises nothing, and every kind
// of trouble that is put into one is found and called by its name.
#include <cstdlib>
#include <functional>
#include <iostream>

#include "catch.hpp"
#include "histories.hpp"

using namespace histories;
using history::Gravity;
using history::Trouble;
using history::Verdict;

namespace {

std::uint64_t seed() {
    static const std::uint64_t s = [] {
        const char* given = std::getenv("HOLDFAST_TEST_SEED");
        const std::uint64_t value =
            given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
        std::cout << "HOLDFAST_TEST_SEED=" << value << '\n';
        return value;
    }();
    return s;
}

int times(int usual) {
    const char* given = std::getenv("HOLDFAST_TEST_HISTORIES");
    return given != nullptr ? std::atoi(given) : usual;
}

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

std::vector<Record>& stores(World& world) {
    return world.logs.back().records;
}

/// Some record that the condition takes, or null.
Record* some(Random& random, std::vector<Record>& all,
             const std::function<bool(const Record&)>& is) {
    std::vector<Record*> found;
    for (Record& r : all)
        if (is(r)) found.push_back(&r);
    if (found.empty()) return nullptr;
    return found[static_cast<std::size_t>(pick(random, 0, std::ssize(found) - 1))];
}

/// At a random place before the last record, which ends the file.
void insert(Random& random, std::vector<Record>& all, const Record& r) {
    all.insert(all.begin() + pick(random, 2, std::ssize(all) - 1), r);
}

/// Puts one trouble into a world; false when this world has no place for it.
using Injection = std::function<bool(World&, Random&)>;

void find_always(Trouble trouble, const Shape& shape, const Injection& inject,
                 const history::Limits& limits = {}) {
    int put = 0;
    const int wanted = times(40);
    for (int i = 0; put < wanted && i < 20 * wanted; ++i) {
        Random random(seed() + static_cast<std::uint64_t>(i));
        World world = correct(random, shape);
        const Verdict before = world.judge(limits);
        // What is there in a correct history as well cannot show that it was put there.
        if (before.count(trouble) != 0) continue;
        if (!inject(world, random)) continue;
        ++put;
        const Verdict after = world.judge(limits);
        INFO(to_string(trouble) << ", seed " << seed() << " + " << i << "\n" << after.text());
        REQUIRE(before.sound());
        REQUIRE(after.count(trouble) >= 1);
        const bool told = std::any_of(after.first().begin(), after.first().end(),
                                      [&](const auto& f) { return f.trouble == trouble; });
        REQUIRE(told);
        if (gravity(trouble) == Gravity::violation) REQUIRE(after.exit_code() == 2);
        if (gravity(trouble) == Gravity::damage) REQUIRE(after.exit_code() >= 1);
    }
    REQUIRE(put == wanted);
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

TEST_CASE("damage is told, and never taken for a broken lock", "[history]") {
    const auto some_log = [](World& world, Random& random) -> Log& {
        return world.logs[static_cast<std::size_t>(pick(random, 0, std::ssize(world.logs) - 1))];
    };
    for (int i = 0; i < times(300); ++i) {
        Random random(seed() + static_cast<std::uint64_t>(i));
        const World world = correct(random, {});
        const Folder folder;
        const auto files = world.save(folder.path());
        // Bytes change anywhere in any files.
        for (auto n = pick(random, 1, 4); n > 0; --n) {
            const auto f = static_cast<std::size_t>(pick(random, 0, std::ssize(files) - 1));
            const auto size = static_cast<std::int64_t>(std::filesystem::file_size(files[f]));
            FILE* file = std::fopen(files[f].c_str(), "r+b");
            REQUIRE(file != nullptr);
            std::fseek(file, pick(random, 0, size - 1), SEEK_SET);
            const int old = std::fgetc(file);
            std::fseek(file, -1, SEEK_CUR);
            std::fputc(old ^ static_cast<int>(pick(random, 1, 255)), file);
            std::fclose(file);
        }
        const Verdict v = history::check_files(files);
        INFO("seed " << seed() << " + " << i << "\n" << v.text());
        REQUIRE(v.sound());
        CHECK(v.count(Trouble::torn) >= 1);
    }
    find_always(Trouble::other_clock, {}, [&](World& world, Random& random) {
        Log& log = some_log(world, random);
        if (chance(random, 0.5))
            log.header.boot[3] = 'x';
        else
            ++log.header.time_space;
        return true;
    });
    find_always(Trouble::contradictory, {}, [&](World& world, Random& random) {
        world.logs.push_back(some_log(world, random));
        return true;
    });
}

TEST_CASE("records that cannot all be true are told", "[history]") {
    struct Lie {
        const char* what;
        std::function<bool(World&, Log&, Random&)> tell;
    };
    const auto of = [](Log& log, Random& random, Kind kind) {
        return some(random, log.records, [=](const Record& r) { return r.kind == kind; });
    };
    const auto drop = [](Log& log, const Record* r) {
        log.records.erase(log.records.begin() + (r - log.records.data()));
    };
    const auto twice = [](Log& log, const Record* r) {
        log.records.insert(log.records.begin() + (r - log.records.data()), Record(*r));
    };
    std::vector<Lie> lies;
    for (const Kind kind : {Kind::invoked, Kind::granted})
        lies.push_back(
            {"dropped", [=](World&, Log& log, Random& random) {
                 Record* r = of(log, random, kind);
                 if (r == nullptr) return false;
                 const std::uint64_t id = r->id;
                 drop(log, r);
                 // Without any other record it is as if it had not been.
                 return std::any_of(log.records.begin(), log.records.end(), [&](const Record& x) {
                     return x.id == id && x.kind > Kind::in_line && x.kind <= Kind::failed;
                 });
             }});
    for (const Kind kind : {Kind::invoked, Kind::granted, Kind::releasing, Kind::released,
                            Kind::lost, Kind::failed, Kind::closed})
        lies.push_back({"twice", [=](World&, Log& log, Random& random) {
                            Record* r = of(log, random, kind);
                            if (r == nullptr) return false;
                            twice(log, r);
                            return true;
                        }});
    for (const Kind kind : {Kind::granted, Kind::releasing, Kind::released, Kind::failed})
        lies.push_back({"before its time", [=](World&, Log& log, Random& random) {
                            Record* r = of(log, random, kind);
                            if (r == nullptr) return false;
                            r->at = -1;
                            return true;
                        }});
    lies.push_back({"validity went back", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::releasing);
                        if (r == nullptr) return false;
                        r->until = 1;
                        return true;
                    }});
    lies.push_back({"unknown kind", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::invoked);
                        if (r == nullptr) return false;
                        r->kind = static_cast<Kind>(pick(random, 13, 255));
                        return true;
                    }});
    lies.push_back({"unknown name", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::invoked);
                        if (r == nullptr) return false;
                        r->name = static_cast<std::uint16_t>(pick(random, 9, 65535));
                        return true;
                    }});
    lies.push_back({"another name", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::granted);
                        if (r == nullptr) return false;
                        r->name = r->name == 1 ? 2 : 1;
                        return true;
                    }});
    lies.push_back({"another file's", [=](World& world, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::invoked);
                        if (r == nullptr) return false;
                        const Record copy = *r;
                        for (Log& other : world.logs)
                            if (&other != &log) {
                                insert(random, other.records, copy);
                                return true;
                            }
                        return false;
                    }});
    lies.push_back({"a number out of bounds", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::invoked);
                        if (r == nullptr) return false;
                        r->id |= 0xfffffff0U;
                        return true;
                    }});
    lies.push_back({"left open", [=](World&, Log& log, Random& random) {
                        Record* r = of(log, random, Kind::failed);
                        if (r == nullptr || log.records.back().kind != Kind::closed) return false;
                        drop(log, r);
                        return true;
                    }});
    for (const Lie& lie : lies) {
        INFO(lie.what);
        find_always(Trouble::contradictory, {}, [&](World& world, Random& random) {
            const auto logs = std::ssize(world.logs) - 1;
            Log& log = world.logs[static_cast<std::size_t>(pick(random, 0, logs - 1))];
            if (!lie.tell(world, log, random)) return false;
            // Whatever is wrong with the records, no lock is blamed for it.
            REQUIRE(world.judge().sound());
            return true;
        });
    }
}
