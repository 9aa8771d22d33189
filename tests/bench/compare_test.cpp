// What --compare calls slower: beyond the margin, in every round, and not the machine.
#include "report/compare.hpp"

#include "catch.hpp"
#include "verdict_rows.hpp"

using namespace holdfast::bench;
using Judged = Change::Finding;

namespace {

Row timed(const std::string& variant, double least, double value, double most,
          const std::string& metric = "p50") {
    Row row;
    row.scenario = "C1";
    row.backend = "redis";
    row.variant = variant;
    row.metric = metric;
    row.value = value;
    row.min = least;
    row.max = most;
    row.unit = "us";
    return row;
}

Report run_with(Rows rows) {
    Report report;
    report.rows = std::move(rows);
    report.environment = {{"processor", "one"}, {"cores", "2"}};
    return report;
}

Change only(const Row& before, const Row& after, double margin = 10) {
    const auto all = compare(run_with({before}), run_with({after}), margin);
    REQUIRE(all.changes.size() == 1);
    return all.changes.front();
}

}  // namespace

TEST_CASE("compare: slower is beyond the margin and beyond the rounds", "[compare]") {
    const auto before = timed("default", 95, 100, 105);
    CHECK(only(before, timed("default", 95, 101, 106)).finding == Judged::same);
    CHECK(only(before, timed("default", 118, 120, 125)).finding == Judged::slower);
    CHECK(only(before, timed("default", 104, 120, 125)).finding == Judged::unclear);
    CHECK(only(before, timed("default", 118, 120, 125), 25).finding == Judged::same);
    CHECK(only(before, timed("default", 70, 75, 80)).finding == Judged::faster);
    CHECK(only(before, timed("default", 118, 120, 125)).worse == Approx(1.2));
}

TEST_CASE("compare: fewer cycles per second are worse, fewer requests better", "[compare]") {
    // One round only: three times the margin.
    const auto rate = [](double value) {
        return timed("default", value, value, value, "cycles per second");
    };
    CHECK(only(rate(1000), rate(800)).finding == Judged::same);
    CHECK(only(rate(1000), rate(500)).finding == Judged::slower);
    CHECK(only(rate(500), rate(1000)).finding == Judged::faster);
    const auto requests = [](double value) {
        return timed("default", value, value, value, "requests per hand-off");
    };
    CHECK(only(requests(2), requests(3)).finding == Judged::slower);
    CHECK(only(requests(3), requests(2)).finding == Judged::faster);
}

TEST_CASE("compare: exit code 3 for what is Holdfast's own, not for the machine", "[compare]") {
    const auto code = [](const Row& before, const Row& after) {
        return exit_code(compare(run_with({before}), run_with({after}), 10));
    };
    CHECK(code(timed("default", 1, 1, 1), timed("default", 2, 2, 2)) == 3);
    CHECK(code(timed("floor: plain pair", 1, 1, 1), timed("floor: plain pair", 2, 2, 2)) == 0);
    CHECK(code(timed("default", 2, 2, 2), timed("default", 1, 1, 1)) == 0);
}

TEST_CASE("compare: what is missing, other conditions and other verdicts are told", "[compare]") {
    auto before = run_with({timed("default", 1, 1, 1), timed("plain", 1, 1, 1)});
    auto after = run_with({timed("default", 1, 1, 1)});
    after.environment["cores"] = "64";
    after.partial = true;
    for (double lost : {0.0, 9.0}) {
        auto& rows = lost > 0 ? after.rows : before.rows;
        rows.push_back(row("C8", "none", "guard: none", "updates lost", 10));
        rows.push_back(row("C8", "redis", "default", "updates lost", lost));
    }
    const auto all = compare(before, after, 10);
    CHECK(all.missing == std::vector<std::string>{"C1 redis plain, p50"});
    REQUIRE(all.conditions.size() == 2);
    CHECK(all.conditions[0] == "cores: 2, now 64");
    REQUIRE(all.verdicts.size() == 1);
    CHECK(all.verdicts[0].starts_with("C8: confirmed, now "));
    CHECK(exit_code(all) == 0);
}

TEST_CASE("compare: a file that is no report says so", "[compare]") {
    CHECK_THROWS_WITH(read_json("/nowhere/report.json"), ContainsSubstring("/nowhere/report.json"));
}
