#include "injection.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "catch.hpp"

namespace histories {

using history::Gravity;
using history::Trouble;
using history::Verdict;

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

Record* some(Random& random, std::vector<Record>& all,
             const std::function<bool(const Record&)>& is) {
    std::vector<Record*> found;
    for (Record& r : all)
        if (is(r)) found.push_back(&r);
    if (found.empty()) return nullptr;
    return found[static_cast<std::size_t>(pick(random, 0, std::ssize(found) - 1))];
}

void insert(Random& random, std::vector<Record>& all, const Record& r) {
    const auto names =
        std::count_if(all.begin(), all.end(), [](const Record& x) { return x.kind == Kind::name; });
    const auto end = std::ssize(all) - (all.back().kind == Kind::closed ? 1 : 0);
    all.insert(all.begin() + pick(random, names, end), r);
}

void find_always(Trouble trouble, const Shape& shape, const Injection& inject,
                 const history::Limits& limits) {
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

}  // namespace histories
