// From what the checker of histories found to rows, exit codes and self-checks: each both ways.
#include "measure/history_rows.hpp"
#include "catch.hpp"
#include "verdict.hpp"

using namespace holdfast::bench;
using history::Trouble;

namespace {

const Recorded redis{"redis", "default", Promise::holdfast};
const Recorded control{"none", "guard: none", Promise::nothing};

history::Verdict sound() {
    history::Verdict v;
    v.figures.files = 7;
    v.figures.records = 4000;
    v.figures.acquisitions = v.figures.granted = 1000;
    v.figures.tokens_judged = v.figures.fenced_judged = v.figures.unfenced_judged = 10;
    v.figures.previous_judged = v.figures.inversions_judged = v.figures.failed = 10;
    v.figures.longest_alone_ns = 2'500'000;
    v.figures.longest_alone = "bench/count, from 1 s";
    return v;
}

history::Verdict with(Trouble trouble) {
    history::Verdict v = sound();
    v.add(trouble, "this happened");
    return v;
}

Row lost(double updates) {
    Row row;
    row.scenario = "C8";
    row.backend = control.backend;
    row.variant = control.variant;
    row.metric = "updates lost";
    row.value = row.min = row.max = updates;
    return row;
}

}  // namespace

TEST_CASE("a sound history is told as it is, and is no error") {
    const Rows rows = rows_of(redis, sound());
    CHECK(exit_code(rows) == 0);
    CHECK(find(rows, {history_scenario, "redis", "default", history_recorded})->value == 1000);
    CHECK(find(rows, {history_scenario, "redis", "default", history_alone})->value == 2.5);
    for (const char* metric : {history_overlaps, history_tokens, history_fenced, history_unfenced,
                               history_order, history_words, history_errors, history_damage})
        CHECK(find(rows, {history_scenario, "redis", "default", metric})->value == 0);
}

TEST_CASE("what nobody looked at is not told as sound") {
    history::Verdict v = sound();
    v.figures.tokens_judged = v.figures.inversions_judged = 0;
    Rows rows = rows_of(redis, v);
    CHECK(find(rows, {history_scenario, {}, {}, history_tokens}) == nullptr);
    CHECK(find(rows, {history_scenario, {}, {}, history_order}) == nullptr);
    CHECK(find(rows, {history_scenario, {}, {}, history_words}) != nullptr);
    v.add(Trouble::token_missing, "no token");  // of all that should have had one
    CHECK(exit_code(rows_of(redis, v)) == 2);
}

TEST_CASE("every kind of trouble has a row, and an exit code by its gravity") {
    for (std::size_t i = 0; i < history::troubles; ++i) {
        const auto trouble = static_cast<Trouble>(i);
        // Only with limits, which the bench does not set.
        if (trouble == Trouble::left_alone || trouble == Trouble::release_forgotten) continue;
        INFO(to_string(trouble));
        const Rows rows = rows_of(redis, with(trouble));
        std::size_t told = 0;
        for (const Row& row : rows)
            told += row.value == 1 && row.note.find("this happened") != std::string::npos ? 1 : 0;
        CHECK(told == 1);
        const auto serious = gravity(trouble);
        CHECK(exit_code(rows) == (serious == history::Gravity::violation ? 2
                                  : serious == history::Gravity::damage  ? 1
                                                                         : 0));
        // Where nothing is promised it shows that the checker sees; damage stays damage.
        CHECK(exit_code(rows_of(control, with(trouble))) ==
              (serious == history::Gravity::damage ? 1 : 0));
    }
    const Rows rows = rows_of(control, with(Trouble::overlap));
    const auto* row = find(rows, {history_scenario, "none", {}, history_overlaps});
    CHECK(row->note.rfind(history_expected, 0) == 0);
}

TEST_CASE("a history in which nothing was granted judges nothing, and says so") {
    history::Verdict v = sound();
    v.figures.granted = 0;
    CHECK(exit_code(rows_of(redis, v)) == 1);
    CHECK(exit_code(rows_of(control, v)) == 1);
}

TEST_CASE("a checker that sees no overlap where updates were lost is blind") {
    Rows rows = rows_of(control, with(Trouble::overlap));
    rows.push_back(lost(5));
    CHECK(blind_spots(rows).empty());

    rows = rows_of(control, sound());
    rows.push_back(lost(5));
    REQUIRE(blind_spots(rows).size() == 1);
    CHECK(exit_code(blind_spots(rows)) == 1);
    rows.back() = lost(0);
    CHECK(blind_spots(rows).empty());

    CHECK(blind_spots({lost(5)}).size() == 1);  // not recorded at all
}
