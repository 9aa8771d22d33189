// C24: names that are used once. What is left at the server?
#include <sqlite3.h>

#include <future>
#include <holdfast/lab/wait_until.hpp>
#include <holdfast/lab/zookeeper_server.hpp>
#include <sstream>

#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C24";

struct Left {
    std::function<double()> things;  ///< keys, rows, nodes
    std::function<double()> bytes;   ///< empty: not asked
    const char* what;
};

/// One client, a name of its own for each cycle; eight callers, but one where the file of SQLite
/// takes one writer at a time anyway.
void use_once(const Bench& bench, const Deployment& d, const std::string& prefix,
              std::size_t names) {
    const auto client = bench.open(d);
    std::atomic<std::size_t> next{0};
    const auto caller = [&] {
        for (std::size_t i; (i = next++) < names && !bench.stopped();) {
            const auto lock = bench.lock(client, d, "bench/" + prefix + "/" + std::to_string(i));
            auto lease = lock->acquire();
            if (!lease) check(lease.error(), "acquire");
            if (lease->release() != ReleaseResult::released)
                throw SelfCheck("a release was not answered");
        }
    };
    std::vector<std::future<void>> callers;
    for (int i = 0; i < (d.backend == "sqlite" ? 1 : 8); ++i)
        callers.push_back(std::async(std::launch::async, caller));
    for (auto& one : callers)
        one.get();
}

void add_rows(Bench& bench, const Deployment& d, const Left& left, std::size_t names, double things,
              double bytes, const std::string& note) {
    Row row = row_of(id, d);
    row.x = row.value = static_cast<double>(names);
    row.n = names;
    row.note = std::string(left.what) + note;
    row.metric = "left per name";
    bench.add_value(row, things / static_cast<double>(names));
    if (!left.bytes) return;
    row.unit = "bytes";
    row.metric = "bytes left per name";
    bench.add_value(row, bytes / static_cast<double>(names));
}

void measure(Bench& bench, const Deployment& d, const Left& left, const std::string& note = {}) {
    const auto names = static_cast<std::size_t>(bench.options.pick(100, 500, 10000));
    use_once(bench, d, "first", 8);  // what is made once and for all: tables, parents, scripts
    const double things = left.things(), bytes = left.bytes ? left.bytes() : 0;
    use_once(bench, d, "once", names);
    add_rows(bench, d, left, names, left.things() - things, left.bytes ? left.bytes() - bytes : 0,
             note);
}

Left of_redis(std::vector<lab::RedisServer*> servers) {
    const auto sum = [servers](auto ask) {
        double all = 0;
        for (auto* server : servers)
            all += ask(*server);
        return all;
    };
    return {[sum] {
                return sum([](auto& s) { return static_cast<double>(s.cli({"DBSIZE"}).integer); });
            },
            [sum] {
                return sum([](auto& s) { return std::stod(s.info("memory").at("used_memory")); });
            },
            "keys"};
}

Left of_sqlite(const std::filesystem::path& file) {
    return {
        [file] {
            sqlite3* db = nullptr;
            sqlite3_stmt* ask = nullptr;
            double rows = -1;
            if (sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
                sqlite3_prepare_v2(db, "SELECT count(*) FROM holdfast_lease", -1, &ask, nullptr) ==
                    SQLITE_OK &&
                sqlite3_step(ask) == SQLITE_ROW)
                rows = sqlite3_column_double(ask, 0);
            sqlite3_finalize(ask);
            sqlite3_close(db);
            if (rows < 0) throw SelfCheck("the rows of the SQLite file could not be counted");
            return rows;
        },
        {},
        "rows"};
}

Left of_postgresql(const lab::PostgresServer& server) {
    return {[&server] { return std::stod(server.value("SELECT count(*) FROM holdfast_lease")); },
            [&server] {
                return std::stod(server.value("SELECT pg_total_relation_size('holdfast_lease')"));
            },
            "rows"};
}

Left of_mysql(const lab::MariadbServer& server) {
    return {[&server] { return std::stod(server.value("SELECT COUNT(*) FROM holdfast_lease")); },
            [&server] {
                return std::stod(
                    server.value("SELECT FILE_SIZE FROM information_schema.INNODB_SYS_TABLESPACES "
                                 "WHERE NAME = 'holdfast/holdfast_lease'"));
            },
            "rows"};
}

/// What was deleted stays in the history until somebody compacts it. Free space of the file is
/// given back first, so that its size is that of what is in it.
Left of_etcd(const lab::EtcdServers& servers) {
    return {[&servers] {
                // Those of names used before may still end with their leases.
                std::istringstream all(
                    servers.ctl({"get", "--prefix", "--keys-only", "/holdfast/bench%2Fonce%2F"}));
                double keys = 0;
                for (std::string line; std::getline(all, line);)
                    keys += line.empty() ? 0 : 1;
                return keys;
            },
            [&servers] {
                constexpr std::string_view size = "\"dbSize\":\"";
                servers.post(0, "maintenance/defragment", "{}", lab::default_cap);
                const auto status = servers.post(0, "maintenance/status", "{}");
                const auto at = status.find(size);
                if (at == status.npos)
                    throw SelfCheck("etcd did not say how large its database is");
                return std::stod(status.substr(at + size.size()));
            },
            "keys"};
}

double nodes_of(const lab::ZooKeeperServers& servers) {
    std::istringstream lines(servers.ask(0, "mntr"));
    for (std::string key, value; lines >> key && std::getline(lines, value);)
        if (key == "zk_znode_count") return std::stod(value);
    throw SelfCheck("ZooKeeper did not say how many nodes it has");
}

/// The server looks for empty containers once in a minute; a server of its own looks every second.
void run_zookeeper(Bench& bench) {
    lab::ZooKeeperOptions options;
    options.java = {"-Dznode.container.checkIntervalMs=500",
                    "-Dznode.container.maxPerMinute=1000000"};
    const auto servers = lab::ZooKeeperServers::start(options);
    const auto names = static_cast<std::size_t>(bench.options.pick(100, 500, 10000));
    const double empty = nodes_of(servers) + 1;  // and the folder of all locks
    std::chrono::nanoseconds patience = std::chrono::seconds(30);
    for (const char* parents : {"container", "persistent"}) {
        const std::string kind = parents;
        const Deployment d{"zookeeper",
                           kind + " parents",
                           servers.url() + "?tick_time=100ms&parents=" + kind,
                           {},
                           {},
                           {}};
        use_once(bench, d, "first/" + kind, 8);
        if (kind == "container")
            lab::wait_until([&] { return nodes_of(servers) <= empty; }, patience,
                            "the first containers to go");
        const double before = nodes_of(servers);
        use_once(bench, d, "once/" + kind, names);
        const auto start = Clock::now();
        const double at_once = nodes_of(servers) - before;
        const bool gone = lab::reached([&] { return nodes_of(servers) <= before; }, patience);
        // Nodes that stay get twice the time, and a second, that the others took to go.
        patience = 2 * (Clock::now() - start) + std::chrono::seconds(1);
        add_rows(
            bench, d, {{}, {}, "nodes"}, names, gone ? 0 : nodes_of(servers) - before, 0,
            ", after the server has looked for empty containers; just after the last release " +
                std::to_string(static_cast<long>(at_once)));
    }
}

std::vector<Step> plan(const Options&, const Site& site) {
    std::vector<Step> steps;
    for (const Deployment& d : site.deployments()) {
        if (d.in_process || d.variant == "poll" || d.variant == "durable" ||
            d.backend == "zookeeper")
            continue;
        steps.push_back({d.label() + " names used once", [d](Bench& bench) {
                             if (d.backend == "redis")
                                 measure(bench, d, of_redis({bench.site.redis()}));
                             if (d.backend == "redlock") {
                                 std::vector<lab::RedisServer*> nodes;
                                 for (auto& node : bench.site.redlock_nodes())
                                     nodes.push_back(&node);
                                 measure(bench, d, of_redis(nodes), ", at five nodes together");
                             }
                             if (d.backend == "sqlite")
                                 measure(bench, d, of_sqlite(bench.site.sqlite_file()));
                             if (d.backend == "postgresql")
                                 measure(bench, d, of_postgresql(*bench.site.postgresql()));
                             if (d.backend == "mysql")
                                 measure(bench, d, of_mysql(*bench.site.mysql()));
                             if (d.backend == "etcd")
                                 measure(bench, d, of_etcd(*bench.site.etcd()),
                                         "; the bytes are history, which a compaction removes");
                         }});
    }
    if (site.find("zookeeper") != nullptr)
        steps.push_back({"zookeeper names used once, container and persistent", run_zookeeper});
    return steps;
}

}  // namespace

Scenario c24_names_once() {
    return {
        id, "names that are used once: what is left at the server",
        "Names are acquired and released once by eight callers (SQLite: one) of one client; then "
        "keys, rows or nodes are counted at the server, and compared with before. ZooKeeper is a "
        "server of its own that looks for empty containers twice a second instead of once a "
        "minute.",
        false, plan};
}

}  // namespace holdfast::bench
