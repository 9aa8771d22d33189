#include "holdfast/lab/redis_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "redis_tls.hpp"

namespace holdfast::lab {
namespace {

constexpr std::chrono::seconds member_cap{1};

void must(const Reply& reply, const std::string& what) {
    if (reply.is_error()) {
        throw LabError(what + ": " + to_string(reply));
    }
}

}  // namespace

class RedisCluster::Impl {
public:
    explicit Impl(RedisClusterOptions o) : options_(std::move(o)) {
        options_.server = detail::with_one_authority(std::move(options_.server), directory_.path());
        const std::size_t all = options_.primaries * (1 + options_.replicas) + options_.spare;
        for (std::size_t i = 0; i < all; ++i) {
            add_server(i);
        }
        meet();
        for (std::size_t i = 0; i < options_.primaries; ++i) {
            const auto first = RedisCluster::slots * i / options_.primaries;
            const auto last = RedisCluster::slots * (i + 1) / options_.primaries - 1;
            ask(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
        }
        for (std::size_t i = options_.primaries + options_.spare; i < all; ++i) {
            const auto primary = (i - options_.primaries - options_.spare) % options_.primaries;
            ask(i, {"CLUSTER", "REPLICATE", ids_[primary]});
        }
        wait_until([this] { return settled(); }, std::chrono::seconds(60),
                   "the servers of the cluster agree");
    }

    const RedisClusterOptions& options() const { return options_; }
    std::vector<RedisServer>& servers() { return servers_; }

    /// Errors: LabError when it is refused.
    Reply ask(std::size_t i, const std::vector<std::string>& command) const {
        auto reply = servers_.at(i).cli(command);
        must(reply, fmt::format("server {} of the cluster: {}", i, command.at(1)));
        return reply;
    }

    std::size_t owner(unsigned slot, std::size_t witness) const {
        for (const auto& range : ask(witness, {"CLUSTER", "SLOTS"}).elements) {
            if (range.elements.at(0).integer > slot || range.elements.at(1).integer < slot) {
                continue;
            }
            // By its id: the port is that for the kind of connection on which it is asked.
            const auto& id = range.elements.at(2).elements.at(2).text;
            const auto at = std::find(ids_.begin(), ids_.end(), id);
            if (at != ids_.end()) {
                return static_cast<std::size_t>(at - ids_.begin());
            }
        }
        throw LabError(fmt::format("slot {} has no server", slot));
    }

    void begin_move(unsigned slot, std::size_t to) {
        const auto from = owner(slot, to);
        ask(to, {"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", ids_[from]});
        ask(from, {"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", ids_[to]});
    }

    void end_move(unsigned slot, std::size_t to) {
        const auto from = owner(slot, to);
        const auto number = std::to_string(slot);
        for (;;) {
            const auto keys = ask(from, {"CLUSTER", "GETKEYSINSLOT", number, "100"});
            if (keys.elements.empty()) {
                break;
            }
            std::vector<std::string> migrate{
                "MIGRATE", "127.0.0.1", std::to_string(servers_[to].port()), "", "0", "10000"};
            migrate.emplace_back("KEYS");
            for (const auto& key : keys.elements) {
                migrate.push_back(key.text);
            }
            ask(from, migrate);
        }
        // First the one that has the keys now: it must win whatever is heard of the other.
        ask(to, {"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
        ask(from, {"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
        for (std::size_t i = 0; i < options_.primaries + options_.spare; ++i) {
            if (i != to && i != from) {
                servers_[i].cli({"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
            }
        }
    }

    bool settled() const {
        std::set<std::string> owners;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            try {
                RedisConnection connection = servers_[i].connect(member_cap);
                const auto info = connection.command({"CLUSTER", "INFO"}, member_cap);
                if (info.text.find("cluster_state:ok") == std::string::npos) {
                    return false;
                }
                const auto role = connection.command({"ROLE"}, member_cap);
                if (role.elements.at(0).text == "slave" &&
                    role.elements.at(3).text != "connected") {
                    return false;
                }
                std::string all;
                for (const auto& range :
                     connection.command({"CLUSTER", "SLOTS"}, member_cap).elements) {
                    all += fmt::format("{} {} {};", range.elements.at(0).integer,
                                       range.elements.at(1).integer,
                                       range.elements.at(2).elements.at(1).integer);
                }
                owners.insert(all);
            } catch (const LabError&) {
                continue;  // it does not answer
            }
        }
        return owners.size() == 1;
    }

private:
    void add_server(std::size_t i) {
        RedisOptions o = options_.server;
        // The bus has a port of its own, which is 10000 higher unless it is told.
        buses_.push_back(free_port());
        const std::vector<std::string> lines{
            "cluster-enabled yes",
            fmt::format("cluster-config-file \"{}\"",
                        (directory_ / fmt::format("nodes{}.conf", i)).string()),
            fmt::format("cluster-node-timeout {}", options_.node_timeout.count()),
            fmt::format("cluster-port {}", buses_.back().number()), "repl-diskless-sync-delay 0"};
        o.config.insert(o.config.end(), lines.begin(), lines.end());
        if (o.tls) {
            o.config.emplace_back("tls-cluster yes");
        }
        if (!o.password.empty()) {
            o.config.push_back("masterauth " + o.password);
        }
        servers_.push_back(RedisServer::start(std::move(o)));
        ids_.push_back(servers_.back().cli({"CLUSTER", "MYID"}).text);
    }

    void meet() {
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
        }
        // Each by each: they tell each other of a third one only now and then.
        for (std::size_t i = 1; i < servers_.size(); ++i) {
            for (std::size_t by = 0; by < i; ++by) {
                ask(by, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(servers_[i].port()),
                         std::to_string(buses_[i].number())});
            }
        }
        wait_until(
            [this] {
                for (std::size_t i = 0; i < servers_.size(); ++i) {
                    const auto nodes = servers_[i].cli({"CLUSTER", "NODES"}).text;
                    for (const auto& id : ids_) {
                        if (nodes.find(id) == std::string::npos) {
                            return false;
                        }
                    }
                    if (nodes.find("handshake") != std::string::npos) {
                        return false;
                    }
                }
                return true;
            },
            std::chrono::seconds(60), "the servers of the cluster know each other");
    }

    RedisClusterOptions options_;
    TempDir directory_;
    std::vector<Port> buses_;
    std::vector<RedisServer> servers_;
    std::vector<std::string> ids_;
};

RedisCluster RedisCluster::start(RedisClusterOptions options) {
    return RedisCluster(std::make_unique<Impl>(std::move(options)));
}

RedisCluster::RedisCluster(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RedisCluster::RedisCluster(RedisCluster&&) noexcept = default;
RedisCluster& RedisCluster::operator=(RedisCluster&&) noexcept = default;
RedisCluster::~RedisCluster() = default;

std::string RedisCluster::url(const std::string& host) const {
    std::string text = impl_->options().server.tls ? "rediss+cluster://" : "redis+cluster://";
    if (const auto& password = impl_->options().server.password; !password.empty()) {
        text += ":" + password + "@";
    }
    for (std::size_t i = 0; i < impl_->options().primaries; ++i) {
        text += fmt::format("{}{}:{}", i > 0 ? "," : "", host, impl_->servers()[i].port());
    }
    return text;
}

std::size_t RedisCluster::size() const noexcept {
    return impl_->servers().size();
}
RedisServer& RedisCluster::server(std::size_t i) {
    return impl_->servers().at(i);
}
std::size_t RedisCluster::replica_of(std::size_t primary) const noexcept {
    return impl_->options().primaries + impl_->options().spare + primary;
}

unsigned RedisCluster::slot_of(const std::string& key) const {
    return static_cast<unsigned>(impl_->ask(0, {"CLUSTER", "KEYSLOT", key}).integer);
}
std::size_t RedisCluster::owner(unsigned slot, std::size_t witness) const {
    return impl_->owner(slot, witness);
}
Reply RedisCluster::cli(const std::string& key, const std::vector<std::string>& arguments) const {
    return impl_->servers().at(owner(slot_of(key))).cli(arguments);
}

void RedisCluster::begin_move(unsigned slot, std::size_t to) {
    impl_->begin_move(slot, to);
}
void RedisCluster::end_move(unsigned slot, std::size_t to) {
    impl_->end_move(slot, to);
}

bool RedisCluster::settled() const {
    return impl_->settled();
}
void RedisCluster::wait_settled(std::chrono::nanoseconds cap) const {
    wait_until([this] { return settled(); }, cap, "the servers of the cluster agree");
}

}  // namespace holdfast::lab
