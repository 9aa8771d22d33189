// Counting, in every combination of answers of five nodes.
#include "votes.hpp"

#include "errors.hpp"
#include "five.hpp"

using namespace holdfast::redlock;
using holdfast::errc;
using Kind = Vote::Kind;
using Verdict = Tally::Verdict;

namespace {

Tally tally_of(const std::vector<Kind>& kinds) {
    Tally t;
    t.begin(kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i)
        t.set(i, {.kind = kinds[i]});
    return t;
}

}  // namespace

TEST_CASE("votes: no verdict can be overturned by the answers that are still missing") {
    const std::vector<Kind> ends{Kind::granted, Kind::low, Kind::busy, Kind::missing};
    // Every state of five nodes: each waiting, or with one of four ends.
    std::size_t decided = 0;
    for (int code = 0; code < 3125; ++code) {
        std::vector<Kind> now(5);
        std::size_t granted = 0, low = 0, waiting = 0;
        for (int i = 0, c = code; i < 5; ++i, c /= 5) {
            const auto k = static_cast<std::size_t>(i);
            now[k] = c % 5 == 4 ? Kind::waiting : ends[static_cast<std::size_t>(c % 5)];
            granted += now[k] == Kind::granted;
            low += now[k] == Kind::low;
            waiting += now[k] == Kind::waiting;
        }
        const Verdict v = tally_of(now).verdict();
        if (v == Verdict::granted) REQUIRE(granted >= 3);
        if (v == Verdict::raise) {
            REQUIRE(granted + low >= 3);
            REQUIRE(granted + waiting < 3);
        }
        if (v == Verdict::contended || v == Verdict::no_quorum)
            REQUIRE(granted + low + waiting < 3);
        if (waiting == 0) REQUIRE(v != Verdict::open);
        if (v == Verdict::open) continue;
        ++decided;
        // However the others answer: a grant stays one, a loss stays a loss.
        for (std::size_t i = 0; i < 5; ++i) {
            if (now[i] != Kind::waiting) continue;
            for (const Kind end : ends) {
                auto later = now;
                later[i] = end;
                const Verdict w = tally_of(later).verdict();
                if (v == Verdict::granted) REQUIRE(w == Verdict::granted);
                if (v != Verdict::granted) REQUIRE(w != Verdict::granted);
                if (v == Verdict::contended || v == Verdict::no_quorum)
                    REQUIRE(w != Verdict::raise);
            }
        }
    }
    CHECK(decided > 1000);
}

TEST_CASE("votes: what a release came to") {
    const auto result = [](std::size_t ones, std::size_t twos, std::size_t zeros) {
        Released r;
        r.ones = ones, r.twos = twos, r.zeros = zeros;
        return r.result(5);
    };
    using holdfast::ReleaseResult;
    CHECK(result(5, 0, 0) == ReleaseResult::released);
    CHECK(result(3, 0, 0) == ReleaseResult::released);
    CHECK(result(3, 2, 0) == ReleaseResult::released);
    CHECK(result(2, 0, 1) == ReleaseResult::released);  // the two that are silent may have had it
    CHECK(result(0, 0, 5) == ReleaseResult::already_expired);
    CHECK(result(1, 0, 4) == ReleaseResult::already_expired);
    CHECK(result(0, 3, 2) == ReleaseResult::owned_by_other);
    CHECK(result(2, 0, 0) == ReleaseResult::unreachable);
    CHECK(result(0, 0, 0) == ReleaseResult::unreachable);
}

TEST_CASE("votes: the answers of a node, also as Redis 6.2 words them") {
    const auto bulk = [](std::string text) {
        Reply r;
        r.type = Reply::Type::bulk;
        r.text = std::move(text);
        return r;
    };
    CHECK(vote_from(bulk("g"), false).kind == Kind::granted);
    CHECK(vote_from(bulk("h 1795230886476603"), false).token == 1795230886476603U);
    CHECK(vote_from(bulk("h 0"), false).kind == Kind::low);
    // A token that no script can have sent would be that of this grant and of all later ones.
    for (const char* token :
         {"-5", "-9223372036854775808", "18446744073709551615", "9999000000000001", "", "1x"}) {
        INFO(token);
        const Vote v = vote_from(bulk(std::string("h ") + token), false);
        CHECK(v.kind == Kind::refused);
        CHECK(v.why == errc::kind_mismatch);
    }
    CHECK(vote_from(bulk("b 900"), false).left == std::chrono::milliseconds(900));
    CHECK(vote_from(bulk("b -1"), false).left < std::chrono::milliseconds(0));
    CHECK(vote_from(bulk("l 12"), false).kind == Kind::late);
    CHECK(late_time(bulk("l 12")) == 12);
    CHECK(vote_from(bulk("k"), false).why == errc::kind_mismatch);
    CHECK(vote_from(bulk(""), false).kind == Kind::missing);
    CHECK(vote_from(bulk("what"), false).kind == Kind::missing);
    Reply error;
    error.type = Reply::Type::error;
    error.text = "LOADING Redis is loading the dataset in memory";
    CHECK(vote_from(error, false).kind == Kind::missing);
    error.text = "NOPERM this user has no permissions";
    CHECK(vote_from(error, false).kind == Kind::refused);
    CHECK(vote_from(error, false).why == errc::denied);
    // Redis 6.2 puts the script in front of what a command in it was answered.
    error.text =
        "ERR Error running script (call to f_0123): @user_script:20: @user_script: 20: "
        "-NOREPLICAS Not enough good replicas to write.";
    CHECK(vote_from(error, false).kind == Kind::missing);
    error.text = "ERR The user executing the script can't run this command or subcommand";
    CHECK(vote_from(error, false).why == errc::denied);
    error.text = "NOPERM this user has no permissions";
    Reply nil;
    CHECK(vote_from(nil, true).kind == Kind::busy);
    // The same refusal by a majority is the answer, not the lack of a quorum.
    Tally t;
    t.begin(3);
    t.set(0, vote_from(error, false));
    t.set(1, vote_from(error, false));
    t.set(2, {.kind = Kind::granted});
    CHECK(t.why() == errc::denied);
    t.set(1, {.kind = Kind::granted});
    CHECK(t.why() == errc::no_quorum);
}
