// A verdict that could not come out otherwise says nothing: each is shown both ways here, from rows
// that are written down.
#include "verdict_rows.hpp"

using namespace holdfast::bench;

TEST_CASE("without rows nothing is claimed to be measured") {
    for (const Verdict& v : verdicts({})) {
        CHECK(v.finding == Finding::not_measured);
        CHECK(v.figure.empty());
        CHECK_FALSE(v.rule.empty());
    }
    CHECK(verdicts({}).size() == 40);
}

TEST_CASE("C1: Redis, ZooKeeper and databases") {
    const auto rows = [](double redis, double durable, double zookeeper, double sqlite,
                         double sql = 1000) {
        return Rows{row("C1", "redis", "default", "p50", redis),
                    row("C1", "redis", "durable", "p50", durable),
                    row("C1", "zookeeper", "default", "p50", zookeeper),
                    row("C1", "sqlite", "default", "p50", sqlite),
                    row("C1", "postgresql", "default", "p50", sql)};
    };
    CHECK(finding(rows(40, 400, 600, 800), "C1") == Finding::confirmed);
    CHECK(finding(rows(40, 900, 600, 800), "C1") == Finding::only_if);
    CHECK(finding(rows(40, 590, 600, 800), "C1") == Finding::only_if);
    CHECK(finding(rows(900, 2000, 600, 800), "C1") == Finding::refuted);
    CHECK(finding(rows(590, 600, 600, 800), "C1") == Finding::refuted);
    // ZooKeeper behind one database, behind both, and level with them.
    CHECK(finding(rows(40, 400, 900, 800), "C1") == Finding::only_if);
    CHECK(finding(rows(40, 400, 1200, 800), "C1") == Finding::refuted);
    CHECK(finding(rows(40, 400, 850, 800), "C1") == Finding::confirmed);
    CHECK(verdict(rows(40, 900, 600, 800), "C1").figure.find("redis 40 us") != std::string::npos);
    // And the third of three, where it was measured.
    const auto with_mysql = [&](Rows all, double mysql) {
        all.push_back(row("C1", "mysql", "default", "p50", mysql));
        return finding(all, "C1");
    };
    CHECK(with_mysql(rows(40, 400, 600, 800), 700) == Finding::confirmed);
    CHECK(with_mysql(rows(40, 400, 600, 800), 500) == Finding::only_if);
    CHECK(with_mysql(rows(40, 400, 600, 800), 420) == Finding::only_if);
    CHECK(with_mysql(rows(40, 400, 1200, 800), 1300) == Finding::only_if);
    CHECK(with_mysql(rows(40, 400, 1200, 800), 700) == Finding::refuted);
    Rows without = rows(40, 400, 600, 800);
    without.erase(without.begin() + 2);
    CHECK(finding(without, "C1") == Finding::not_measured);
}

TEST_CASE("C2: what more servers cost") {
    // Each: us for a lock, for create + delete, their CPU, and for a read.
    struct Size {
        double lock, write, cpu, read;
    };
    const auto rows = [](const Size& one, const Size& three, const Size& five) {
        Rows all;
        const auto add = [&](double x, const std::string& variant, const Size& size) {
            const auto put = [&](const std::string& words, const char* metric, double value) {
                all.push_back(row("C2", "zookeeper", words.c_str(), metric, value, x));
            };
            put(variant, "acquire + release, p50", size.lock);
            put(variant + ", bare create + delete", "create + delete, p50", size.write);
            put(variant + ", bare create + delete", "CPU of all servers, each", size.cpu);
            put(variant + ", bare read", "read, p50", size.read);
        };
        add(5, "5 servers", five);
        add(1, "1 server", one);
        add(3, "3 servers", three);
        return all;
    };
    const Size one{800, 600, 500, 80};
    CHECK(finding(rows(one, {1500, 900, 1000, 80}, {2000, 1200, 1700, 90}), "C2") ==
          Finding::confirmed);
    CHECK(finding(rows(one, {810, 610, 1000, 80}, {820, 620, 1700, 90}), "C2") == Finding::only_if);
    CHECK(finding(rows(one, {1500, 900, 500, 80}, {2000, 1200, 510, 90}), "C2") ==
          Finding::only_if);
    CHECK(finding(rows(one, {1500, 900, 1000, 120}, {2000, 1200, 1700, 160}), "C2") ==
          Finding::only_if);
    CHECK(finding(rows(one, {810, 610, 510, 80}, {820, 620, 520, 80}), "C2") == Finding::refuted);
}

TEST_CASE("C3: the herd against one") {
    const auto rows = [](double herd, double one) {
        return Rows{row("C3", "redis", "broadcast", "requests per hand-off", 3, 2),
                    row("C3", "redis", "broadcast", "requests per hand-off", herd, 100),
                    row("C3", "redis", "default", "requests per hand-off", one, 100)};
    };
    CHECK(finding(rows(101, 2.1), "C3") == Finding::confirmed);
    CHECK(finding(rows(101, 9), "C3") == Finding::only_if);
    CHECK(finding(rows(101, 80), "C3") == Finding::refuted);
    CHECK(finding(rows(3, 2.1), "C3") == Finding::refuted);

    const auto both = [&](double herd, double one) {
        Rows all = rows(101, 2.1);
        const char* metric = "requests per hand-off";
        all.push_back(row("C3", "zookeeper", "doc: one node, all watch", metric, herd, 100));
        all.push_back(row("C3", "zookeeper", "default", metric, one, 100));
        return all;
    };
    CHECK(finding(both(130, 5), "C3") == Finding::confirmed);
    CHECK(finding(both(130, 20), "C3") == Finding::only_if);
    CHECK(finding(both(130, 80), "C3") == Finding::refuted);
    CHECK(finding(both(30, 5), "C3") == Finding::refuted);

    // A burst has its words, and nothing depends on it.
    Rows burst = both(130, 5);
    burst.push_back(
        row("C3", "redis", "default", "burst: time until all survivors were served", 1234, 20));
    burst.push_back(row("C3", "redis", "default", "burst: requests per survivor", 7.5, 20));
    const auto told = verdict(burst, "C3");
    CHECK(told.finding == Finding::confirmed);
    CHECK(told.figure.find("half of 20 waiters") != std::string::npos);
    CHECK(told.figure.find("redis 1234 ms (7.5 requests each)") != std::string::npos);
    burst.erase(burst.begin(), burst.begin() + 5);
    CHECK(finding(burst, "C3") == Finding::not_measured);
}

TEST_CASE("C5: in line or asleep") {
    // Each: requests per grant, ms until 99 % are granted, guarded jobs per second.
    struct Way {
        double requests, p99, jobs;
    };
    const auto add = [](Rows& rows, const char* variant, const Way& way, double x) {
        rows.push_back(row("C5", "redis", variant, "requests per grant", way.requests, x));
        rows.push_back(row("C5", "redis", variant, "time to grant p99", way.p99, x));
        rows.push_back(row("C5", "redis", variant, "guarded jobs per second", way.jobs, x));
    };
    const auto rows = [&](const Way& waits, const Way& brief, const Way& long_sleep) {
        Rows all;
        add(all, "waits", waits, 20);
        add(all, "doc: sleeps 5 ms", brief, 20);
        add(all, "doc: sleeps 50 ms", long_sleep, 20);
        add(all, "waits", {2, 5, 300}, 2);  // few callers are not what is claimed
        add(all, "doc: sleeps 5 ms", {2, 5, 300}, 2);
        return all;
    };
    const Way line{2, 30, 800};
    CHECK(finding(rows(line, {7, 30, 800}, {2, 500, 800}), "C5") == Finding::confirmed);
    CHECK(finding(rows(line, {2, 30, 400}, {2, 60, 800}), "C5") == Finding::confirmed);
    CHECK(finding(rows(line, {3, 50, 700}, {2, 500, 800}), "C5") == Finding::refuted);
    CHECK(finding(rows(line, {7, 30, 800}, {3, 40, 900}), "C5") == Finding::refuted);
    CHECK(finding(rows({6, 30, 800}, {13, 30, 800}, {2, 500, 800}), "C5") == Finding::only_if);
    CHECK(finding(rows(line, {7, 10, 800}, {2, 500, 800}), "C5") == Finding::only_if);
    CHECK(finding(rows(line, {7, 30, 2000}, {2, 500, 800}), "C5") == Finding::only_if);
    Rows alone;
    add(alone, "waits", line, 20);
    CHECK(finding(alone, "C5") == Finding::not_measured);
}

TEST_CASE("C6: events against threads") {
    const auto rows = [](double waiter, double threads) {
        return Rows{row("C6", "redis", "default", "memory per lease", 800, 10'000),
                    row("C6", "redis", "default", "memory per waiter", waiter, 10'000),
                    row("C6", "redis", "default", "threads: leases", 1, 10'000),
                    row("C6", "redis", "default", "threads: waiters", threads, 10'000),
                    row("C6", "memory", "doc: a blocked thread each", "resident memory per waiter",
                        9000, 1000)};
    };
    CHECK(finding(rows(1500, 2), "C6") == Finding::confirmed);
    CHECK(finding(rows(5000, 2), "C6") == Finding::only_if);
    CHECK(finding(rows(1500, 5), "C6") == Finding::refuted);
}

TEST_CASE("C5a: being told against asking") {
    const auto rows = [](double told, double poll) {
        return Rows{row("C5a", "redis", "default", "requests per waiter and second", told, 100),
                    row("C5a", "redis", "50 ms poll", "requests per waiter and second", poll, 100)};
    };
    CHECK(finding(rows(0.1, 20), "C5a") == Finding::confirmed);
    CHECK(finding(rows(5, 20), "C5a") == Finding::only_if);
    CHECK(finding(rows(25, 20), "C5a") == Finding::refuted);
}

TEST_CASE("C8, C8a, C8b: damage without a lock, none with it") {
    const auto c8 = [](double none, double redis) {
        return Rows{row("C8", "none", "guard: none", "updates lost", none),
                    row("C8", "sqlite", "default", "updates lost", 0),
                    row("C8", "redis", "default", "updates lost", redis)};
    };
    CHECK(finding(c8(500, 0), "C8") == Finding::confirmed);
    CHECK(finding(c8(500, 1), "C8") == Finding::refuted);
    CHECK(finding(c8(0, 0), "C8") == Finding::refuted);
    CHECK(finding({row("C8", "none", "guard: none", "updates lost", 5)}, "C8") ==
          Finding::not_measured);

    const auto c8a = [](double each, double threads) {
        return Rows{
            row("C8a", "none", "std::mutex in each process", "updates lost", each),
            row("C8a", "none", "std::mutex, threads of one process", "updates lost", threads)};
    };
    CHECK(finding(c8a(400, 0), "C8a") == Finding::confirmed);
    CHECK(finding(c8a(0, 0), "C8a") == Finding::refuted);
    CHECK(finding(c8a(400, 3), "C8a") == Finding::refuted);

    const auto c8b = [](double none, double redis) {
        return Rows{row("C8b", "none", "guard: none", "sold", none, 10),
                    row("C8b", "redis", "default", "sold", redis, 10)};
    };
    CHECK(finding(c8b(37, 10), "C8b") == Finding::confirmed);
    CHECK(finding(c8b(37, 11), "C8b") == Finding::refuted);
    CHECK(finding(c8b(37, 9), "C8b") == Finding::refuted);
    CHECK(finding(c8b(10, 10), "C8b") == Finding::refuted);
}

TEST_CASE("C12: stale writes and the fence") {
    const auto rows = [](double redis, double plain, double refused, double passed) {
        const char* open = "stale writes accepted by a store without a fence";
        return Rows{
            row("C12", "redis", "default", open, redis), row("C12", "redis", "plain", open, plain),
            row("C12", "redis", "default", "stale writes refused by a fenced store", refused),
            row("C12", "redis", "default", "stale writes accepted by a fenced store", passed)};
    };
    CHECK(finding(rows(5, 4, 5, 0), "C12") == Finding::confirmed);
    CHECK(finding(rows(5, 0, 5, 0), "C12") == Finding::only_if);
    CHECK(finding(rows(5, 4, 4, 1), "C12") == Finding::refuted);
    CHECK(finding(rows(0, 0, 0, 0), "C12") == Finding::refuted);
}

TEST_CASE("C22: only who declares an order is judged by it") {
    const auto rows = [](double redis, double poll) {
        return Rows{row("C22", "redis", "default", "pairs served out of order", redis),
                    row("C22", "redis", "default", "declares fifo", 1),
                    row("C22", "redis", "poll", "pairs served out of order", poll),
                    row("C22", "redis", "poll", "declares fifo", 0)};
    };
    CHECK(finding(rows(0, 0.4), "C22") == Finding::confirmed);
    CHECK(finding(rows(0.01, 0.4), "C22") == Finding::refuted);
}

TEST_CASE("C23: readers that share, and whom they watch") {
    const auto rows = [](double redis, double etcd, double parent, double beside = 0) {
        const char* per_grant = "requests per grant";
        Rows all{
            row("C23", "redis", "default", "granted beside a writer", beside, 99),
            row("C23", "zookeeper", "doc: readers watch the parent", per_grant, parent, 50),
            row("C23", "zookeeper", "doc: readers watch the last earlier writer", per_grant, 5, 50),
            row("C23", "zookeeper", "doc: readers watch the parent", per_grant, 6, 99),
            row("C23", "zookeeper", "doc: readers watch the last earlier writer", per_grant, 5,
                99)};
        for (const auto& [backend, grants] : {std::pair{"redis", redis}, {"etcd", etcd}}) {
            all.push_back(row("C23", backend, "default", "grants per second", grants, 99));
            all.push_back(row("C23", backend, "default", per_grant, 2, 99));
            all.push_back(row("C23", backend, "default", "writer's longest wait", 123, 99));
            all.push_back(row("C23", backend, "all exclusive", "grants per second", 800));
        }
        return all;
    };
    CHECK(finding(rows(1600, 8000, 10), "C23") == Finding::confirmed);
    CHECK(finding(rows(1500, 8000, 10), "C23") == Finding::only_if);
    CHECK(finding(rows(1600, 8000, 9), "C23") == Finding::only_if);
    CHECK(finding(rows(800, 800, 9), "C23") == Finding::refuted);
    CHECK(finding(rows(1600, 8000, 10, 1), "C23") == Finding::refuted);
    CHECK(verdict(rows(1600, 8000, 10), "C23").figure.find("redis 2.0 x") != std::string::npos);
    Rows bare = rows(1600, 8000, 10);
    bare.erase(bare.begin() + 1, bare.begin() + 5);
    CHECK(finding(bare, "C23") == Finding::not_measured);
}

TEST_CASE("C29: tasks done twice") {
    const auto rows = [](double redis, double killed, double none, double never = 0) {
        Rows all;
        for (const auto& [backend, variant, twice] :
             {std::tuple{"redis", "default", redis}, {"none", "guard: none", none}}) {
            all.push_back(row("C29", backend, variant, "tasks done more than once", twice));
            all.push_back(row("C29", backend, variant, "tasks never done", never));
            all.push_back(row("C29", backend, variant, "workers killed", killed));
        }
        return all;  // of 900 tasks
    };
    CHECK(finding(rows(3, 3, 450), "C29") == Finding::confirmed);
    CHECK(finding(rows(3, 3, 4), "C29") == Finding::confirmed);
    CHECK(finding(rows(4, 3, 450), "C29") == Finding::refuted);
    CHECK(finding(rows(3, 3, 3), "C29") == Finding::refuted);
    CHECK(finding(rows(3, 3, 450, 1), "C29") == Finding::refuted);
    CHECK(finding({row("C29", "none", "guard: none", "tasks done more than once", 450)}, "C29") ==
          Finding::not_measured);
}

TEST_CASE("targets are met, missed or not measured") {
    const Rows rows{row("C1", "redis", "plain", "client overhead", 1.05),
                    row("C1", "redis", "default", "client overhead", 1.31)};
    const auto all = targets(rows);
    CHECK((all[0].measured && all[0].met()));
    CHECK((all[1].measured && !all[1].met()));
    CHECK_FALSE(all[2].measured);
    CHECK_FALSE(all[2].met());
}

TEST_CASE("a target that is a least is missed below it") {
    const auto of = [](const char* backend, double value) {
        const Rows rows{
            row("C1", backend, "default", "throughput over its floor in flight", value, 1000)};
        for (const Target& target : targets(rows))
            if (target.measured) return target;
        FAIL("no target looks at it");
        return Target{};
    };
    CHECK(of("zookeeper", 1.2).side == Target::Side::at_least);
    CHECK(of("zookeeper", 1.2).met());
    CHECK(of("zookeeper", 1).met());
    CHECK_FALSE(of("zookeeper", 0.9).met());
    CHECK(of("etcd", 0.7).met());
    CHECK_FALSE(of("etcd", 0.69).met());
    CHECK(of("mysql", 0.5).met());
    CHECK_FALSE(of("mysql", 0.49).met());
}

TEST_CASE("hand-offs are held against their floors, and a larger crowd against a smaller one") {
    const auto met = [](const Row& measured) {
        std::size_t judged = 0, well = 0;
        for (const Target& target : targets({measured})) {
            judged += target.measured ? 1 : 0;
            well += target.met() ? 1 : 0;
        }
        CHECK(judged == 1);
        return well == 1;
    };
    const char* floor = "time per hand-off over its floor";
    CHECK(met(row("C3", "zookeeper", "default", floor, 1.05, 100)));
    CHECK_FALSE(met(row("C3", "zookeeper", "default", floor, 1.2, 100)));
    CHECK(met(row("C3", "etcd", "default", floor, 1.3, 100)));
    CHECK_FALSE(met(row("C3", "etcd", "default", floor, 1.4, 100)));
    CHECK(met(row("C3", "postgresql", "default", floor, 1.9, 100)));
    CHECK_FALSE(met(row("C3", "postgresql", "default", floor, 2.1, 100)));
    const char *after_a_job = "hand-off after a job, p50",
               *asked = "requests per second during a job";
    CHECK(met(row("C3", "mysql", "default", after_a_job, 60, 10)));
    CHECK_FALSE(met(row("C3", "mysql", "default", after_a_job, 61, 10)));
    CHECK(met(row("C3", "mysql", "default", asked, 200, 10)));
    CHECK_FALSE(met(row("C3", "mysql", "default", asked, 201, 10)));
    const char* growth = "time per hand-off over that of 100 waiters";
    CHECK(met(row("C3", "redis", "default", growth, 1.1, 1000)));
    CHECK_FALSE(met(row("C3", "redis", "default", growth, 1.3, 1000)));
    CHECK(met(row("C3", "redis", "default", "hand-offs per second", 16'000, 100)));
    CHECK_FALSE(met(row("C3", "redis", "default", "hand-offs per second", 14'000, 100)));
    for (const double waiters : {2, 100, 1000}) {
        CHECK(met(row("C3", "etcd", "default", "requests per hand-off", 4.9, waiters)));
        CHECK_FALSE(met(row("C3", "etcd", "default", "requests per hand-off", 5.1, waiters)));
    }
}

TEST_CASE("the exit code says the worst") {
    Rows rows{row("C1", "redis", "default", "p50", 1)};
    CHECK(exit_code(rows) == 0);
    rows.push_back(row("C1", "redis", "default", "failed", 0));
    rows.back().status = Status::failed;
    CHECK(exit_code(rows) == 1);
    rows.push_back(row("C8", "redis", "default", "updates lost", 1));
    rows.back().status = Status::violated;
    CHECK(exit_code(rows) == 2);
    CHECK(exit_code({row("C3", "redis", "broadcast", "requests per hand-off", 2, 100)}) == 0);
}
