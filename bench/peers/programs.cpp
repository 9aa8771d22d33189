#include "peers/programs.hpp"

#include <algorithm>

#include "floors/redis_floor.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

namespace fs = std::filesystem;

fs::path beside_the_bench() {
    return fs::read_symlink("/proc/self/exe").parent_path() / "peers";
}

/// Debian's own one where there is one, since Debian's modules are for that.
std::string python() {
    return fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
}

/// Debian's folder of jars.
std::string class_path() {
    std::string all = (beside_the_bench() / "classes").string();
    for (const char* jar :
         {"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
          "guava", "slf4j-api", "slf4j-nop", "netty-handler", "netty-transport", "netty-common",
          "netty-buffer", "netty-codec", "netty-resolver"})
        all += std::string(":/usr/share/java/") + jar + ".jar";
    return all;
}

bool exists_on_all(const std::vector<std::uint16_t>& ports, const std::string& key) {
    return std::all_of(ports.begin(), ports.end(), [&](std::uint16_t port) {
        return ask(connect_redis(port).get(), {"EXISTS", key})->integer == 1;
    });
}

/// How many nodes there are below `parent`; none where it does not exist.
std::size_t nodes_below(const std::string& servers, const std::string& parent) {
    ZooKeeperSession session(servers, milliseconds(10000));
    const auto list = session.children(parent);
    if (!list.ok() && !list.no_node()) throw SelfCheck("ZooKeeper does not list " + parent);
    return list.names.size();
}

class List {
public:
    explicit List(Bench& bench) : bench_(bench) {}

    void redis(const std::string& name, std::vector<std::string> program, const char* package) {
        if (const auto* server = bench_.site.redis())
            on_redis("redis", {server->port()}, name, std::move(program), package);
    }
    void redlock(const std::string& name, std::vector<std::string> program, const char* package) {
        if (const auto ports = bench_.site.redlock_ports(); !ports.empty())
            on_redis("redlock", ports, name, std::move(program), package);
    }
    void zookeeper(const std::string& name, std::vector<std::string> program, const char* package,
                   double warm_up) {
        if (bench_.site.zookeeper() == nullptr) return;
        const std::string servers = bench_.site.zookeeper()->connect_string();
        const std::string path = "/bench-peer-" + name;
        add({"zookeeper",
             name,
             {std::move(program), package, {}},
             warm_up,
             [=] { return nodes_below(servers, path) == 1; }},
            servers, path);
    }
    /// `prefix`: what the library puts before the name.
    void etcd(const std::string& name, std::vector<std::string> program, const char* package,
              const std::string& prefix) {
        auto* servers = bench_.site.etcd();
        if (servers == nullptr) return;
        const std::string key = "bench/peer/" + name;
        add({"etcd",
             name,
             {std::move(program), package, {}},
             0.3,
             [=] {
                 return !servers->ctl({"get", "--prefix", "--keys-only", prefix + key}).empty();
             }},
            std::to_string(servers->port()), key);
    }

    std::vector<Peer> all;

private:
    void on_redis(const std::string& backend, const std::vector<std::uint16_t>& ports,
                  const std::string& name, std::vector<std::string> program, const char* package) {
        std::string servers;
        for (const std::uint16_t port : ports)
            servers += (servers.empty() ? "" : ",") + std::to_string(port);
        const std::string key = "bench/peer/" + name;
        const std::string prefix = name == "redis-semaphore" ? "mutex:" : "";
        add({backend,
             name,
             {std::move(program), package, {}},
             0.3,
             [=] { return exists_on_all(ports, prefix + key); }},
            servers, key);
    }
    void add(Peer peer, const std::string& servers, const std::string& lock) {
        peer.start.argv.push_back(servers);
        peer.start.argv.push_back(lock);
        peer.start.log = bench_.site.folder() / ("peer-" + peer.name + ".log");
        all.push_back(std::move(peer));
    }

    Bench& bench_;
};

}  // namespace

std::vector<Peer> peers(Bench& bench) {
    const fs::path here = beside_the_bench();
    const auto node = [&](const char* file) {
        return std::vector<std::string>{"node", (here / "node" / file).string()};
    };
    List list(bench);
    list.redis("redis-py", {python(), (here / "redis_py.py").string()}, "Debian: python3");
    list.redis("redis-semaphore", node("semaphore.mjs"), "Debian: nodejs");
    list.redis("redlock-universal", node("universal.mjs"), "Debian: nodejs");
    list.redlock("redlock", node("redlock.mjs"), "Debian: nodejs");
    list.zookeeper("kazoo", {python(), (here / "kazoo_lock.py").string()}, "Debian: python3", 0.3);
    // Without its class the program cannot say itself what is missing.
    const bool built = fs::exists(here / "classes" / "CuratorPeer.class");
    list.zookeeper(
        "curator",
        {built ? "java" : "", "-XX:+UseSerialGC", "-Xmx64m", "-cp", class_path(), "CuratorPeer"},
        built ? "Debian: default-jre-headless"
              : "Debian: libcurator-recipes-java, libslf4j-java, ecj; then build again",
        1.5);
    list.etcd("etcd3", {python(), (here / "etcd3_lock.py").string()}, "Debian: python3", "/locks/");
    list.etcd("etcdctl lock", {python(), (here / "etcdctl_lock.py").string()}, "Debian: python3",
              "");
    return std::move(list.all);
}

}  // namespace holdfast::bench
