// The report's data: everything in it follows from its rows, and the checker notices when not.
#include <boost/json.hpp>
#include "catch.hpp"

#include "measure/latency.hpp"
#include "report/report.hpp"

using namespace holdfast::bench;
namespace json = boost::json;

namespace {

Report small_report() {
    Report report;
    report.seed = 7;
    Row row;
    row.scenario = "C8";
    row.backend = "none";
    row.variant = "guard: none";
    row.metric = "updates lost";
    row.value = row.min = row.max = 5;
    row.n = 900;
    report.rows.push_back(row);
    row.backend = "redis";
    row.variant = "default";
    row.value = row.min = row.max = 0;
    row.note = "</script><!-- & \"quotes\"";
    report.rows.push_back(row);
    return report;
}

}  // namespace

TEST_CASE("a report checks out, and each way to spoil it is noticed") {
    const json::value good = to_json(small_report());
    CHECK(check_report(good).empty());
    CHECK(check_report(json::parse(json::serialize(good))).empty());

    const auto spoiled = [&](auto change) {
        json::value bad = good;
        change(bad.as_object());
        return !check_report(bad).empty();
    };
    CHECK(spoiled([](json::object& o) { o["rows"].as_array()[1].as_object()["value"] = 3; }));
    CHECK(spoiled([](json::object& o) { o["rows"].as_array().clear(); }));
    CHECK(spoiled([](json::object& o) { o["rows"].as_array()[0].as_object().erase("min"); }));
    CHECK(spoiled([](json::object& o) { o["rows"].as_array()[0].as_object()["metric"] = ""; }));
    CHECK(
        spoiled([](json::object& o) { o["verdicts"].as_array()[3].as_object()["finding"] = "?"; }));
    CHECK(spoiled([](json::object& o) { o["exit_code"] = 2; }));
    CHECK(spoiled([](json::object& o) { o.erase("environment"); }));
    CHECK(spoiled([](json::object& o) {
        auto& row = o["rows"].as_array()[0].as_object();
        row["status"] = "violated";
        row["note"] = "";
    }));
    CHECK_FALSE(check_report(json::value("nothing")).empty());
}

TEST_CASE("the data cannot end the page's script element") {
    const std::string page = fill_template("<script>/*HOLDFAST-BENCH-DATA*/</script>",
                                           json::serialize(to_json(small_report())));
    CHECK(page.find("</script>") == page.size() - 9);
    CHECK(page.find("<!--") == std::string::npos);
    CHECK(page.find("\\u003c/script>") != std::string::npos);
    CHECK_THROWS(fill_template("<script></script>", "{}"));
}

TEST_CASE("quantiles are within a percent") {
    Latency latency;
    for (int i = 1; i <= 10000; ++i)
        latency.add_us(i);
    CHECK(latency.quantile_us(0.5) == Approx(5000).epsilon(0.01));
    CHECK(latency.quantile_us(0.99) == Approx(9900).epsilon(0.01));
    CHECK(latency.quantile_us(1) == Approx(10000).epsilon(0.01));
    Latency same;
    for (int i = 0; i < 10; ++i)
        same.add_us(30);
    CHECK(same.quantile_us(0.5) == Approx(30).epsilon(0.01));
    CHECK(Latency{}.quantile_us(0.5) == 0);
}

TEST_CASE("order and shares") {
    CHECK(inversions({0, 1, 2, 3}) == 0);
    CHECK(inversions({3, 2, 1, 0}) == 1);
    CHECK(inversions({1, 0, 2}) == Approx(1.0 / 3));
    CHECK(jain_index({4, 4, 4}) == Approx(1));
    CHECK(jain_index({9, 0, 0}) == Approx(1.0 / 3));
    CHECK(spread_of({3, 1, 2}).median == 2);
    CHECK(spread_of({4, 1, 2, 3}).median == 2.5);
}
