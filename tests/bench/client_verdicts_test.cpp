// The verdicts on what clients do wrong, each both ways, from rows that are written down.
#include "catch.hpp"

#include "verdict.hpp"

using namespace holdfast::bench;

namespace {

/// `seen` of 10 runs, or a time.
Row row(const char* scenario, const char* backend, const char* variant, const char* metric,
        double seen) {
    Row r;
    r.scenario = scenario;
    r.backend = backend;
    r.variant = variant;
    r.metric = metric;
    r.value = r.min = r.max = seen;
    r.n = 10;
    return r;
}

Finding finding(const Rows& rows, const char* id) {
    for (const Verdict& v : verdicts(rows))
        if (v.id == id) {
            CHECK(v.figure.empty() == (v.finding == Finding::not_measured));
            return v.finding;
        }
    FAIL("no verdict " << id);
    return {};
}

}  // namespace

TEST_CASE("C9: a crash between two commands") {
    const auto rows = [](double two, double one, double redis) {
        const char* metric = "held for ever after a crash";
        return Rows{row("C9", "redis", "doc: SETNX, EXPIRE", metric, two),
                    row("C9", "redis", "doc: SET NX PX", metric, one),
                    row("C9", "redis", "default", metric, redis)};
    };
    CHECK(finding(rows(10, 0, 0), "C9") == Finding::confirmed);
    CHECK(finding(rows(9, 0, 0), "C9") == Finding::confirmed);
    CHECK(finding(rows(8, 0, 0), "C9") == Finding::refuted);
    CHECK(finding(rows(10, 1, 0), "C9") == Finding::refuted);
    CHECK(finding(rows(10, 0, 1), "C9") == Finding::refuted);
    CHECK(finding({row("C9", "redis", "default", "held for ever after a crash", 0)}, "C9") ==
          Finding::not_measured);
}

TEST_CASE("C10: whose lock a release frees") {
    const auto rows = [](double del, double by_path, double checked, double zookeeper) {
        const char* metric = "somebody else's lock freed";
        return Rows{row("C10", "redis", "doc: DEL", metric, del),
                    row("C10", "zookeeper", "doc: delete by path", metric, by_path),
                    row("C10", "redis", "checked: compare-and-delete", metric, checked),
                    row("C10", "zookeeper", "default", metric, zookeeper)};
    };
    CHECK(finding(rows(10, 9, 0, 0), "C10") == Finding::confirmed);
    CHECK(finding(rows(10, 5, 0, 0), "C10") == Finding::refuted);
    CHECK(finding(rows(10, 10, 1, 0), "C10") == Finding::refuted);
    CHECK(finding(rows(10, 10, 0, 1), "C10") == Finding::refuted);
}

TEST_CASE("C11: a job longer than the ttl") {
    const auto rows = [](double off, double on, double longer, double long_gap) {
        return Rows{row("C11", "redis", "default", "another at work: renewal off", off),
                    row("C11", "redis", "default", "another at work: renewal on", on),
                    row("C11", "redis", "default", "another at work: ttl x 5", longer),
                    row("C11", "redis", "default", "time without a holder after a crash", 500),
                    row("C11", "redis", "default", "time without a holder after a crash, ttl x 5",
                        long_gap)};
    };
    CHECK(finding(rows(10, 0, 0, 2500), "C11") == Finding::confirmed);
    CHECK(finding(rows(10, 0, 0, 600), "C11") == Finding::only_if);
    CHECK(finding(rows(7, 0, 0, 2500), "C11") == Finding::refuted);
    CHECK(finding(rows(10, 1, 0, 2500), "C11") == Finding::refuted);
    CHECK(finding(rows(10, 0, 1, 2500), "C11") == Finding::refuted);
}

TEST_CASE("C11a: the watchdog of a worker that hangs") {
    const auto rows = [](double kept, double ended) {
        return Rows{row("C11a", "redis", "default", "still held after 8 x ttl", kept),
                    row("C11a", "redis", "default", "ended by max_hold", ended)};
    };
    CHECK(finding(rows(10, 10), "C11a") == Finding::only_if);
    CHECK(finding(rows(10, 5), "C11a") == Finding::refuted);
    CHECK(finding(rows(0, 10), "C11a") == Finding::confirmed);
}
