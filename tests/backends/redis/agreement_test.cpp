// What several Sentinels' answers mean: which server is the primary, and since when that is
// certain.
#include "sentinel/agreement.hpp"

#include "catch.hpp"

using holdfast::boot_clock;
using holdfast::redis::agree;
using holdfast::redis::Named;
using holdfast::spi::Endpoint;

namespace {

using Answers = std::vector<std::optional<Named>>;

const Endpoint a{"10.0.0.1", 6379}, b{"10.0.0.2", 6379};
const auto never = boot_clock::time_point::min();

boot_clock::time_point at(int ms) {
    return boot_clock::time_point(std::chrono::milliseconds(ms));
}

std::optional<Named> names(const Endpoint& address, std::uint64_t epoch, int asked) {
    return Named{address, epoch, at(asked)};
}

}  // namespace

TEST_CASE("agreement: a majority confirms, since it was asked", "[sentinel]") {
    const Answers all{names(a, 3, 100), names(a, 3, 300), names(a, 3, 200)};
    const auto found = agree(all);
    REQUIRE(found.best != nullptr);
    CHECK(found.best->primary == a);
    // Two of three were asked at 200 or later.
    CHECK(found.confirmed == at(200));
    const Answers two{names(a, 3, 100), std::nullopt, names(a, 3, 200)};
    CHECK(agree(two).confirmed == at(100));
}

TEST_CASE("agreement: the highest epoch wins, and is not confirmed by older ones", "[sentinel]") {
    const Answers one_knows{names(a, 3, 100), names(b, 4, 90), names(a, 3, 100)};
    const auto first = agree(one_knows);
    CHECK(first.best->primary == b);
    CHECK(first.confirmed == never);
    const Answers two_know{names(a, 3, 200), names(b, 4, 90), names(b, 4, 150)};
    CHECK(agree(two_know).best->primary == b);
    CHECK(agree(two_know).confirmed == at(90));
    // Back again: the same address under an older epoch is no support.
    const Answers back{names(a, 5, 200), names(b, 4, 200), names(a, 3, 200)};
    CHECK(agree(back).best->primary == a);
    CHECK(agree(back).confirmed == never);
}

TEST_CASE("agreement: a minority confirms nothing, and nobody names nobody", "[sentinel]") {
    const Answers one{std::nullopt, names(a, 3, 100), std::nullopt};
    CHECK(agree(one).best->primary == a);
    CHECK(agree(one).confirmed == never);
    CHECK(agree(Answers(3)).best == nullptr);
    CHECK(agree({}).best == nullptr);
    // Half of an even number is none.
    const Answers four{names(a, 3, 100), names(a, 3, 100), std::nullopt, std::nullopt};
    CHECK(agree(four).confirmed == never);
    const Answers alone{names(a, 3, 100)};
    CHECK(agree(alone).confirmed == at(100));
}

TEST_CASE("agreement: two addresses of one epoch: the one that more name", "[sentinel]") {
    const Answers all{names(a, 3, 100), names(b, 3, 100), names(b, 3, 120)};
    CHECK(agree(all).best->primary == b);
    CHECK(agree(all).confirmed == at(100));
}
