// The verdicts about faults of servers, each shown both ways, from rows that are written down.
#include "scores.hpp"
#include "verdict_rows.hpp"

using namespace holdfast::bench;

namespace {

/// `value` of `n` runs.
Row runs(const char* scenario, const char* backend, const char* variant, double value,
         std::uint64_t n = 10, const char* metric = "runs with two holders") {
    Row r = row(scenario, backend, variant, metric, value);
    r.n = n;
    return r;
}

}  // namespace

TEST_CASE("what is said of runs is confirmed or refuted by ten of them, and not by fewer") {
    const auto rows = [](std::uint64_t n, double caught) {
        return Rows{runs("C13", "redis", "cut, then promoted", caught, n),
                    runs("C13", "redis", "replicated, then promoted", 0, n)};
    };
    CHECK(finding(rows(10, 10), "C13") == Finding::confirmed);
    CHECK(finding(rows(10, 9), "C13") == Finding::confirmed);
    CHECK(finding(rows(10, 8), "C13") == Finding::refuted);
    CHECK(finding(rows(1, 1), "C13") == Finding::too_few);
    CHECK(finding(rows(9, 9), "C13") == Finding::too_few);
    CHECK(
        verdict(rows(1, 1), "C13").figure.ends_with("; in 1 run of a set-up: a verdict takes 10"));
    CHECK(verdict(rows(3, 0), "C13")
              .figure.ends_with("; not so in 3 runs of a set-up: a verdict takes 10"));
    CHECK(finding(rows(1, 0), "C13") == Finding::too_few);
    // One set-up that ran less often than the others is enough.
    auto few = rows(10, 10);
    few.push_back(runs("C13", "redis", "cut, then promoted, min_replicas_ack 1", 0, 3));
    CHECK(finding(few, "C13") == Finding::too_few);
}

namespace {

/// The same in `n` runs instead of ten, for the rows of one metric; all others keep their ten.
Rows with_few(Rows rows, const std::string& metric, std::uint64_t n) {
    for (Row& r : rows)
        if (r.metric == metric) r.n = n, r.value *= static_cast<double>(n) / 10;
    return rows;
}

}  // namespace

TEST_CASE("C12, C14, C17, C31: each row that sums up runs needs ten of them") {
    // As the scenarios write them: the unit says that n is a number of runs.
    struct Case {
        const char* scenario;
        const char* metric;
        Rows rows;
    };
    const auto of = [](const char* scenario, const char* backend, const char* metric, double x,
                       double value, const char* unit) {
        Row r = runs(scenario, backend, "default", value, 10, metric);
        r.x = x;
        r.unit = unit;
        return r;
    };
    const char* stale = "stale writes accepted by a store without a fence";
    const char* refused = "stale writes refused by a fenced store";
    const char* kept = "holders that kept their lease";
    const char* share = "share of attempts granted";
    const char* lost = "leases lost";
    const char* paused = "leases lost to pauses of the process";
    const char* killed = "time without a holder after SIGKILL";
    const Case all[] = {
        {"C12",
         stale,
         {of("C12", "redis", stale, 0, 30, "in 10 runs"),
          of("C12", "redis", refused, 0, 30, "in 10 runs")}},
        {"C14",
         kept,
         {of("C14", "redlock", kept, 1, 10, "of 10 runs"), of("C14", "redlock", share, 1, 1, ""),
          of("C14", "redlock", kept, 2, 10, "of 10 runs"), of("C14", "redlock", share, 2, 1, ""),
          of("C14", "redlock", kept, 3, 0, "of 10 runs"), of("C14", "redlock", share, 3, 0, "")}},
        {"C17",
         lost,
         {of("C17", "zookeeper", lost, 0, 0, "of 10 runs"),
          of("C17", "zookeeper", lost, 1000, 5, "of 10 runs"),
          of("C17", "zookeeper", "runs with two holders", 0, 0, "")}},
        {"C31",
         paused,
         {of("C31", "redis", killed, 500, 500, "ms"), of("C31", "redis", killed, 2000, 2000, "ms"),
          of("C31", "redis", paused, 500, 67, "% in 10 runs"),
          of("C31", "redis", paused, 2000, 0, "% in 10 runs")}}};
    for (const Case& c : all) {
        INFO(c.scenario);
        CHECK(finding(c.rows, c.scenario) == Finding::confirmed);
        CHECK(finding(with_few(c.rows, c.metric, 9), c.scenario) == Finding::too_few);
        CHECK(finding(with_few(c.rows, c.metric, 1), c.scenario) == Finding::too_few);
    }
}

TEST_CASE("C4: five nodes against one") {
    const auto rows = [](double us, double cpu, double requests) {
        Rows all;
        for (const auto& [metric, one, five] :
             {std::tuple{"acquire + release, p50", 50.0, us},
              {"CPU of the servers", 10.0, cpu},
              {"requests per acquire + release", 2.0, requests}}) {
            all.push_back(row("C4", "redis", "plain", metric, one));
            all.push_back(row("C4", "redlock", "no token", metric, five));
        }
        return all;
    };
    CHECK(finding(rows(200, 50, 10), "C4") == Finding::confirmed);
    CHECK(finding(rows(60, 50, 10), "C4") == Finding::only_if);
    CHECK(finding(rows(50, 11, 2), "C4") == Finding::refuted);
    auto some = rows(200, 50, 10);
    some.pop_back();
    CHECK(finding(some, "C4") == Finding::not_measured);
}

TEST_CASE("C17: delays") {
    const auto rows = [](double whole, double late, double both, std::uint64_t n = 10) {
        Rows all;
        for (const auto& [ms, lost] : {std::pair(0.0, whole), {1000.0, late}}) {
            all.push_back(runs("C17", "zookeeper", "default", lost, n, "leases lost"));
            all.back().x = ms;
            all.push_back(runs("C17", "zookeeper", "default", ms > 0 ? both : 0, n));
            all.back().x = ms;
        }
        return all;
    };
    CHECK(finding(rows(0, 2, 0), "C17") == Finding::confirmed);
    CHECK(finding(rows(0, 2, 0, 2), "C17") != Finding::confirmed);
    CHECK(finding(rows(0, 2, 1), "C17") == Finding::only_if);
    CHECK(finding(rows(0, 0, 0), "C17") == Finding::refuted);
    CHECK(finding(rows(1, 2, 0), "C17") == Finding::refuted);
}

TEST_CASE("C31: short and long ttls") {
    const auto rows = [](double without, double lost) {
        const char* pauses = "leases lost to pauses of the process";
        const char* killed = "time without a holder after SIGKILL";
        return Rows{row("C31", "redis", "default", killed, 500, 500),
                    row("C31", "redis", "default", killed, without, 2000),
                    row("C31", "redis", "default", pauses, 67, 500),
                    row("C31", "redis", "default", pauses, lost, 2000)};
    };
    CHECK(finding(rows(2000, 0), "C31") == Finding::confirmed);
    CHECK(finding(rows(600, 0), "C31") == Finding::only_if);
    CHECK(finding(rows(2000, 67), "C31") == Finding::only_if);
    CHECK(finding(rows(600, 67), "C31") == Finding::refuted);
}

TEST_CASE("C7: lines of code") {
    const auto rows = [](double zookeeper, double redis, double sqlite, double postgresql) {
        return Rows{row("C7", "zookeeper", "default", "lines of code", zookeeper),
                    row("C7", "redis", "default", "lines of code", redis),
                    row("C7", "sqlite", "default", "lines of code", sqlite),
                    row("C7", "postgresql", "default", "lines of code", postgresql)};
    };
    CHECK(finding(rows(3000, 4000, 1000, 2000), "C7") == Finding::confirmed);
    CHECK(finding(rows(2100, 4000, 1000, 2000), "C7") == Finding::only_if);
    CHECK(finding(rows(1000, 4000, 1000, 2000), "C7") == Finding::refuted);
    const auto with_mysql = [&](Rows all, double mysql) {
        all.push_back(row("C7", "mysql", "default", "lines of code", mysql));
        return finding(all, "C7");
    };
    CHECK(with_mysql(rows(3000, 4000, 1000, 2000), 2400) == Finding::confirmed);
    CHECK(with_mysql(rows(3000, 4000, 1000, 2000), 2600) == Finding::only_if);
    CHECK(with_mysql(rows(2100, 4000, 2000, 2000), 1000) == Finding::only_if);
    CHECK(finding({row("C7", "redis", "default", "lines of code", 1)}, "C7") ==
          Finding::not_measured);
}

TEST_CASE("C13: the replica that had not heard of it") {
    const auto rows = [](double cut, double replicated, double guarded, double acknowledged = 0) {
        return Rows{runs("C13", "redis", "cut, then promoted", cut),
                    runs("C13", "redis", "replicated, then promoted", replicated),
                    runs("C13", "redis", "cut, then promoted, min-replicas-to-write 1", guarded),
                    runs("C13", "redis", "cut, then promoted, min_replicas_ack 1", acknowledged)};
    };
    CHECK(finding(rows(10, 0, 0), "C13") == Finding::confirmed);
    CHECK(finding(rows(9, 0, 0), "C13") == Finding::confirmed);
    CHECK(finding(rows(8, 0, 0), "C13") == Finding::refuted);
    CHECK(finding(rows(10, 1, 0), "C13") == Finding::refuted);
    CHECK(finding(rows(10, 0, 1), "C13") == Finding::refuted);
    CHECK(finding(rows(10, 0, 0, 1), "C13") == Finding::refuted);
    // A server that is asked before it misses its replica grants what nobody else hears of.
    const auto at_once = [&](double seen) {
        auto all = rows(10, 0, 0);
        all.push_back(runs("C13", "redis",
                           "cut, then promoted, min-replicas-to-write 1, asked at once", seen));
        return all;
    };
    CHECK(finding(at_once(10), "C13") == Finding::confirmed);
    CHECK(finding(at_once(8), "C13") == Finding::refuted);
    CHECK(verdict(at_once(10), "C13").figure.find("asked at once: 10 of 10 runs") !=
          std::string::npos);
    CHECK(finding({runs("C13", "redis", "cut, then promoted", 10)}, "C13") ==
          Finding::not_measured);
    CHECK(verdict(rows(10, 0, 0), "C13").figure.find("no token went back") != std::string::npos);
    auto back = rows(10, 0, 0);
    back.push_back(runs("C13", "redis", "late clock", 7, 10, "runs with a token going back"));
    CHECK(verdict(back, "C13").figure.find("late clock: 7 of 10 runs") != std::string::npos);
}

TEST_CASE("C14: one, two, three of five") {
    const auto rows = [](double two, double kept, double three) {
        Rows all;
        const auto add = [&](double killed, double share, double held) {
            all.push_back(
                row("C14", "redlock", "default", "share of attempts granted", share, killed));
            all.push_back(
                row("C14", "redlock", "default", "holders that kept their lease", held, killed));
            all.back().n = 10;
        };
        add(1, 1, 10);
        add(2, two, kept);
        add(3, three, 0);
        return all;
    };
    CHECK(finding(rows(1, 10, 0), "C14") == Finding::confirmed);
    CHECK(finding(rows(0.9, 10, 0), "C14") == Finding::refuted);
    CHECK(finding(rows(1, 9, 0), "C14") == Finding::refuted);
    CHECK(finding(rows(1, 10, 0.1), "C14") == Finding::refuted);
}

TEST_CASE("C15: a clock, and a node without its data") {
    const auto rows = [](double jump, double emptied, double control, double delayed) {
        return Rows{runs("C15", "redlock", "clock jumps ahead", jump),
                    runs("C15", "redlock", "emptied, durable=yes told wrongly", emptied),
                    runs("C15", "redlock", "no fault", control),
                    runs("C15", "redlock", "clock jumps back", 0),
                    runs("C15", "redlock", "emptied, delayed restart", delayed)};
    };
    CHECK(finding(rows(10, 10, 0, 0), "C15") == Finding::confirmed);
    CHECK(finding(rows(10, 3, 0, 0), "C15") == Finding::only_if);
    CHECK(finding(rows(0, 0, 0, 0), "C15") == Finding::refuted);
    CHECK(finding(rows(10, 10, 1, 0), "C15") == Finding::refuted);
    CHECK(finding(rows(10, 10, 0, 1), "C15") == Finding::refuted);
    CHECK(finding({runs("C15", "redlock", "no fault", 0)}, "C15") == Finding::not_measured);
}

TEST_CASE("C16: in time, and not before") {
    const auto rows = [](double next, double two, double early) {
        return Rows{
            row("C16", "zookeeper", "default", "time until the next holder: SIGKILL", 900, 1000),
            row("C16", "redis", "default", "time until the next holder: SIGKILL", next, 1000),
            row("C16", "redis", "default", "runs with two holders: SIGKILL", two, 1000),
            row("C16", "redis", "default", "granted before the promised time was over: SIGKILL",
                early, 1000)};
    };
    CHECK(finding(rows(1400, 0, 0), "C16") == Finding::confirmed);
    CHECK(finding(rows(1600, 0, 0), "C16") == Finding::only_if);
    auto blocked = rows(900, 0, 0);
    blocked.push_back(row("C16", "sqlite", "default",
                          "runs in which nobody was granted the lock until the holder went on: "
                          "SIGSTOP",
                          1, 1000));
    CHECK(finding(blocked, "C16") == Finding::only_if);
    CHECK(finding(rows(900, 1, 0), "C16") == Finding::refuted);
    CHECK(finding(rows(900, 0, 12), "C16") == Finding::refuted);
    CHECK(finding({row("C16", "redis", "default", "time until the next holder: SIGKILL", 1, 1)},
                  "C16") == Finding::not_measured);
}

TEST_CASE("C18: the one server") {
    const auto rows = [](double outlived, double twice, double forgotten) {
        const char* kept = "runs in which the holder kept its lease";
        return Rows{runs("C18", "postgresql", "hung", 0),
                    runs("C18", "postgresql", "hung", outlived, 10, kept),
                    row("C18", "postgresql", "hung", "time until the holder was told", 700, 1000),
                    runs("C18", "postgresql", "crashed, back at once", twice),
                    runs("C18", "postgresql", "crashed, back at once", 10, 10, kept),
                    runs("C18", "redis", "memory only, crashed, back at once", forgotten)};
    };
    CHECK(finding(rows(0, 0, 10), "C18") == Finding::confirmed);
    CHECK(verdict(rows(0, 0, 10), "C18").figure.find("two holders in 10 of 10 runs") !=
          std::string::npos);
    CHECK(finding(rows(1, 0, 10), "C18") == Finding::refuted);
    CHECK(finding(rows(0, 1, 10), "C18") == Finding::refuted);
    CHECK(finding({runs("C18", "redis", "durable, hung", 0)}, "C18") == Finding::not_measured);
}

TEST_CASE("C18a: one of several servers") {
    const auto rows = [](double two, double killed, double silent) {
        const char* kept = "runs in which the holder kept its lease";
        return Rows{runs("C18a", "zookeeper", "3 servers, leader killed", two),
                    runs("C18a", "zookeeper", "3 servers, leader killed", killed, 10, kept),
                    runs("C18a", "redlock", "5 servers, node silent", 0),
                    runs("C18a", "redlock", "5 servers, node silent", silent, 10, kept)};
    };
    CHECK(finding(rows(0, 10, 10), "C18a") == Finding::confirmed);
    CHECK(finding(rows(0, 9, 10), "C18a") == Finding::only_if);
    CHECK(finding(rows(0, 0, 0), "C18a") == Finding::refuted);
    CHECK(finding(rows(1, 10, 10), "C18a") == Finding::refuted);
    CHECK(finding({runs("C18a", "zookeeper", "3 servers, leader killed", 0)}, "C18a") ==
          Finding::not_measured);
}

TEST_CASE("C18b: the standby") {
    const auto rows = [](double asynchronous, double synchronous) {
        return Rows{runs("C18b", "postgresql", "asynchronous, cut", asynchronous),
                    runs("C18b", "postgresql", "synchronous, cut", synchronous),
                    runs("C18b", "postgresql", "synchronous, whole", 0)};
    };
    CHECK(finding(rows(0, 0), "C18b") == Finding::confirmed);
    CHECK(finding(rows(10, 0), "C18b") == Finding::only_if);
    CHECK(finding(rows(10, 1), "C18b") == Finding::refuted);
    CHECK(finding({runs("C18b", "postgresql", "asynchronous, cut", 1)}, "C18b") ==
          Finding::not_measured);
}

TEST_CASE("C21: what was measured, added up") {
    // Two backends that differ in one thing at a time.
    struct One {
        double two = 0, stale = 1, passed = 0, gap = 950;
    };
    const auto rows_of = [](const char* backend, const One& one) {
        const auto of = [&](const char* scenario, const char* variant, const char* metric,
                            double value, double x = 0) {
            Row r = row(scenario, backend, variant, metric, value, x);
            r.n = 10;
            return r;
        };
        return Rows{
            of("C18", "hung", "runs with two holders", one.two),
            of("C16", "default", "runs with two holders: SIGKILL", 0),
            of("C16", "default", "time without a holder: SIGKILL", one.gap, 1000),
            of("C12", "default", "stale writes accepted by a store without a fence", 10 * one.stale,
               1000),
            of("C12", "default", "stale writes refused by a fenced store", 10, 1000),
            of("C12", "default", "stale writes accepted by a fenced store", one.passed, 1000)};
    };
    const auto score = [&](const One& one, const One& other) {
        Rows rows = rows_of("redis", one);
        for (const Row& r : rows_of("zookeeper", other))
            rows.push_back(r);
        const Rows all = reliability(rows);
        const Row* found = find(all, {"C21", "redis", {}, score_reliability});
        REQUIRE(found != nullptr);
        return found->value;
    };
    CHECK(score({}, {}) == 1);
    CHECK(score({.two = 1}, {}) == 1.25);
    CHECK(score({.stale = 1}, {.stale = 0}) == 1.25);
    CHECK(score({.stale = 4}, {.stale = 1}) == 1);  // one is enough
    CHECK(score({.passed = 1}, {}) == 1.25);
    CHECK(score({.gap = 1300}, {}) == 1.25);
    CHECK(score({.gap = 1000}, {}) == 1);  // less than a tenth
    CHECK(score({}, {.two = 1}) == 1);
    Rows blocked = rows_of("redis", {}), other = rows_of("zookeeper", {.gap = 3000});
    blocked.insert(blocked.end(), other.begin(), other.end());
    blocked.push_back(row("C16", "redis", "default",
                          "runs in which nobody was granted the lock until the holder went on: "
                          "SIGSTOP",
                          1, 1000));
    CHECK(find(reliability(blocked), {"C21", "redis", {}, score_reliability})->value == 1.25);
    const Rows few = rows_of("redis", {});
    CHECK(reliability({few.begin(), few.begin() + 3}).empty());  // C12 was not measured
    const Rows alone = reliability(few);
    const Row* two = find(alone, {"C21", "redis", {}, score_overlaps});
    CHECK((two->n == 10 && two->unit == "of 2 set-ups, each in at least 10 runs"));
}

TEST_CASE("C21: reliability") {
    const auto rows = [](double zookeeper, double redis, double sqlite, double sql) {
        Rows all;
        for (const auto& [backend, score] : {std::pair{"zookeeper", zookeeper},
                                             {"redis", redis},
                                             {"sqlite", sqlite},
                                             {"postgresql", sql}}) {
            all.push_back(row("C21", backend, "default", score_reliability, score));
            all.push_back(row("C21", backend, "default", score_overlaps, 1));
            all.push_back(row("C21", backend, "default", score_without, 1));
        }
        return all;
    };
    CHECK(finding(rows(1, 1.5, 2, 2), "C21") == Finding::confirmed);
    CHECK(finding(rows(1, 1.5, 1.5, 2), "C21") == Finding::only_if);
    CHECK(finding(rows(1, 2, 1.5, 1.5), "C21") == Finding::refuted);
    CHECK(finding(rows(1.5, 1.5, 2, 2), "C21") == Finding::refuted);
    Rows with_mysql = rows(1, 1.5, 2, 2);
    for (const char* metric : {score_reliability, score_overlaps, score_without})
        with_mysql.push_back(row("C21", "mysql", "default", metric, 1));
    CHECK(finding(with_mysql, "C21") == Finding::only_if);
    Rows once = rows(1, 1.5, 2, 2);
    once[1].n = 1;
    once[1].unit = "of 2 set-ups, each in at least 1 runs";
    CHECK(finding(once, "C21") == Finding::too_few);
}

TEST_CASE("C25: one leader after the other") {
    const auto rows = [](double two, double longest) {
        Row gap = row("C25", "redis", "default", "time without a leader", 900, 1000);
        gap.max = longest;
        return Rows{row("C25", "redis", "default", "changes of leader with two leaders", two), gap};
    };
    CHECK(finding(rows(0, 1100), "C25") == Finding::confirmed);
    CHECK(finding(rows(0, 2100), "C25") == Finding::only_if);
    CHECK(finding(rows(1, 1100), "C25") == Finding::refuted);
    Rows few = rows(0, 1100);
    few[0].unit = "of 4 runs";
    few[0].n = 4;
    CHECK(finding(few, "C25") == Finding::too_few);
}

TEST_CASE("C30: ranks by what was measured, and who is first at two of them") {
    struct One {
        double lines, p50, score;
    };
    const auto of = [](const One& redis, const One& sqlite) {
        Rows all;
        for (const auto& [backend, one] : {std::pair{"redis", redis}, {"sqlite", sqlite}}) {
            all.push_back(row("C7", backend, "default", "lines of code", one.lines));
            all.push_back(row("C1", backend, "default", "p50", one.p50));
            all.push_back(row("C21", backend, "default", score_reliability, one.score));
        }
        for (const Row& r : ranks(all))
            all.push_back(r);
        return all;
    };
    const Rows both = of({4000, 30, 2}, {3000, 200, 1});
    CHECK(find(both, {"C30", "redis", {}, rank_complexity})->value == 2);
    CHECK(find(both, {"C30", "redis", {}, rank_performance})->value == 1);
    CHECK(find(both, {"C30", "redis", {}, rank_reliability})->value == 2);
    CHECK(finding(both, "C30") == Finding::only_if);
    CHECK(finding(of({4000, 300, 2}, {3000, 200, 1}), "C30") == Finding::refuted);
    const Row *lines = find(both, {"C7", "redis"}), *speed = find(both, {"C1", "redis"});
    CHECK(ranks({*lines, *speed}).empty());  // no score
    // Three backends, each first at one thing.
    Rows three;
    for (const auto& [backend, first] : {std::pair{"redis", 0}, {"sqlite", 1}, {"etcd", 2}}) {
        three.push_back(row("C7", backend, "default", "lines of code", first == 0 ? 1 : 2));
        three.push_back(row("C1", backend, "default", "p50", first == 1 ? 1 : 2));
        three.push_back(row("C21", backend, "default", score_reliability, first == 2 ? 1 : 2));
    }
    for (const Row& r : ranks(three))
        three.push_back(r);
    CHECK(finding(three, "C30") == Finding::confirmed);
}

TEST_CASE("C24: what is left of names used once") {
    const auto rows = [](double persistent, double container) {
        return Rows{row("C24", "zookeeper", "persistent parents", "left per name", persistent),
                    row("C24", "zookeeper", "container parents", "left per name", container)};
    };
    CHECK(finding(rows(1, 0), "C24") == Finding::confirmed);
    CHECK(finding(rows(1, 0.3), "C24") == Finding::only_if);
    CHECK(finding(rows(1, 0.8), "C24") == Finding::refuted);
    CHECK(finding(rows(0, 0), "C24") == Finding::refuted);
}

TEST_CASE("verdicts are in the order of the claims") {
    std::string last;
    for (const Verdict& v : verdicts({})) {
        const auto number = [](const std::string& id) { return std::stoi(id.substr(1)); };
        if (!last.empty()) CHECK(std::pair(number(last), last) < std::pair(number(v.id), v.id));
        last = v.id;
    }
}
