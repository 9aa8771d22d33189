// Files and records that are damaged or contradict themselves: told, and never taken for a broken
// lock.
#include <algorithm>
#include <cstdio>

#include "catch.hpp"
#include "injection.hpp"

using namespace histories;
using history::Trouble;
using history::Verdict;

TEST_CASE("damage is told, and never taken for a broken lock", "[history]") {
    const auto some_log = [](World& world, Random& random) -> Log& {
        return world.logs[static_cast<std::size_t>(pick(random, 0, std::ssize(world.logs) - 1))];
    };
    for (int i = 0; i < times(300); ++i) {
        Random random(seed() + static_cast<std::uint64_t>(i));
        const World world = correct(random, {});
        const Folder folder;
        const auto files = world.save(folder.path());
        REQUIRE(history::check_files(files).exit_code() == 0);
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
                        r->kind = static_cast<Kind>(pick(random, 14, 255));
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
