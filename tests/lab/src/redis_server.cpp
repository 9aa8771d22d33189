// Where clients need TLS or a password, the lab keeps a way of its own: a plain second port and a
// second user. So a test may take away any right from its clients and still look at the server.
#include "holdfast/lab/redis_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "redis_tls.hpp"
#include "single_server.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr const char* lab_user = "holdfast-lab";

std::string random_word() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

class RedisServer::Impl final : public SingleServer::Impl {
public:
    explicit Impl(RedisOptions options)
        : SingleServer::Impl({"Redis", "redis-server", "redis-server", SIGTERM, SIGKILL}, options),
          options_(std::move(options)) {
        if (!options_.password.empty() || !options_.users.empty()) {
            lab_password_ = random_word();
        }
        make_data();
        start();
    }

    std::uint16_t port() const noexcept override {
        return options_.port != 0 ? options_.port : SingleServer::Impl::port();
    }
    const char* scheme() const { return tls_ ? "rediss" : "redis"; }

    RedisConnection connect(std::chrono::nanoseconds cap) const {
        RedisConnection connection("127.0.0.1", lab_port_ ? lab_port_->number() : port(), cap);
        if (!lab_password_.empty()) {
            const auto reply = connection.command({"AUTH", lab_user, lab_password_}, cap);
            if (!reply.is_ok()) {
                throw LabError("the lab's own user was refused: " + to_string(reply));
            }
        }
        return connection;
    }

private:
    void make_data() override { std::filesystem::create_directories(data()); }

    std::vector<std::string> command() override {
        const auto file = directory() / "redis.conf";
        detail::write_text(file, configuration());
        return {"redis-server", file.string()};
    }

    void ask() override {
        auto connection = connect(std::chrono::seconds(1));
        const auto pong = to_string(connection.command({"PING"}, std::chrono::seconds(1)));
        if (pong != "PONG") {
            throw LabError(pong);
        }
        // Another program's server might have taken the port and answer in place of ours.
        const auto info = connection.command({"INFO", "server"}, std::chrono::seconds(1));
        const auto pid = fmt::format("process_id:{}\r\n", process().pid());
        if (info.text.find(pid) == std::string::npos) {
            throw LabError("another server answers on its port");
        }
    }

    bool move() override {
        if (lab_port_) {
            lab_port_ = free_port();
        }
        return options_.port == 0 && SingleServer::Impl::move();
    }

    void ask_to_end(Data what) override {
        if (what == Data::fresh) {
            return SingleServer::Impl::ask_to_end(what);
        }
        connect(default_cap).send({"SHUTDOWN", "SAVE"});
    }

    std::string configuration() const {
        std::string text =
            "bind 127.0.0.1\n"
            "protected-mode no\n"
            "daemonize no\n"
            "logfile \"\"\n"
            "save \"\"\n"
            "enable-debug-command local\n"
            "shutdown-timeout 0\n";
        text += fmt::format("dir \"{}\"\n", data().string());
        if (tls_) {
            text += detail::ports_of(port(), lab_port_->number(), *tls_);
        } else {
            text += fmt::format("port {}\n", port());
        }
        if (options_.append_only) {
            text += "appendonly yes\nappendfsync " + options_.append_fsync + "\n";
        }
        if (!options_.password.empty()) {
            text += "requirepass " + options_.password + "\n";
        }
        if (!lab_password_.empty()) {
            text += fmt::format("user {} on >{} ~* &* +@all\n", lab_user, lab_password_);
        }
        for (const auto& user : options_.users) {
            text += "user " + user + "\n";
        }
        for (const auto& line : options_.config) {
            text += line + "\n";
        }
        return text;
    }

    const RedisOptions options_;
    std::optional<Port> lab_port_ = options_.tls ? std::optional<Port>(free_port()) : std::nullopt;
    std::string lab_password_;
};

RedisServer RedisServer::start(RedisOptions options) {
    return RedisServer(std::make_unique<Impl>(std::move(options)));
}

RedisServer::RedisServer(std::unique_ptr<Impl> impl) noexcept : SingleServer(std::move(impl)) {}
RedisServer::Impl& RedisServer::impl() const noexcept {
    return static_cast<Impl&>(*impl_);
}

std::string RedisServer::url() const {
    return fmt::format("{}://127.0.0.1:{}", impl().scheme(), port());
}

std::string RedisServer::url_with_password() const {
    return url_with_password(port());
}

std::string RedisServer::url_with_password(std::uint16_t port) const {
    return fmt::format("{}://{}127.0.0.1:{}", impl().scheme(),
                       password().empty() ? std::string() : ":" + password() + "@", port);
}

RedisConnection RedisServer::connect(std::chrono::nanoseconds cap) const {
    return impl().connect(cap);
}

Reply RedisServer::cli(const std::vector<std::string>& arguments,
                       std::chrono::nanoseconds cap) const {
    return impl().connect(cap).command(arguments, cap);
}

bool RedisServer::replica_acknowledges() const {
    const auto all = info("replication");
    const auto first = all.find("slave0");
    return first != all.end() && first->second.find(",offset=0,") == std::string::npos;
}

std::map<std::string, std::string> RedisServer::info(const std::string& section) const {
    const auto reply = cli(section.empty() ? std::vector<std::string>{"INFO"}
                                           : std::vector<std::string>{"INFO", section});
    if (reply.is_error()) {
        throw LabError("INFO was refused: " + reply.text);
    }
    std::map<std::string, std::string> result;
    std::istringstream lines(reply.text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty() && line.back() == '\r') {
            line.pop_back();
        }
        const auto colon = line.find(':');
        if (colon != std::string::npos && line.front() != '#') {
            result[line.substr(0, colon)] = line.substr(colon + 1);
        }
    }
    return result;
}

RedisMonitor RedisServer::monitor() const {
    auto* server = &impl();
    return RedisMonitor([server] { return server->connect(default_cap); });
}

}  // namespace holdfast::lab
