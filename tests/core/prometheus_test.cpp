// Stats as OpenMetrics text, to the byte; tests/docs/metrics.py reads the command's with parsers.
#include "holdfast/prometheus.hpp"

#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "catch.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

hf::Stats small() {
    hf::Stats s;
    s.acquired = 7, s.contended = 2, s.cancelled = 3, s.failed = 4, s.attempts = 20;
    s.in_doubt = 5, s.released = 6, s.renewals = 1, s.renewals_failed = 8;
    s.requests = std::numeric_limits<std::uint64_t>::max();
    s.lost = 21, s.losses = {1, 2, 3, 4, 5, 6};
    s.waiting = 9, s.held = 10, s.moves = 11;
    s.wait_time.buckets[0] = 4, s.wait_time.buckets[8] = 2, s.wait_time.buckets[17] = 1;
    s.wait_time.sum = 10'001'500ms;
    s.renewal_time.buckets[1] = 1, s.renewal_time.sum = 200'007ns;
    return s;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

std::string golden() {
    std::ifstream file(GOLDEN_METRICS);
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("prometheus_text: the whole of a small text", "[core]") {
    const auto text = hf::prometheus_text(small(), {{"instance", "web1"}, {"backend", "redis"}});
    const auto lines = lines_of(text), expected = lines_of(golden());
    for (std::size_t i = 0; i < std::min(lines.size(), expected.size()); ++i)
        CHECK(lines[i] == expected[i]);
    CHECK(text == golden());
    const auto bare = hf::prometheus_text(small());
    CHECK(bare.find("\nholdfast_acquired_total 7\n") != std::string::npos);
    CHECK(bare.find("\nholdfast_lost_total{reason=\"gone\"} 2\n") != std::string::npos);
    CHECK(bare.find("\nholdfast_wait_seconds_bucket{le=\"0.0001\"} 4\n") != std::string::npos);
}

TEST_CASE("prometheus_text: values of labels are escaped", "[core]") {
    using namespace std::string_literals;
    const auto text = hf::prometheus_text({}, {{"v", "a\\b\"c\nd\xff\0\t\xc3\xbc"s}});
    CHECK(text.find("holdfast_held{v=\"a\\\\b\\\"c\\nd\xEF\xBF\xBD\xEF\xBF\xBD\t\xc3\xbc\"} 0\n") !=
          std::string::npos);
}

TEST_CASE("prometheus_text: several clients, each metric described once", "[core]") {
    hf::Stats other;
    other.acquired = 1;
    const std::vector<hf::LabelledStats> both{{{{"backend", "redis"}}, small()},
                                              {{{"backend", "etcd"}}, other}};
    const auto text = hf::prometheus_text(both);
    CHECK(text.find("holdfast_acquired_total{backend=\"redis\"} 7\n"
                    "holdfast_acquired_total{backend=\"etcd\"} 1\n") != std::string::npos);
    std::set<std::string> described;
    for (const std::string& line : lines_of(text))
        if (line.starts_with("# ")) CHECK(described.insert(line).second);
    CHECK(described.size() == 2 * 17 + 3 + 1);
    // Every sample of one client comes before those of the next.
    const auto last = text.find("holdfast_wait_seconds_sum{backend=\"redis\"}");
    const auto first = text.find("holdfast_wait_seconds_bucket{backend=\"etcd\"");
    REQUIRE(last != std::string::npos);
    CHECK(last < first);
    CHECK(hf::prometheus_text(std::span<const hf::LabelledStats>()).ends_with("# EOF\n"));
}

TEST_CASE("prometheus_text: labels that cannot be are refused, by name", "[core]") {
    const auto refused = [](hf::MetricLabels labels) {
        try {
            (void)hf::prometheus_text({}, labels);
        } catch (const std::invalid_argument& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused({{"a-b", ""}}) == "label \"a-b\": use letters, digits and _, and no digit first");
    CHECK_FALSE(refused({{"", ""}}).empty());
    CHECK_FALSE(refused({{"1a", ""}}).empty());
    CHECK_FALSE(refused({{"\xc3\xbc", ""}}).empty());
    CHECK_FALSE(refused({{"__name__", ""}}).empty());
    CHECK(refused({{"le", ""}}) == "label \"le\": Holdfast sets this one itself");
    CHECK_FALSE(refused({{"reason", ""}}).empty());
    CHECK(refused({{"a", "1"}, {"b", "2"}, {"a", "3"}}) == "label \"a\": it is there twice");
    CHECK(refused({{"_A1", ""}}).empty());
    const std::vector<hf::LabelledStats> same(2);
    CHECK_THROWS_AS(hf::prometheus_text(same), std::invalid_argument);
}
