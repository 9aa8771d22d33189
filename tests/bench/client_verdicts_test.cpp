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

TEST_CASE("C19: the naive row and the improved one") {
    const auto of = [](const char* sql, double for_ever, double again, double waited,
                       double at_work, double naive_again = 0) {
        const char *naive = "doc: insert/delete", *improved = "doc: owner, count, sweeper";
        return Rows{row("C19", sql, naive, "held for ever after a crash", for_ever),
                    row("C19", sql, naive, "entered again by its holder", naive_again),
                    row("C19", sql, naive, "waited for a release", 0),
                    row("C19", sql, improved, "held for ever after a crash", 0),
                    row("C19", sql, improved, "entered again by its holder", again),
                    row("C19", sql, improved, "waited for a release", waited),
                    row("C19", sql, improved, "freed while its holder worked", at_work)};
    };
    const auto rows = [&](auto... values) { return of("postgresql", values...); };
    CHECK(finding(rows(10, 10, 10, 0), "C19") == Finding::confirmed);
    CHECK(finding(rows(10, 10, 10, 10), "C19") == Finding::only_if);
    CHECK(finding(rows(5, 10, 10, 0), "C19") == Finding::refuted);
    CHECK(finding(rows(10, 5, 10, 0), "C19") == Finding::refuted);
    CHECK(finding(rows(10, 10, 5, 0), "C19") == Finding::refuted);
    CHECK(finding(rows(10, 10, 10, 0, 1), "C19") == Finding::refuted);
    // Said of databases: it has to hold on each.
    const auto both = [&](const Rows& mysql) {
        Rows all = rows(10, 10, 10, 0);
        all.insert(all.end(), mysql.begin(), mysql.end());
        return finding(all, "C19");
    };
    CHECK(both(of("mysql", 10, 10, 10, 0)) == Finding::confirmed);
    CHECK(both(of("mysql", 10, 10, 10, 10)) == Finding::only_if);
    CHECK(both(of("mysql", 5, 10, 10, 0)) == Finding::refuted);
}

TEST_CASE("C19a: state and version, as printed and corrected") {
    const auto rows = [](double by_name, double uncounted, double corrected, double own) {
        const char* metric = "two holders at once";
        return Rows{
            row("C19a", "postgresql", "doc: state/version, UPDATE by name", metric, by_name),
            row("C19a", "postgresql", "doc: state/version, count not looked at", metric, uncounted),
            row("C19a", "postgresql", "corrected: state/version compared and counted", metric,
                corrected),
            row("C19a", "postgresql", "default", metric, own)};
    };
    CHECK(finding(rows(10, 9, 0, 0), "C19a") == Finding::confirmed);
    CHECK(finding(rows(8, 10, 0, 0), "C19a") == Finding::refuted);
    CHECK(finding(rows(10, 8, 0, 0), "C19a") == Finding::refuted);
    CHECK(finding(rows(10, 10, 1, 0), "C19a") == Finding::refuted);
    CHECK(finding(rows(10, 10, 0, 1), "C19a") == Finding::refuted);
}

TEST_CASE("C20: half-done work") {
    const std::string found = "half-done work found by the next holder",
                      untold = "not told by previous_holder()";
    const auto of = [](const char* backend, const std::string& metric, double seen) {
        return row("C20", backend, "default", metric.c_str(), seen);
    };
    const auto rows = [&] {
        Rows all;
        for (const std::string fault : {": crash", ": exception"}) {
            all.push_back(of("redis", found + fault, 10));
            all.push_back(of("redis", "not told by a flag in the store" + fault, 0));
            all.push_back(of("redis", untold + fault, 0));
            all.push_back(of("redis", "repaired by the next holder" + fault, 10));
            all.push_back(of("redis", "readers that acted on the half" + fault, 0));
            all.push_back(of("etcd", found + fault, 10));
        }
        return all;
    };
    CHECK(finding(rows(), "C20") == Finding::confirmed);
    for (std::size_t i = 0; i < rows().size(); ++i) {  // each of them can refute it
        Rows wrong = rows();
        wrong[i].value = wrong[i].value > 0 ? 8 : 1;
        CHECK(finding(wrong, "C20") == Finding::refuted);
    }
    CHECK(finding({of("etcd", found + ": crash", 10)}, "C20") == Finding::not_measured);
}

TEST_CASE("C20a: who comes back after a crash") {
    const auto rows = [](double same, double redis) {
        const char* metric = "entered at once over half-done work";
        return Rows{row("C20a", "postgresql", "doc: host and thread", metric, same),
                    row("C20a", "redis", "default", metric, redis)};
    };
    CHECK(finding(rows(10, 0), "C20a") == Finding::confirmed);
    CHECK(finding(rows(8, 0), "C20a") == Finding::refuted);
    CHECK(finding(rows(10, 1), "C20a") == Finding::refuted);
}

TEST_CASE("C26: watches that stay") {
    const auto rows = [](double exists, double data, double own) {
        const char* metric = "watches left at the server";
        return Rows{row("C26", "zookeeper", "doc: exists watch", metric, exists),
                    row("C26", "zookeeper", "data watch", metric, data),
                    row("C26", "zookeeper", "default", metric, own)};
    };
    CHECK(finding(rows(10, 0, 0), "C26") == Finding::confirmed);
    CHECK(finding(rows(5, 0, 0), "C26") == Finding::refuted);
    CHECK(finding(rows(10, 1, 0), "C26") == Finding::refuted);
    CHECK(finding(rows(10, 0, 1), "C26") == Finding::refuted);
}

TEST_CASE("C27: what woken means") {
    const auto rows = [](double granted, double looks, double zookeeper) {
        const char* metric = "two holders after a waiter's death";
        return Rows{row("C27", "zookeeper", "doc: woken means granted", metric, granted),
                    row("C27", "zookeeper", "bare: woken means look again", metric, looks),
                    row("C27", "zookeeper", "default", metric, zookeeper)};
    };
    CHECK(finding(rows(10, 0, 0), "C27") == Finding::confirmed);
    CHECK(finding(rows(8, 0, 0), "C27") == Finding::refuted);
    CHECK(finding(rows(10, 1, 0), "C27") == Finding::refuted);
    CHECK(finding(rows(10, 0, 1), "C27") == Finding::refuted);
}

TEST_CASE("C28: numbers that go back") {
    const auto rows = [](double number) {
        const char* metric = "went back over deletion of the parent";
        return Rows{row("C28", "zookeeper", "doc: sequence number", metric, number),
                    row("C28", "zookeeper", "czxid", metric, 0),
                    row("C28", "zookeeper", "default", metric, 0)};
    };
    CHECK(finding(rows(10), "C28") == Finding::only_if);
    CHECK(finding(rows(0), "C28") == Finding::confirmed);
}

TEST_CASE("C4a: in turn or at once") {
    const auto rows = [](double turn_hung, double once_hung) {
        return Rows{row("C4a", "redlock", "doc: in turn", "cycle, all nodes up", 0.5),
                    row("C4a", "redlock", "doc: in turn", "cycle, one node hung", turn_hung),
                    row("C4a", "redlock", "no token", "cycle, all nodes up", 0.6),
                    row("C4a", "redlock", "no token", "cycle, one node hung", once_hung),
                    row("C4a", "redlock", "no token", "first cycle after a node hung", 250)};
    };
    CHECK(finding(rows(100, 0.7), "C4a") == Finding::only_if);
    CHECK(finding(rows(1, 0.7), "C4a") == Finding::confirmed);
    CHECK(finding(rows(100, 60), "C4a") == Finding::refuted);
}
