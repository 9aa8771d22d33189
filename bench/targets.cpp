// The speeds that Holdfast set itself, and how a run's rows compare with them.
#include "verdict.hpp"

namespace holdfast::bench {

namespace {

struct Aim {
    const char* what;
    Pick pick;
    Target::Side side;
    double limit;
    const char* unit;
};

constexpr Aim at_most(double limit, const char* unit, const char* what, const Pick& pick) {
    return {what, pick, Target::Side::at_most, limit, unit};
}
constexpr Aim at_least(double limit, const char* unit, const char* what, const Pick& pick) {
    return {what, pick, Target::Side::at_least, limit, unit};
}

constexpr const char* over_floor = "throughput over its floor in flight";
constexpr const char* over_plain = "throughput over the plain pair in flight";
constexpr const char* over_one_by_one = "throughput over one by one in flight";
constexpr const char* over_bare_queue = "time per hand-off over its floor";
constexpr const char* waiting = "requests per waiter and second";
constexpr const char* reader = "shared_mutex, shared";
constexpr const char* permit = "semaphore, 1 of 4";
constexpr const char* alone = "time over a mutex, alone";
constexpr const char* per_grant = "requests per grant";
constexpr const char* permit_over_mutex = "requests per hand-off over a mutex's";

constexpr Aim aims[] = {
    at_most(1.05, "x", "redis plain, uncontended, over bare hiredis",
            {"C1", "redis", "plain", "client overhead"}),
    at_most(1.08, "x", "redis, uncontended, over the same bytes",
            {"C1", "redis", "default", "client overhead"}),
    at_most(1.3, "x", "redis, price of the guarantees",
            {"C1", "redis", "floor: same bytes", "price of the guarantees"}),
    at_most(1.1, "x", "sqlite FULL, uncontended, over bare sqlite3",
            {"C1", "sqlite", "default", "client overhead"}),
    at_most(1.1, "x", "redlock without token, uncontended, over five bare connections",
            {"C1", "redlock", "no token", "whole price"}),
    at_most(1.6, "x", "redlock, uncontended, over five bare connections",
            {"C1", "redlock", "default", "whole price"}),
    at_most(0.6, "x", "postgresql, uncontended, over INSERT and DELETE",
            {"C1", "postgresql", "default", "whole price"}),
    at_most(1.1, "x", "mysql, uncontended, over INSERT and DELETE",
            {"C1", "mysql", "default", "whole price"}),
    at_most(0.88, "x", "zookeeper, uncontended, over its three steps",
            {"C1", "zookeeper", "default", "whole price"}),
    at_most(1.1, "x", "etcd, uncontended, over the same requests",
            {"C1", "etcd", "default", "client overhead"}),
    at_most(1.1, "x", "redis, cluster of three, uncontended, over one server",
            {"C2", "redis", "cluster of 3", "time over one server's"}),
    at_most(1.1, "x", "redis over TLS, uncontended, over bare OpenSSL",
            {"C1", "redis", "TLS", "time over a bare client's, over TLS"}),
    at_most(1.1, "x", "redlock without token over TLS, uncontended, over bare OpenSSL",
            {"C1", "redlock", "TLS", "time over a bare client's, over TLS"}),
    at_least(0.7, "x", "redis plain, 1000 in flight, of bare hiredis",
             {"C1", "redis", "plain", over_floor, 1000}),
    at_least(0.4, "x", "redis, 1000 in flight, of the same bytes",
             {"C1", "redis", "default", over_floor, 1000}),
    at_least(0.4, "x", "redis, 1000 in flight, of the documents' pair, pipelined",
             {"C1", "redis", "default", over_plain, 1000}),
    at_least(0.4, "x", "redlock without token, 1000 in flight, of five bare connections",
             {"C1", "redlock", "no token", over_floor, 1000}),
    at_least(0.4, "x", "redlock, 1000 in flight, of five bare connections",
             {"C1", "redlock", "default", over_floor, 1000}),
    at_least(1, "x", "zookeeper, 1000 in flight, of the bare C client",
             {"C1", "zookeeper", "default", over_floor, 1000}),
    at_least(0.7, "x", "etcd, 1000 in flight, of the same requests",
             {"C1", "etcd", "default", over_floor, 1000}),
    at_least(100'000, "1/s", "postgresql, 1000 in flight",
             {"C1", "postgresql", "default", "cycles per second", 1000}),
    at_least(20, "x", "postgresql, 1000 in flight, of INSERT and DELETE one by one",
             {"C1", "postgresql", "default", over_one_by_one, 1000}),
    at_least(0.5, "x", "mysql, 1000 in flight, of updates in one packet and one commit",
             {"C1", "mysql", "default", over_floor, 1000}),
    at_least(20, "x", "sqlite FULL, 100 callers, of one by one",
             {"C1", "sqlite", "default", over_one_by_one, 100}),
    at_most(2.2, "", "redis, requests per hand-off among 100 waiters",
            {"C3", "redis", "default", "requests per hand-off", 100}),
    at_least(15'000, "1/s", "redis, hand-offs per second among 100 waiters",
             {"C3", "redis", "default", "hand-offs per second", 100}),
    at_most(6, "", "zookeeper, requests per hand-off among 100 waiters",
            {"C3", "zookeeper", "default", "requests per hand-off", 100}),
    at_most(5, "", "etcd, requests per hand-off among 2 waiters",
            {"C3", "etcd", "default", "requests per hand-off", 2}),
    at_most(5, "", "etcd, requests per hand-off among 100 waiters",
            {"C3", "etcd", "default", "requests per hand-off", 100}),
    at_most(5, "", "etcd, requests per hand-off among 1000 waiters",
            {"C3", "etcd", "default", "requests per hand-off", 1000}),
    at_most(1.1, "x", "zookeeper, hand-off among 100 waiters, over bare clients' queue",
            {"C3", "zookeeper", "default", over_bare_queue, 100}),
    at_most(1.3, "x", "etcd, hand-off among 100 waiters, over bare clients' queue",
            {"C3", "etcd", "default", over_bare_queue, 100}),
    at_most(20, "", "redlock, requests per hand-off among 100 waiters",
            {"C3", "redlock", "default", "requests per hand-off", 100}),
    at_most(1500, "us", "redlock, time per hand-off among 100 waiters",
            {"C3", "redlock", "default", "time per hand-off", 100}),
    at_most(2, "x", "postgresql, hand-off among 100 waiters, over an advisory lock",
            {"C3", "postgresql", "default", over_bare_queue, 100}),
    at_most(60, "ms", "mysql, hand-off after a job to one of 10 who poll",
            {"C3", "mysql", "default", "hand-off after a job, p50", 10}),
    at_most(200, "1/s", "mysql, statements a second of 10 who poll",
            {"C3", "mysql", "default", "requests per second during a job", 10}),
    at_most(1.2, "x", "redis, hand-off among 1000 waiters, over that among 100",
            {"C3", "redis", "default", "time per hand-off over that of 100 waiters", 1000}),
    at_most(0.2, "1/s", "redis, requests per idle waiter and second",
            {"C5a", "redis", "default", waiting, 100}),
    at_most(0.2, "1/s", "postgresql, requests per idle waiter and second",
            {"C5a", "postgresql", "default", waiting, 100}),
    at_most(0.2, "1/s", "zookeeper, requests per idle waiter and second",
            {"C5a", "zookeeper", "default", waiting, 100}),
    at_most(1.1, "x", "redis, a reader alone, over a mutex", {"C23a", "redis", reader, alone}),
    at_most(1.1, "x", "redlock, a reader alone, over a mutex", {"C23a", "redlock", reader, alone}),
    at_most(1.1, "x", "postgresql, a reader alone, over a mutex",
            {"C23a", "postgresql", reader, alone}),
    at_most(1.1, "x", "mysql, a reader alone, over a mutex", {"C23a", "mysql", reader, alone}),
    at_most(1.1, "x", "zookeeper, a reader alone, over a mutex",
            {"C23a", "zookeeper", reader, alone}),
    at_most(1.1, "x", "etcd, a reader alone, over a mutex", {"C23a", "etcd", reader, alone}),
    at_most(1.1, "x", "sqlite, a reader alone, over a mutex", {"C23a", "sqlite", reader, alone}),
    at_most(1.1, "x", "memory, a reader alone, over a mutex", {"C23a", "memory", reader, alone}),
    at_least(0.5, "x", "redis, 1000 readers of one name in flight, of 1000 mutexes",
             {"C23a", "redis", "1000 readers of one name", "throughput over as many mutexes"}),
    at_most(3, "", "redis, requests per grant, half of 100 callers read",
            {"C23", "redis", "default", per_grant, 50}),
    at_most(3, "", "redis, requests per grant, 99 of 100 callers read",
            {"C23", "redis", "default", per_grant, 99}),
    at_least(5, "x", "etcd, grants a second, 99 of 100 callers read, over all exclusive",
             {"C23", "etcd", "default", "grants over all exclusive", 99}),
    at_most(1.1, "x", "redis, requests per hand-off of a permit, over a mutex's",
            {"C23a", "redis", permit, permit_over_mutex}),
    at_most(1.1, "x", "postgresql, requests per hand-off of a permit, over a mutex's",
            {"C23a", "postgresql", permit, permit_over_mutex}),
    at_most(1.1, "x", "zookeeper, requests per hand-off of a permit, over a mutex's",
            {"C23a", "zookeeper", permit, permit_over_mutex}),
    at_most(1.1, "x", "etcd, requests per hand-off of a permit, over a mutex's",
            {"C23a", "etcd", permit, permit_over_mutex}),
    at_most(2048, "bytes", "redis, memory of a reader, 10,000 of one name",
            {"C6", "redis", "default", "memory per reader", 10'000}),
    at_most(3, "%", "redis, 10,000 readers of one name, of a core",
            {"C6", "redis", "default", "CPU: readers", 10'000}),
    at_most(2048, "bytes", "redis, memory of a permit, 10,000 of them",
            {"C6", "redis", "default", "memory per permit", 10'000}),
    at_most(3, "%", "redis, 10,000 permits, of a core",
            {"C6", "redis", "default", "CPU: permits", 10'000}),
    at_most(2048, "bytes", "redis, memory of a held lease, 10,000 of them",
            {"C6", "redis", "default", "memory per lease", 10'000}),
    at_most(2048, "bytes", "postgresql, memory of a held lease, 10,000 of them",
            {"C6", "postgresql", "default", "memory per lease", 10'000}),
    at_most(2048, "bytes", "mysql, memory of a held lease, 10,000 of them",
            {"C6", "mysql", "default", "memory per lease", 10'000}),
    at_most(3, "%", "redis, 10,000 held leases, of a core",
            {"C6", "redis", "default", "CPU: leases", 10'000}),
    at_most(3, "%", "postgresql, 10,000 held leases, of a core",
            {"C6", "postgresql", "default", "CPU: leases", 10'000}),
    at_most(3, "%", "mysql, 10,000 held leases, of a core",
            {"C6", "mysql", "default", "CPU: leases", 10'000}),
    at_most(4096, "bytes", "redis, memory of a waiter, 10,000 of them",
            {"C6", "redis", "default", "memory per waiter", 10'000}),
    at_most(4, "", "redis, threads for 10,000 waiters",
            {"C6", "redis", "default", "threads: waiters", 10'000}),
};

}  // namespace

std::string_view to_string(Target::Side side) {
    return side == Target::Side::at_most ? "at most" : "at least";
}

std::vector<Target> targets(const Rows& rows) {
    std::vector<Target> all;
    for (const Aim& aim : aims) {
        Target target{aim.what, aim.side, aim.limit, aim.unit};
        if (const Row* row = find(rows, aim.pick)) {
            target.measured = true;
            target.value = row->value;
        }
        all.push_back(std::move(target));
    }
    return all;
}

}  // namespace holdfast::bench
