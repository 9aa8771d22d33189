// The lower bound of a token, tried exhaustively: one acquisition after the other, with every set
// of nodes that are reached, of clocks that are wrong and of nodes that have lost their data in
// between. It shows besides that weaker rules are caught.
#include <algorithm>
#include <array>
#include <iostream>
#include <vector>

#include "five.hpp"
#include "votes.hpp"

namespace {

constexpr std::size_t nodes = 3;

enum class TokenFloor { ours, maximum, upper_middle, lower_middle, first };

struct TokenClocks {
    std::array<std::int64_t, nodes> nodes_ahead{};  // 0: right
    std::int64_t own_ahead = 0;
};

/// All combinations of right, far ahead and far behind.
std::vector<TokenClocks> all_clocks() {
    constexpr std::int64_t far[] = {0, 600, -600};
    std::vector<TokenClocks> out;
    for (const auto a : far)
        for (const auto b : far)
            for (const auto c : far)
                for (const auto own : far)
                    out.push_back({{a, b, c}, own});
    return out;
}

bool among(unsigned mask, std::size_t i) {
    return (mask >> i & 1U) != 0;
}

/// What a client without any knowledge makes of the nodes that it reaches, at a true time.
std::int64_t token_at(std::int64_t time, const TokenClocks& clocks, unsigned reached,
                      TokenFloor rule, std::array<std::int64_t, nodes>& kept) {
    std::vector<std::int64_t> times;
    std::int64_t token = 0;
    for (std::size_t i = 0; i < nodes; ++i)
        if (among(reached, i)) {
            times.push_back(time + clocks.nodes_ahead[i]);
            token = std::max(token, kept[i] + 1);
        }
    std::sort(times.begin(), times.end());
    const auto floor = rule == TokenFloor::ours
                           ? holdfast::redlock::middle(times, time + clocks.own_ahead)
                       : rule == TokenFloor::maximum      ? times.back()
                       : rule == TokenFloor::upper_middle ? times[times.size() / 2]
                       : rule == TokenFloor::lower_middle ? times[(times.size() - 1) / 2]
                                                          : time + clocks.nodes_ahead[0];
    token = std::max(token, floor);
    for (std::size_t i = 0; i < nodes; ++i)
        if (among(reached, i)) kept[i] = token;
    return token;
}

/// Fewer than half of the clocks that count are wrong.
bool mostly_right(const TokenClocks& c, unsigned reached) {
    int counted = 0, wrong = 0;
    for (std::size_t i = 0; i < nodes; ++i)
        if (among(reached, i)) ++counted, wrong += c.nodes_ahead[i] != 0;
    if (counted % 2 == 0) ++counted, wrong += c.own_ahead != 0;
    return 2 * wrong < counted;
}

struct Seen {
    int runs = 0, back_with_all_data = 0, back_with_right_clocks = 0, back = 0;
};

Seen two_acquisitions(TokenFloor rule) {
    Seen seen;
    const auto clocks = all_clocks();
    const unsigned majorities[] = {3, 5, 6, 7};
    for (const TokenClocks& first : clocks)
        for (const TokenClocks& second : clocks)
            for (const unsigned x : majorities)
                for (const unsigned y : majorities)
                    for (unsigned emptied = 0; emptied < 8; ++emptied) {
                        std::array<std::int64_t, nodes> kept{};
                        const auto before = token_at(1000, first, x, rule, kept);
                        for (std::size_t i = 0; i < nodes; ++i)
                            if (among(emptied, i)) kept[i] = 0;
                        const auto after = token_at(1001, second, y, rule, kept);
                        ++seen.runs;
                        if (after > before) continue;
                        ++seen.back;
                        seen.back_with_all_data += emptied == 0;
                        seen.back_with_right_clocks +=
                            mostly_right(first, x) && mostly_right(second, y);
                    }
    return seen;
}

}  // namespace

TEST_CASE("tokens: clocks that are wrong, and nodes that have lost their data", "[token][model]") {
    const Seen ours = two_acquisitions(TokenFloor::ours);
    std::cout << "redlock token model: " << ours.runs << " pairs of acquisitions\n";
    // What the README promises,
    CHECK(ours.back_with_all_data == 0);
    CHECK(ours.back_with_right_clocks == 0);
    // and that it cannot promise more: with both faults at once it goes back.
    CHECK(ours.back > 0);
    for (const TokenFloor weaker : {TokenFloor::maximum, TokenFloor::upper_middle,
                                    TokenFloor::lower_middle, TokenFloor::first}) {
        const Seen seen = two_acquisitions(weaker);
        CHECK(seen.back_with_all_data == 0);
        CHECK(seen.back_with_right_clocks > 0);
    }
}
