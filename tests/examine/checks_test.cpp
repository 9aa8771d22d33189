// Each check of each backend, judged both ways: facts of a deployment in which it fires, and of one
// in which it is silent. A check without both is an error.
#include <map>
#include <set>

#include "catch.hpp"
#include "holdfast/spi/registry.hpp"

namespace {

using holdfast::Verdict;
using Values = std::map<std::string, std::string, std::less<>>;
using enum Verdict;

struct Case {
    const char* id;
    Values facts;
    Verdict verdict;
};

const std::vector<Case>& redis_cases() {
    static const Values info{{"redis_version", "7.0.15"}};
    const auto with = [](Values more) {
        more.insert(info.begin(), info.end());
        return more;
    };
    static const std::vector<Case> all{
        {"redis.info", {}, unknown},
        {"redis.info", info, sound},
        {"redis.rights", {{"refused", "EVALSHA"}}, slow},
        {"redis.rights", {{"refused", ""}}, sound},
        {"redis.role", with({{"role", "slave"}}), unsafe},
        {"redis.role", with({{"role", "active-replica"}}), unsafe},
        {"redis.role", with({{"role", "master"}}), sound},
        {"redis.role", {}, unknown},
        {"redis.persistence", with({{"aof_enabled", "0"}}), unsafe},
        {"redis.persistence", with({{"aof_enabled", "1"}}), sound},
        {"redis.persistence", {}, unknown},
        {"redis.append_only_file",
         {{"aof_enabled", "1"}, {"aof_last_write_status", "err"}},
         unsafe},
        {"redis.append_only_file",
         {{"aof_enabled", "1"}, {"aof_last_bgrewrite_status", "err"}},
         unsafe},
        {"redis.append_only_file",
         {{"aof_enabled", "1"},
          {"aof_rewrite_in_progress", "1"},
          {"aof_last_rewrite_time_sec", "-1"}},
         unsafe},
        {"redis.append_only_file",
         {{"aof_enabled", "1"},
          {"aof_last_write_status", "ok"},
          {"aof_rewrite_in_progress", "1"},
          {"aof_last_rewrite_time_sec", "3"}},
         sound},
        {"redis.fsync", {{"aof_enabled", "1"}, {"appendfsync", "everysec"}}, unsafe},
        {"redis.fsync", {{"aof_enabled", "1"}, {"appendfsync", "always"}}, sound},
        {"redis.fsync", {{"aof_enabled", "1"}}, unknown},
        {"redis.fsync_on_rewrite",
         {{"aof_enabled", "1"}, {"no-appendfsync-on-rewrite", "yes"}},
         unsafe},
        {"redis.fsync_on_rewrite",
         {{"aof_enabled", "1"}, {"no-appendfsync-on-rewrite", "no"}},
         sound},
        {"redis.fsync_on_rewrite", {{"aof_enabled", "1"}}, unknown},
        {"redis.replicas", with({{"connected_slaves", "2"}}), unsafe},
        {"redis.replicas", with({{"connected_slaves", "0"}}), sound},
        {"redis.replicas", {}, unknown},
        {"redis.eviction", with({{"maxmemory", "1000"}, {"maxmemory_policy", "allkeys-lru"}}),
         unsafe},
        {"redis.eviction", with({{"maxmemory", "0"}, {"maxmemory_policy", "allkeys-lru"}}), sound},
        {"redis.eviction", with({{"maxmemory", "1000"}, {"maxmemory_policy", "noeviction"}}),
         sound},
        {"redis.eviction", {}, unknown},
        {"redis.memory", {{"used_memory", "950"}, {"maxmemory", "1000"}}, slow},
        {"redis.memory", {{"used_memory", "500"}, {"maxmemory", "1000"}}, sound},
        {"redis.writes",
         {{"rdb_last_bgsave_status", "err"}, {"stop-writes-on-bgsave-error", "yes"}},
         slow},
        {"redis.writes", {{"rdb_last_bgsave_status", "ok"}}, sound},
        {"redis.replicas_required",
         {{"min-replicas-to-write", "2"}, {"connected_slaves", "1"}},
         slow},
        {"redis.replicas_required",
         {{"min-replicas-to-write", "1"}, {"connected_slaves", "1"}},
         sound},
        {"redis.connections", {{"connected_clients", "99"}, {"maxclients", "100"}}, slow},
        {"redis.connections", {{"connected_clients", "9"}, {"maxclients", "100"}}, sound},
        {"redis.idle_timeout", {{"timeout", "5"}}, slow},
        {"redis.idle_timeout", {{"timeout", "0"}}, sound},
        {"redis.idle_timeout", {{"timeout", "300"}}, sound},
        {"redis.loading", {{"loading", "1"}}, slow},
        {"redis.loading", {{"loading", "0"}}, sound},
        {"redis.fork", {{"latest_fork_usec", "900000"}}, slow},
        {"redis.fork", {{"latest_fork_usec", "300"}}, sound},
        {"redis.split", {{"min-replicas-to-write", "0"}}, unsafe},
        {"redis.split", {{"min-replicas-to-write", "1"}}, sound},
        {"redis.split",
         {{"min-replicas-to-write", "1"}, {"min-replicas-max-lag", "10"}, {"ttl_ms", "1000"}},
         sound},
        {"redis.split", {{"min-replicas-to-write", "1"}, {"min-replicas-max-lag", "0"}}, unsafe},
        {"redis.split",
         {{"min-replicas-to-write", "1"}, {"min-replicas-max-lag", "3600"}, {"ttl_ms", "60000"}},
         unsafe},
        {"redis.split", {}, unknown},
        {"redis.sentinel", {{"silent", "no answer"}}, slow},
        {"redis.sentinel", {}, sound},
        {"redis.listed", {{"num-other-sentinels", "4"}, {"listed", "3"}}, unsafe},
        {"redis.listed", {{"num-other-sentinels", "2"}, {"listed", "3"}}, sound},
        {"redis.quorum", {{"quorum", "3"}, {"listed", "3"}}, slow},
        {"redis.quorum", {{"quorum", "2"}, {"listed", "3"}}, sound},
        {"redis.down_after", {{"down-after-milliseconds", "30000"}, {"ttl_ms", "10000"}}, slow},
        {"redis.down_after", {{"down-after-milliseconds", "3000"}, {"ttl_ms", "10000"}}, sound},
        {"redis.announced", {{"unreachable", "refused"}}, slow},
        {"redis.announced", {}, sound},
        {"redis.replica_clock", {{"ahead_ms", "-2000"}}, unsafe},
        {"redis.replica_clock", {{"ahead_ms", "2000"}}, unsafe},
        {"redis.replica_clock", {{"ahead_ms", "20"}}, sound},
        {"redis.sentinels", {{"listed", "2"}}, slow},
        {"redis.sentinels", {{"listed", "4"}}, slow},
        {"redis.sentinels", {{"listed", "3"}}, sound},
        {"redis.sentinel_hosts", {{"shared_host", "10.0.0.1"}}, slow},
        {"redis.sentinel_hosts", {{"shared_host", ""}}, sound},
        {"redis.answers", {{"silent", "no answer"}}, slow},
        {"redis.answers", {}, sound},
        {"redis.cluster_state", {{"cluster_state", "fail"}}, slow},
        {"redis.cluster_state", {{"cluster_state", "ok"}}, sound},
        {"redis.cluster_state", {}, unknown},
        {"redis.cluster_replica", {{"connected_slaves", "0"}}, slow},
        {"redis.cluster_replica", {{"connected_slaves", "1"}}, sound},
        {"redis.cluster_replica", {}, unknown},
        {"redis.full_coverage", {{"cluster-require-full-coverage", "yes"}}, slow},
        {"redis.full_coverage", {{"cluster-require-full-coverage", "no"}}, sound},
        {"redis.full_coverage", {}, unknown},
        {"redis.reads_when_down", {{"cluster-allow-reads-when-down", "yes"}}, slow},
        {"redis.reads_when_down", {{"cluster-allow-reads-when-down", "no"}}, sound},
        {"redis.node_timeout", {{"cluster-node-timeout", "15000"}, {"ttl_ms", "10000"}}, slow},
        {"redis.node_timeout", {{"cluster-node-timeout", "2000"}, {"ttl_ms", "10000"}}, sound},
        {"redis.node_timeout", {{"ttl_ms", "10000"}}, unknown},
        {"redis.moving_slots", {{"moving", "1"}}, slow},
        {"redis.moving_slots", {{"moving", "0"}}, sound},
        {"redis.cluster_clock", {{"ahead_ms", "-2000"}, {"first", "h"}}, unsafe},
        {"redis.cluster_clock", {{"ahead_ms", "20"}, {"first", "h"}}, sound},
        {"redis.slots", {{"uncovered", "3"}}, slow},
        {"redis.slots", {{"uncovered", "0"}}, sound},
        {"redis.primaries", {{"primaries", "2"}}, slow},
        {"redis.primaries", {{"primaries", "3"}}, sound},
        {"redis.cluster_hosts", {{"shared_host", "10.0.0.1"}}, slow},
        {"redis.cluster_hosts", {{"shared_host", ""}}, sound},
    };
    return all;
}

const std::vector<Case>& redlock_cases() {
    static const std::vector<Case> all{
        {"redlock.answers", {{"silent", "no answer"}}, slow},
        {"redlock.answers", {}, sound},
        {"redlock.role", {{"role", "slave"}}, unsafe},
        {"redlock.role", {{"role", "master"}}, sound},
        {"redlock.replicas", {{"role", "master"}, {"connected_slaves", "1"}}, unsafe},
        {"redlock.replicas", {{"role", "master"}}, sound},
        {"redlock.persistence",
         {{"role", "master"}, {"durable", "1"}, {"aof_enabled", "0"}},
         unsafe},
        {"redlock.persistence",
         {{"role", "master"}, {"durable", "1"}, {"aof_enabled", "1"}},
         sound},
        {"redlock.append_only_file",
         {{"durable", "1"}, {"aof_enabled", "1"}, {"aof_last_write_status", "err"}},
         unsafe},
        {"redlock.append_only_file", {{"durable", "1"}, {"aof_enabled", "1"}}, sound},
        {"redlock.fsync", {{"durable", "1"}, {"aof_enabled", "1"}, {"appendfsync", "no"}}, unsafe},
        {"redlock.fsync",
         {{"durable", "1"}, {"aof_enabled", "1"}, {"appendfsync", "always"}},
         sound},
        {"redlock.fsync_on_rewrite",
         {{"durable", "1"}, {"aof_enabled", "1"}, {"no-appendfsync-on-rewrite", "yes"}},
         unsafe},
        {"redlock.fsync_on_rewrite",
         {{"durable", "1"}, {"aof_enabled", "1"}, {"no-appendfsync-on-rewrite", "no"}},
         sound},
        {"redlock.skew", {{"skew_ms", "5000"}}, unsafe},
        {"redlock.skew", {{"skew_ms", "3"}}, sound},
        {"redlock.hosts", {{"shared_host", "10.0.0.1"}}, slow},
        {"redlock.hosts", {{"shared_host", ""}}, sound},
        {"redlock.nodes", {{"nodes", "4"}}, slow},
        {"redlock.nodes", {{"nodes", "5"}}, sound},
        {"redlock.fencing", {{"fencing", "0"}}, unsafe},
        {"redlock.fencing", {{"fencing", "1"}}, sound},
    };
    return all;
}

const std::vector<Case>& postgresql_cases() {
    static const std::vector<Case> all{
        {"postgresql.fsync", {{"fsync", "off"}}, unsafe},
        {"postgresql.fsync", {{"fsync", "on"}}, sound},
        {"postgresql.full_page_writes", {{"full_page_writes", "off"}}, unsafe},
        {"postgresql.full_page_writes", {{"full_page_writes", "on"}}, sound},
        {"postgresql.table", {{"persistence", "u"}}, unsafe},
        {"postgresql.table", {{"persistence", "p"}}, sound},
        {"postgresql.primary_key", {{"has_key", "f"}, {"doubled", "0"}}, unsafe},
        {"postgresql.primary_key", {{"has_key", "t"}, {"doubled", "2"}}, unsafe},
        {"postgresql.primary_key", {{"has_key", "t"}, {"doubled", "0"}}, sound},
        {"postgresql.subscription", {{"subscribed", "t"}}, unsafe},
        {"postgresql.subscription", {{"subscribed", "f"}}, sound},
        {"postgresql.rights", {{"missing_rights", "DELETE"}}, slow},
        {"postgresql.rights", {}, sound},
        {"postgresql.standbys",
         {{"standbys", "1"}, {"standby_names", ""}, {"some_asynchronous", "t"}},
         unsafe},
        {"postgresql.standbys",
         {{"standbys", "2"}, {"standby_names", "a"}, {"some_asynchronous", "t"}},
         unsafe},
        {"postgresql.standbys", {{"standbys", "2"}, {"standby_names", "a"}}, unsafe},
        {"postgresql.standbys",
         {{"standbys", "1"}, {"standby_names", "a"}, {"some_asynchronous", "f"}},
         sound},
        {"postgresql.standbys", {{"standbys", "1"}, {"standby_names", "a"}}, sound},
        {"postgresql.standbys", {{"standbys", "0"}}, sound},
        {"postgresql.standbys",
         {{"promotes", "synchronous"},
          {"standbys", "2"},
          {"standby_names", "ANY 1 (*)"},
          {"synchronous", "2"},
          {"some_asynchronous", "f"}},
         sound},
        {"postgresql.standbys",
         {{"promotes", "synchronous"},
          {"standbys", "2"},
          {"standby_names", "a"},
          {"synchronous", "1"},
          {"some_asynchronous", "t"}},
         sound},
        {"postgresql.standbys",
         {{"promotes", "synchronous"},
          {"standbys", "2"},
          {"standby_names", ""},
          {"synchronous", "0"},
          {"some_asynchronous", "t"}},
         unsafe},
        {"postgresql.tokens", {{"last_token", "9223372036854775000"}}, unsafe},
        {"postgresql.tokens", {{"last_token", "1795475838555088"}}, sound},
        {"postgresql.synchronous_standby", {{"standby_names", "a"}, {"standbys", "0"}}, slow},
        {"postgresql.synchronous_standby",
         {{"standby_names", "a"},
          {"standbys", "1"},
          {"synchronous", "1"},
          {"some_asynchronous", "f"}},
         sound},
        {"postgresql.synchronous_standby", {{"standby_names", "a"}, {"standbys", "1"}}, unknown},
        {"postgresql.pooler", {{"pooled", "1"}}, slow},
        {"postgresql.pooler", {{"pooled", "0"}}, sound},
        {"postgresql.listen", {{"pooled", "1"}, {"listen", "it leads elsewhere"}}, slow},
        {"postgresql.listen", {{"pooled", "1"}, {"listen", ""}}, sound},
        {"postgresql.cluster", {{"cluster", "1"}, {"cluster_of_primary", "2"}}, unsafe},
        {"postgresql.cluster", {{"cluster", "1"}, {"cluster_of_primary", "1"}}, sound},
        {"postgresql.primaries", {{"recovering", "f"}, {"read_only", "off"}}, unsafe},
        {"postgresql.primaries", {{"recovering", "f"}, {"read_only", "on"}}, sound},
        {"postgresql.primaries", {{"recovering", "t"}, {"read_only", "on"}}, sound},
        {"postgresql.host", {{"silent", "no answer"}}, slow},
        {"postgresql.host", {{"recovering", "t"}}, sound},
        {"postgresql.connections", {{"max_connections", "20"}, {"connections", "15"}}, slow},
        {"postgresql.connections", {{"max_connections", "100"}, {"connections", "15"}}, sound},
        {"postgresql.statement_timeout", {{"statement_timeout", "200"}}, slow},
        {"postgresql.statement_timeout", {{"statement_timeout", "0"}}, sound},
        {"postgresql.idle_timeout", {{"idle_timeout", "5000"}}, slow},
        {"postgresql.idle_timeout", {{"idle_timeout", "0"}}, sound},
        {"postgresql.autovacuum", {{"autovacuum", "off"}}, slow},
        {"postgresql.autovacuum", {{"autovacuum", "on"}}, sound},
        {"postgresql.dead_rows", {{"dead_rows", "5000000"}}, slow},
        {"postgresql.dead_rows", {{"dead_rows", "50"}}, sound},
        {"postgresql.transaction_age", {{"transaction_age", "1900000000"}}, slow},
        {"postgresql.transaction_age", {{"transaction_age", "190000000"}}, sound},
    };
    return all;
}

const std::vector<Case>& mysql_cases() {
    static const std::vector<Case> all{
        {"mysql.flush", {{"innodb_flush_log_at_trx_commit", "2"}}, unsafe},
        {"mysql.flush", {}, unsafe},
        {"mysql.flush", {{"innodb_flush_log_at_trx_commit", "1"}}, sound},
        {"mysql.binary_log", {{"log_bin", "ON"}, {"sync_binlog", "0"}}, unsafe},
        {"mysql.binary_log", {{"log_bin", "ON"}, {"sync_binlog", "1000"}}, unsafe},
        {"mysql.binary_log", {{"log_bin", "ON"}, {"sync_binlog", "1"}}, sound},
        {"mysql.binary_log", {{"log_bin", "OFF"}, {"sync_binlog", "0"}}, sound},
        {"mysql.doublewrite", {{"innodb_doublewrite", "OFF"}}, unsafe},
        {"mysql.doublewrite", {{"innodb_doublewrite", "ON"}}, sound},
        {"mysql.galera", {{"wsrep_on", "ON"}}, unsafe},
        {"mysql.galera", {{"wsrep_on", "OFF"}}, sound},
        {"mysql.galera", {}, sound},
        {"mysql.replicas", {{"log_bin", "ON"}, {"replicas", "2"}}, unsafe},
        {"mysql.replicas", {{"log_bin", "ON"}}, unknown},
        {"mysql.replicas", {{"log_bin", "ON"}, {"replicas", "0"}}, sound},
        {"mysql.replicas", {{"log_bin", "OFF"}}, sound},
        {"mysql.primary_key", {{"doubled", "2"}}, unsafe},
        {"mysql.primary_key", {{"doubled", "0"}}, sound},
        {"mysql.tokens", {{"last_token", "1100000000000000000"}}, unsafe},
        {"mysql.tokens", {{"last_token", "1795475838555088"}}, sound},
        {"mysql.rights", {{"missing_rights", "DELETE"}}, slow},
        {"mysql.rights", {}, sound},
        {"mysql.connections", {{"max_connections", "20"}, {"connections", "15"}}, slow},
        {"mysql.connections", {{"max_connections", "151"}, {"connections", "15"}}, sound},
        {"mysql.idle_timeout", {{"wait_timeout", "30"}}, slow},
        {"mysql.idle_timeout", {{"wait_timeout", "28800"}}, sound},
    };
    return all;
}

const std::vector<Case>& other_cases() {
    static const std::vector<Case> all{
        {"sqlite.version", {{"version", "3.40.1"}, {"version_number", "3040001"}}, unknown},
        {"sqlite.version", {{"version", "3.51.3"}, {"version_number", "3051003"}}, sound},
        {"sqlite.permissions", {{"doubts", "x.db belongs to another user"}}, unsafe},
        {"sqlite.permissions", {{"doubts", ""}}, sound},
        {"sqlite.memory", {{"in_memory", "1"}}, unsafe},
        {"sqlite.memory", {{"in_memory", "0"}}, sound},
        {"sqlite.space", {{"free_bytes", "1000000"}}, slow},
        {"sqlite.space", {{"free_bytes", "1000000000"}}, sound},
        {"sqlite.log", {{"log_bytes", "1000000000"}}, slow},
        {"sqlite.log", {{"log_bytes", "4000000"}}, sound},
        {"etcd.answers", {{"silent", "no answer"}}, slow},
        {"etcd.answers", {{"version", "3.5.9"}}, sound},
        {"etcd.version", {{"version", "3.5.2"}}, unsafe},
        {"etcd.version", {{"version", "3.5.5"}}, unsafe},
        {"etcd.version", {{"version", "3.5.6-rc.1"}}, sound},
        {"etcd.version", {{"version", "3.5.20"}}, sound},
        {"etcd.version", {{"version", "3.4.20"}}, unsafe},
        {"etcd.version", {{"version", "3.4.21"}}, sound},
        {"etcd.version", {{"version", "3.6.0"}}, sound},
        {"etcd.version", {{"version", "3.4.23"}}, sound},
        {"etcd.leader", {{"version", "3.5.9"}, {"leader", "0"}}, slow},
        {"etcd.leader", {{"version", "3.5.9"}, {"leader", "8123"}}, sound},
        {"etcd.learner", {{"version", "3.5.9"}, {"learner", "1"}}, slow},
        {"etcd.learner", {{"version", "3.5.9"}, {"learner", "0"}}, sound},
        {"etcd.size", {{"size", "2000000000"}}, slow},
        {"etcd.size", {{"size", "20000000"}}, sound},
        {"etcd.fragments", {{"size", "900000000"}, {"size_in_use", "9000000"}}, slow},
        {"etcd.fragments", {{"size", "900000000"}, {"size_in_use", "800000000"}}, sound},
        {"etcd.lag", {{"index", "9000"}, {"applied", "100"}}, slow},
        {"etcd.lag", {{"index", "9000"}, {"applied", "8999"}}, sound},
        {"etcd.members", {{"voters", "2"}}, slow},
        {"etcd.members", {{"voters", "1"}}, slow},
        {"etcd.members", {{"voters", "3"}}, sound},
        {"etcd.members", {}, unknown},
        {"etcd.listed", {{"voters", "3"}, {"listed", "1"}}, slow},
        {"etcd.listed", {{"voters", "3"}, {"listed", "3"}}, sound},
        {"etcd.listed", {{"voters", "1"}, {"listed", "2"}}, slow},
        {"etcd.cluster", {{"clusters", "2"}}, unsafe},
        {"etcd.cluster", {{"clusters", "1"}}, sound},
        {"etcd.hosts", {{"shared_host", "10.0.0.1"}}, slow},
        {"etcd.hosts", {}, sound},
        {"etcd.alarm", {{"alarms", "NOSPACE"}}, slow},
        {"etcd.alarm", {{"alarms", "NOSPACE, CORRUPT"}}, unsafe},
        {"etcd.alarm", {{"alarms", ""}}, sound},
        {"etcd.alarm", {}, unknown},
        {"zookeeper.answers", {{"srvr", ""}}, slow},
        {"zookeeper.answers",
         {{"srvr", "This ZooKeeper instance is not currently serving requests"}},
         slow},
        {"zookeeper.answers", {{"srvr", "srvr is not executed"}}, unknown},
        {"zookeeper.answers", {{"srvr", "x"}, {"Zookeeper version", "3.8.0"}}, sound},
        {"zookeeper.tick_time", {{"srvr", "x"}, {"tickTime", "4000"}, {"tick_ms", "3000"}}, unsafe},
        {"zookeeper.tick_time", {{"srvr", "x"}, {"tickTime", "2000"}, {"tick_ms", "3000"}}, sound},
        {"zookeeper.tick_time", {{"srvr", "x"}, {"tick_ms", "3000"}}, unknown},
        {"zookeeper.longest_session", {{"maxSessionTimeout", "4000"}, {"ttl_ms", "10000"}}, slow},
        {"zookeeper.longest_session", {{"maxSessionTimeout", "40000"}, {"ttl_ms", "10000"}}, sound},
        {"zookeeper.shortest_session", {{"minSessionTimeout", "40000"}, {"ttl_ms", "10000"}}, slow},
        {"zookeeper.shortest_session", {{"minSessionTimeout", "4000"}, {"ttl_ms", "10000"}}, sound},
        {"zookeeper.connections", {{"maxClientCnxns", "2"}}, slow},
        {"zookeeper.connections", {{"maxClientCnxns", "60"}}, sound},
        {"zookeeper.connections", {{"maxClientCnxns", "0"}}, sound},
        {"zookeeper.latency", {{"Latency min/avg/max", "0/70.5/900"}, {"Received", "2000"}}, slow},
        {"zookeeper.latency", {{"Latency min/avg/max", "0/1.25/900"}, {"Received", "2000"}}, sound},
        {"zookeeper.latency", {{"Latency min/avg/max", "0/70.5/900"}, {"Received", "20"}}, sound},
        {"etcd.rights", {{"refused", "write below /holdfast/"}}, slow},
        {"etcd.rights", {{"refused", ""}}, sound},
        {"zookeeper.rights", {{"refused", "read /holdfast (list of names)"}}, slow},
        {"zookeeper.rights", {{"refused", ""}}, sound},
        {"zookeeper.servers", {{"voters", "4"}}, slow},
        {"zookeeper.servers", {{"voters", "3"}}, sound},
        {"zookeeper.servers", {}, unknown},
        {"zookeeper.listed", {{"voters", "3"}, {"listed", "2"}}, slow},
        {"zookeeper.listed", {{"voters", "3"}, {"listed", "3"}}, sound},
        {"zookeeper.hosts", {{"shared_host", "10.0.0.1"}}, slow},
        {"zookeeper.hosts", {}, sound},
        {"zookeeper.observers", {{"observers", "1"}}, unknown},
        {"zookeeper.observers", {{"observers", "0"}}, sound},
        {"config.ttl", {{"ttl_ms", "500"}}, slow},
        {"config.ttl", {{"ttl_ms", "10000"}}, sound},
        {"config.request_timeout", {{"ttl_ms", "3000"}, {"request_timeout_ms", "2500"}}, slow},
        {"config.request_timeout", {{"ttl_ms", "10000"}, {"request_timeout_ms", "2000"}}, sound},
        {"config.password_file", {{"password_file_exposed", "may be read by every user"}}, unsafe},
        {"config.password_file", {{"password_file_exposed", ""}}, sound},
        {"config.tls_key_file", {{"tls_key_file_exposed", "may be read by every user"}}, unsafe},
        {"config.tls_key_file", {{"tls_key_file_exposed", ""}}, sound},
        {"config.password", {{"password_source", "literal"}}, unsafe},
        {"config.password", {{"password_source", "environment"}}, sound},
        {"machine.descriptors", {{"descriptor_limit", "64"}}, slow},
        {"machine.descriptors", {{"descriptor_limit", "1024"}}, sound},
    };
    return all;
}

/// The round trip and the clock, which several backends ask in the same way.
std::vector<Case> shared_cases(const std::string& id) {
    if (id.ends_with(".round_trip"))
        return {{id.c_str(), {{"round_trip_us", "900000"}, {"ttl_ms", "10000"}}, slow},
                {id.c_str(), {{"round_trip_us", "900"}, {"ttl_ms", "10000"}}, sound}};
    if (id.ends_with(".clock"))
        return {{id.c_str(), {{"clock_offset_ms", "-4000"}, {"clock_doubt_ms", "2"}}, unsafe},
                {id.c_str(), {{"clock_offset_ms", "4000"}, {"clock_doubt_ms", "3500"}}, sound},
                {id.c_str(), {}, unknown}};
    return {};
}

std::vector<Case> cases_of(const std::string& id) {
    std::vector<Case> mine = shared_cases(id);
    for (const auto* all :
         {&redis_cases(), &redlock_cases(), &postgresql_cases(), &mysql_cases(), &other_cases()})
        for (const Case& c : *all)
            if (c.id == id) mine.push_back(c);
    return mine;
}

/// All that are linked in, those of the configuration and the machine among them.
std::vector<holdfast::spi::Check> all_checks() {
    std::vector<holdfast::spi::Check> all = holdfast::spi::local_checks();
    for (const auto& backend : holdfast::spi::Registry::linked().all())
        all.insert(all.end(), backend->checks.begin(), backend->checks.end());
    return all;
}

TEST_CASE("checks: each one fires where it must and is silent where it must") {
    std::set<std::string> judged;
    for (const auto& check : all_checks()) {
        const std::string id(check.id);
        INFO(id);
        bool fires = false, silent = false;
        for (const Case& c : cases_of(id)) {
            holdfast::spi::Facts facts;
            facts.values = c.facts;
            const auto found = check.judge(facts);
            REQUIRE(found.has_value());
            INFO(found->found);
            CHECK(to_string(found->verdict) == to_string(c.verdict));
            (c.verdict == sound ? silent : fires) = true;
            // What is found is said in words; what is sound may say nothing.
            if (c.verdict != sound) CHECK_FALSE(found->found.empty());
        }
        CHECK(fires);
        CHECK(silent);
        CHECK_FALSE(check.consequence.empty());
        CHECK_FALSE(check.remedy.empty());
        judged.insert(id);
    }
    CHECK(judged.size() >= 30);
    for (const auto* all :
         {&redis_cases(), &redlock_cases(), &postgresql_cases(), &mysql_cases(), &other_cases()})
        for (const Case& c : *all) {
            INFO(c.id << " is the id of a check");
            CHECK(judged.count(c.id) == 1);
        }
}

}  // namespace
