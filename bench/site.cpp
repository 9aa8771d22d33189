#include "site.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/vfs.h>

#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/lab/error.hpp>
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

std::optional<lab::RedisServer> start_redis(const lab::RedisOptions& options, Rows& rows) {
    try {
        return lab::RedisServer::start(options);
    } catch (const lab::LabError& error) {
        add_failure(rows, options.append_only ? "redis durable" : "redis", error.what());
        return std::nullopt;
    }
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
        start_lab(options, rows);
}

void Site::start_lab(const Options&, Rows& rows) {
    const auto& linked = spi::Registry::linked();
    for (const auto& backend : linked.all())
        if (backend->name != "redis" && backend->name != "sqlite" && backend->name != "memory")
            add_failure(rows, backend->name, "linked in, but the bench starts no server for it");
    for (const char* name : {"memory", "sqlite", "redis"})
        if (linked.find(name) == nullptr) add_failure(rows, name, "not built into this bench");

    redis_ = start_redis({}, rows);  // the raw floors need it whatever is linked in
    lab::RedisOptions always;
    always.append_only = true;
    durable_ = start_redis(always, rows);
    const auto add = [this](Deployment d) { deployments_.push_back(std::move(d)); };
    const bool redis_linked = linked.find("redis") != nullptr;
    if (redis_ && redis_linked) {
        const std::string lost = "memory only: a crash of the server loses it";
        add({"redis", "default", redis_->url(), {}, {}, lost});
        add({"redis", "plain", redis_->url() + "?mode=plain", {}, {}, lost});
        add({"redis", "poll", redis_->url() + "?wait=poll", {}, {}, lost});
    }
    if (durable_ && redis_linked)
        add({"redis", "durable", durable_->url(), {}, {}, "appendonly yes, appendfsync always"});
    if (linked.find("sqlite") != nullptr)
        add({"sqlite",
             "default",
             "sqlite://" + sqlite_file().string(),
             {},
             {},
             "synchronous FULL on " + file_system(folder_.path())});
    if (linked.find("memory") != nullptr)
        add({"memory", "default", "memory:", {}, {}, "ends with the process", true});
}

void Site::open_own(const Options& options, Rows& rows) {
    Deployment own;
    own.open = options.url.empty() ? options.backend : options.url;
    own.config_file = options.config;
    own.prefix = "holdfast-bench-" + random_word() + "/";
    own.variant = "own";
    Diagnostics words;
    const auto found = choose(own.open, own.config_file, spi::Registry::linked(), words);
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

int pin_to_one_core() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
    int last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) last = cpu;
    if (last < 0) return -1;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? last : -1;
}

}  // namespace holdfast::bench
