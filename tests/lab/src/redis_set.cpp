#include "holdfast/lab/redis_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "redis_tls.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr std::chrono::seconds answer_cap{1};

}  // namespace

class RedisSet::Impl {
public:
    explicit Impl(RedisSetOptions o) : options_(std::move(o)) {
        options_.server = detail::with_one_authority(std::move(options_.server), directory_.path());
        for (std::size_t i = 0; i < options_.count; ++i) {
            add_server(i);
        }
        for (std::size_t i = 0; i < options_.sentinels; ++i) {
            add_sentinel(i);
        }
        // They are busy on a machine that is; what they wait for is each other's messages.
        wait_until([this] { return settled(); }, std::chrono::seconds(60),
                   "the Sentinels know each other and all servers");
    }

    /// When SENTINEL FAILOVER was accepted last, unless that is over.
    std::optional<std::chrono::steady_clock::time_point> asked;

    const RedisSetOptions& options() const { return options_; }
    std::vector<RedisServer>& servers() { return servers_; }
    std::vector<Proxy>& proxies() { return proxies_; }
    std::vector<Process>& sentinels() { return sentinels_; }
    const std::vector<std::uint16_t>& sentinel_ports() const { return ports_; }
    const std::vector<std::uint16_t>& clear_sentinel_ports() const { return clear_ports_; }

    std::uint16_t announced(std::size_t i) const {
        return options_.proxied ? proxies_.at(i).port() : servers_.at(i).port();
    }

    Reply ask(std::size_t i, const std::vector<std::string>& command) const {
        RedisConnection connection("127.0.0.1", clear_ports_.at(i), answer_cap);
        if (!options_.sentinel_password.empty()) {
            connection.command({"AUTH", options_.sentinel_password}, answer_cap);
        }
        return connection.command(command, answer_cap);
    }

    std::optional<std::size_t> primary(std::size_t i) const {
        const auto reply = ask(i, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
        for (std::size_t s = 0; reply.elements.size() == 2 && s < servers_.size(); ++s) {
            if (reply.elements[1].text == std::to_string(announced(s))) {
                return s;
            }
        }
        return std::nullopt;
    }

    bool settled() const {
        std::optional<std::size_t> all;
        for (std::size_t i = 0; i < ports_.size(); ++i) {
            try {
                const auto one = primary(i);
                if (!one || (all && *all != *one) || !knows_all(i)) {
                    return false;
                }
                all = one;
            } catch (const LabError&) {
                continue;  // it does not answer
            }
        }
        return all && replicas_connected(*all);
    }

private:
    /// No failover is under way there, and it knows the others.
    bool knows_all(std::size_t i) const {
        const auto reply = ask(i, {"SENTINEL", "MASTER", name});
        bool known = true;
        for (std::size_t f = 0; f + 1 < reply.elements.size(); f += 2) {
            const auto& key = reply.elements[f].text;
            const auto& value = reply.elements[f + 1].text;
            if (key == "flags") {
                known = known && value == "master";
            } else if (key == "num-slaves") {
                known = known && value == std::to_string(options_.count - 1);
            } else if (key == "num-other-sentinels") {
                known = known && value == std::to_string(options_.sentinels - 1);
            }
        }
        return known && !reply.elements.empty();
    }

    bool replicas_connected(std::size_t primary) const {
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            try {
                RedisConnection connection = servers_[i].connect(answer_cap);
                const auto role = connection.command({"ROLE"}, answer_cap);
                const auto& what = role.elements.at(0).text;
                if (i == primary ? what != "master"
                                 : what != "slave" || role.elements.at(3).text != "connected") {
                    return false;
                }
                if (i != primary &&
                    role.elements.at(2).integer != static_cast<long long>(announced(primary))) {
                    return false;
                }
            } catch (const LabError&) {
                if (i == primary) {
                    return false;
                }
            }
        }
        return true;
    }

    void add_server(std::size_t i) {
        RedisOptions o = options_.server;
        o.config.insert(o.config.end(),
                        {"repl-diskless-sync-delay 0", "repl-ping-replica-period 1"});
        if (options_.proxied) {
            // Known before the server is: it stays while nothing listens behind it.
            reserved_.push_back(free_port());
            o.port = reserved_.back().number();
            proxies_.emplace_back(o.port);
            o.config.push_back("replica-announce-ip 127.0.0.1");
            o.config.push_back(fmt::format("replica-announce-port {}", proxies_[i].port()));
        }
        if (i > 0) {
            o.config.push_back(fmt::format("replicaof 127.0.0.1 {}", announced(0)));
        }
        if (!o.password.empty()) {
            o.config.push_back("masterauth " + o.password);
        }
        servers_.push_back(RedisServer::start(std::move(o)));
    }

    void add_sentinel(std::size_t i) {
        const auto directory = directory_ / fmt::format("sentinel{}", i);
        std::filesystem::create_directories(directory);
        const auto next_port = [this] {
            reserved_.push_back(free_port());
            return reserved_.back().number();
        };
        clear_ports_.push_back(next_port());
        ports_.push_back(options_.server.tls ? next_port() : clear_ports_.back());
        std::string text = fmt::format("port {}\n", ports_.back());
        if (options_.server.tls) {
            text =
                detail::ports_of(ports_.back(), clear_ports_.back(), options_.server.certificate) +
                "tls-replication yes\n";
        }
        text += fmt::format(
            "bind 127.0.0.1\nprotected-mode no\ndir \"{}\"\nlogfile \"\"\n"
            "sentinel monitor {} 127.0.0.1 {} {}\n"
            "sentinel down-after-milliseconds {} {}\n"
            "sentinel failover-timeout {} {}\n",
            directory.string(), name, announced(0), options_.sentinels / 2 + 1, name,
            options_.down_after.count(), name, options_.failover_timeout.count());
        if (!options_.server.password.empty()) {
            text += fmt::format("sentinel auth-pass {} {}\n", name, options_.server.password);
        }
        if (!options_.sentinel_password.empty()) {
            text += fmt::format("requirepass {0}\nsentinel sentinel-pass {0}\n",
                                options_.sentinel_password);
        }
        for (const auto& line : options_.sentinel_config) {
            text += line + "\n";
        }
        const auto file = directory / "sentinel.conf";
        detail::write_text(file, text);
        ProcessOptions process;
        process.argv = {"redis-server", file.string(), "--sentinel"};
        process.package = "redis-server";
        process.log = directory / "sentinel.log";
        process.directory = directory;
        sentinels_.emplace_back(std::move(process));
    }

    RedisSetOptions options_;
    TempDir directory_;
    std::vector<Proxy> proxies_;
    std::vector<RedisServer> servers_;
    std::vector<Port> reserved_;  // so that nobody else takes them
    std::vector<std::uint16_t> ports_, clear_ports_;
    std::vector<Process> sentinels_;
};

RedisSet RedisSet::start(RedisSetOptions options) {
    return RedisSet(std::make_unique<Impl>(std::move(options)));
}

RedisSet::RedisSet(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RedisSet::RedisSet(RedisSet&&) noexcept = default;
RedisSet& RedisSet::operator=(RedisSet&&) noexcept = default;
RedisSet::~RedisSet() = default;

std::string RedisSet::url() const {
    return url(sentinel_ports());
}

std::string RedisSet::url(const std::vector<std::uint16_t>& sentinels) const {
    std::string text = impl_->options().server.tls ? "rediss+sentinel://" : "redis+sentinel://";
    if (!impl_->options().server.password.empty()) {
        text += ":" + impl_->options().server.password + "@";
    }
    for (std::size_t i = 0; i < sentinels.size(); ++i) {
        text += fmt::format("{}127.0.0.1:{}", i > 0 ? "," : "", sentinels[i]);
    }
    return text + "/" + name;
}

std::size_t RedisSet::size() const noexcept {
    return impl_->servers().size();
}
RedisServer& RedisSet::server(std::size_t i) {
    return impl_->servers().at(i);
}

Proxy& RedisSet::proxy(std::size_t i) {
    if (impl_->proxies().empty()) {
        throw LabError("this Redis set was started without proxies");
    }
    return impl_->proxies().at(i);
}

std::uint16_t RedisSet::announced(std::size_t i) const {
    return impl_->announced(i);
}
const std::vector<std::uint16_t>& RedisSet::sentinel_ports() const noexcept {
    return impl_->sentinel_ports();
}
const std::vector<std::uint16_t>& RedisSet::clear_sentinel_ports() const noexcept {
    return impl_->clear_sentinel_ports();
}
Process& RedisSet::sentinel(std::size_t i) {
    return impl_->sentinels().at(i);
}

Reply RedisSet::ask_sentinel(std::size_t i, const std::vector<std::string>& command) const {
    return impl_->ask(i, command);
}

std::size_t RedisSet::primary(std::size_t i) const {
    const auto found = impl_->primary(i);
    if (!found) {
        throw LabError("the Sentinel names a primary that is not of its set");
    }
    return *found;
}

bool RedisSet::settled() const {
    return impl_->settled();
}

void RedisSet::wait_settled(std::chrono::nanoseconds cap) const {
    wait_until([this] { return settled(); }, cap, "the Sentinels have settled on one primary");
}

std::size_t RedisSet::fail_over(std::size_t i) {
    const std::size_t former = primary(i);
    // Refused while another one is under way, or until a replica has answered it lately.
    wait_until(
        [&] {
            return ask_sentinel(i, {"SENTINEL", "FAILOVER", name}).is_ok();
        },
        std::chrono::seconds(60), "SENTINEL FAILOVER is accepted");
    impl_->asked = std::chrono::steady_clock::now();
    return former;
}

void RedisSet::wait_replaced(std::size_t former, std::chrono::nanoseconds cap,
                             std::size_t sentinels) {
    auto asked = std::exchange(impl_->asked, {});
    const auto given_up = 2 * impl_->options().failover_timeout;
    wait_until(
        [&] {
            std::size_t naming = 0;
            for (std::size_t i = 0; i < sentinel_ports().size(); ++i) {
                const auto named = impl_->primary(i);
                if (named && *named != former && ++naming == sentinels) return true;
            }
            const auto now = std::chrono::steady_clock::now();
            if (asked && now > *asked + given_up) {
                ask_sentinel(0, {"SENTINEL", "FAILOVER", name});
                asked = now;
            }
            return false;
        },
        cap, "the Sentinels name another primary");
}

}  // namespace holdfast::lab
