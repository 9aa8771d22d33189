#include "site.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <functional>
#include <holdfast/client.hpp>
#include <holdfast/lab/error.hpp>
#include <holdfast/spi/config.hpp>
#include <holdfast/spi/registry.hpp>
#include <random>

#include "floors/own_clean_up.hpp"

namespace holdfast::bench {

namespace {

void add_failure(Rows& rows, const std::string& backend, const std::string& why) {
    Row row;
    row.scenario = "servers";
    row.backend = backend;
    row.metric = "missing";
    row.note = why;
    row.status = Status::failed;
    rows.push_back(std::move(row));
}

/// Runs `start`; a server that does not start is a row.
template <class Start>
void attempt(Rows& rows, const std::string& backend, Start start) {
    try {
        start();
    } catch (const std::exception& error) {
        add_failure(rows, backend, error.what());
    }
}

bool linked(std::string_view backend) {
    return spi::Registry::linked().find(backend) != nullptr;
}

std::string random_word() {
    std::random_device device;
    return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

Site::Site(const Options& options, Rows& rows) : own_(options.own_servers()) {
    if (own_)
        open_own(options, rows);
    else
        start_lab(rows);
}

void Site::start_lab(Rows& rows) {
    start_redis(rows);  // the raw floors need it whatever is linked in
    const std::pair<std::string_view, std::function<void()>> known[]{
        {"redis", [] {}},
        {"redlock", [this] { start_redlock(); }},
        {"postgresql", [this] { start_postgresql(); }},
        {"mysql", [this] { start_mysql(); }},
        {"zookeeper", [this] { start_zookeeper(); }},
        {"etcd", [this] { start_etcd(); }},
        {"sqlite",
         [this] {
             const std::string where = "synchronous FULL on " + file_system(folder_.path());
             const std::string url = "sqlite://" + sqlite_file().string();
             deployments_.push_back({"sqlite", "default", url, {}, {}, where});
         }},
        {"memory", [this] {
             const std::string lost = "ends with the process";
             deployments_.push_back({"memory", "default", "memory:", {}, {}, lost, true});
         }}};
    for (const auto& [name, start] : known) {
        if (linked(name))
            attempt(rows, std::string(name), start);
        else
            add_failure(rows, std::string(name), "not built into this bench");
    }
    for (const auto& backend : spi::Registry::linked().all())
        if (std::none_of(std::begin(known), std::end(known),
                         [&](const auto& k) { return k.first == backend->name; }))
            attempt(rows, backend->name, [&] {
                const auto& servers = others_.emplace_back(deployments::start(backend->name));
                Deployment d{backend->name, "default", servers->url(), {}, {}, servers->words()};
                d.behind_proxies = servers->behind_links();
                deployments_.push_back(std::move(d));
            });
}

void Site::start_redis(Rows& rows) {
    attempt(rows, "redis", [&] { redis_ = lab::RedisServer::start({}); });
    lab::RedisOptions always;
    always.append_only = true;
    attempt(rows, "redis durable", [&] { durable_ = lab::RedisServer::start(always); });
    const auto add = [this](Deployment d) { deployments_.push_back(std::move(d)); };
    if (redis_ && linked("redis")) {
        const std::string lost = "memory only: a crash of the server loses it";
        add({"redis", "default", redis_->url(), {}, {}, lost});
        add({"redis", "plain", redis_->url() + "?mode=plain", {}, {}, lost});
        add({"redis", "poll", redis_->url() + "?wait=poll", {}, {}, lost});
    }
    if (durable_ && linked("redis"))
        add({"redis", "durable", durable_->url(), {}, {}, "appendonly yes, appendfsync always"});
}

void Site::start_redlock() {
    std::string url = "redlock://";
    for (int i = 0; i < 5; ++i) {
        nodes_.push_back(lab::RedisServer::start({}));
        url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(nodes_.back().port());
    }
    // Nodes that have just started would not vote for a minute; none of these restarts.
    url += "?durable=yes&node_set=bench";  // one name, since some clients come through proxies
    const std::string lost = "five nodes, memory only: a node that crashes forgets";
    deployments_.push_back({"redlock", "default", url, {}, {}, lost});
    deployments_.push_back({"redlock", "no token", url + "&fencing=off", {}, {}, lost});
}

void Site::start_postgresql() {
    lab::PostgresOptions options;
    options.fsync = true;
    options.config = {"max_connections = 500"};  // a hundred buyers in processes of their own
    postgresql_ = lab::PostgresServer::start(options);
    deployments_.push_back({"postgresql",
                            "default",
                            postgresql_->url(),
                            {},
                            {},
                            "grants synced to " + file_system(folder_.path())});
}

void Site::start_mysql() {
    lab::MariadbOptions options;
    options.fsync = true;
    options.config = {"max_connections = 500"};  // a hundred buyers in processes of their own
    mysql_ = lab::MariadbServer::start(options);
    deployments_.push_back({"mysql",
                            "default",
                            mysql_->url(),
                            {},
                            {},
                            "every write synced to " + file_system(folder_.path())});
}

void Site::start_etcd() {
    etcd_ = lab::EtcdServers::start(short_elections());
    deployments_.push_back({"etcd",
                            "default",
                            etcd_->url(),
                            {},
                            {},
                            "one member, every write synced to " + file_system(folder_.path())});
}

void Site::start_zookeeper() {
    lab::ZooKeeperOptions options;
    zookeeper_ = lab::ZooKeeperServers::start(options);
    deployments_.push_back({"zookeeper",
                            "default",
                            zookeeper_->url() + "?tick_time=100ms",
                            {},
                            {},
                            "one server, every write synced to " + file_system(folder_.path())});
}

void Site::open_own(const Options& options, Rows& rows) {
    Deployment own;
    own.open = options.url.empty() ? options.backend : options.url;
    own.config_file = options.config;
    own.prefix = "holdfast-bench-" + random_word() + "/";
    own.variant = "own";
    Diagnostics words;
    const auto found = resolve(own.open, own.config_file, spi::Registry::linked(), words);
    if (!found) {
        add_failure(rows, own.open.empty() ? "default" : "own", words.text());
        return;
    }
    own.backend = found->backend->name;
    own.in_process = own.backend == "memory";
    own.durability = "as configured by its owner";
    deployments_.push_back(std::move(own));
}

const Deployment* Site::find(std::string_view backend, std::string_view variant) const {
    for (const Deployment& d : deployments_)
        if (d.backend == backend && d.variant == variant) return &d;
    return nullptr;
}

std::vector<std::uint16_t> Site::redlock_ports() const {
    std::vector<std::uint16_t> ports;
    for (const auto& node : nodes_)
        ports.push_back(node.port());
    return ports;
}

std::map<std::string, std::string> Site::facts() {
    std::map<std::string, std::string> facts;
    const auto ask = [&](lab::RedisServer& server, const std::string& name) {
        auto info = server.info("server");
        const auto config = [&](const std::string& key) {
            const auto reply = server.cli({"CONFIG", "GET", key});
            return reply.elements.size() == 2 ? reply.elements[1].text : std::string("?");
        };
        facts[name] = fmt::format("{}, appendonly {}, appendfsync {}, maxmemory-policy {}",
                                  info["redis_version"], config("appendonly"),
                                  config("appendfsync"), config("maxmemory-policy"));
    };
    try {
        if (redis_) ask(*redis_, "redis-server");
        if (durable_) ask(*durable_, "redis-server (durable)");
    } catch (const lab::LabError& error) {
        facts["redis-server"] = error.what();
    }
    for (const Deployment& d : deployments_)
        facts["durability of " + d.label()] = d.durability;
    facts["data folder on"] = file_system(folder_.path());
    return facts;
}

void Site::clean_up(Rows& rows) {
    if (!own_) return;
    for (const Deployment& own : deployments_) {
        Row row;
        row.scenario = "clean-up";
        row.backend = own.backend;
        row.variant = own.variant;
        row.metric = "locks left";
        try {
            const CleanUp done = clean_up_own(own);
            row.value = static_cast<double>(done.still_held);
            row.note = done.words;
            if (done.still_held != 0) row.status = Status::violated;
        } catch (const std::exception& error) {
            row.note = error.what();
            row.status = Status::failed;
        }
        rows.push_back(std::move(row));
    }
}

lab::EtcdOptions short_elections() {
    lab::EtcdOptions options;  // one member, which elects itself at once
    options.heartbeat = std::chrono::milliseconds(10);
    options.election = std::chrono::milliseconds(100);
    return options;
}

std::string file_system(const std::filesystem::path& folder) {
    struct statfs what {};
    if (statfs(folder.c_str(), &what) != 0) return "an unknown file system";
    switch (static_cast<unsigned long>(what.f_type)) {
        case 0xEF53:
            return "ext4";
        case 0x01021994:
            return "tmpfs (fsync costs nothing here)";
        case 0x794c7630:
            return "overlayfs";
        case 0x58465342:
            return "xfs";
        case 0x9123683E:
            return "btrfs";
        case 0x2fc12fc1:
            return "zfs";
        default:
            return fmt::format("file system {:#x}", static_cast<unsigned long>(what.f_type));
    }
}

}  // namespace holdfast::bench
