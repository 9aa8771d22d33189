// Where clients need TLS or a password, the lab keeps a way of its own: a plain second port and a
// second user. So a test may take away any right from its clients and still look at the server.
#include "holdfast/lab/redis_server.hpp"

#include <fmt/format.h>

#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "redis_tls.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr const char* lab_user = "holdfast-lab";

std::string random_word() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

class RedisServer::Impl {
public:
    explicit Impl(RedisOptions options) : options_(std::move(options)) {
        if (!options_.password.empty() || !options_.users.empty()) {
            lab_password_ = random_word();
        }
        if (options_.tls) {
            tls_ = options_.certificate.ca.empty() ? make_tls_files(directory_.path())
                                                   : options_.certificate;
        }
        // The port was free when it was reserved, but only listening on it makes it ours.
        for (int attempt = 1;; ++attempt) {
            try {
                launch();
                return;
            } catch (const LabError&) {
                const bool taken =
                    detail::read_text(log()).find("Address already in use") != std::string::npos;
                if (!taken || attempt == 5 || options_.port != 0) {
                    throw;
                }
                process_.reset();
                std::filesystem::remove(log());
                port_ = free_port();
                if (lab_port_) {
                    lab_port_ = free_port();
                }
            }
        }
    }

    const RedisOptions& options() const { return options_; }
    std::uint16_t port() const { return options_.port != 0 ? options_.port : port_.number(); }
    const std::optional<TlsFiles>& tls() const { return tls_; }
    std::filesystem::path data() const { return directory_ / "data"; }

    Process& process() {
        if (!process_) {
            throw LabError("the Redis server could not be started again");
        }
        return *process_;
    }

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

    void wait_ready(std::chrono::nanoseconds cap) {
        std::string last = "no answer yet";
        const auto answers = [&] {
            if (!process().alive()) {
                last = "it has ended";
                return true;
            }
            try {
                auto connection = connect(std::chrono::seconds(1));
                last = to_string(connection.command({"PING"}, std::chrono::seconds(1)));
                if (last != "PONG") {
                    return false;
                }
                // Another program's server might have taken the port and answer in place of ours.
                const auto info = connection.command({"INFO", "server"}, std::chrono::seconds(1));
                const auto pid = fmt::format("process_id:{}\r\n", process().pid());
                if (info.text.find(pid) == std::string::npos) {
                    last = "another server answers on its port";
                    return false;
                }
                return true;
            } catch (const LabError& error) {
                last = error.what();
                return false;
            }
        };
        if (!reached(answers, cap) || last != "PONG") {
            throw LabError(
                fmt::format("redis-server does not answer ({})\n  command: {}\n  log:\n{}", last,
                            process().command_line(), process().log_tail()));
        }
    }

    void restart(Data data) {
        if (process_ && process_->alive()) {
            if (data == Data::keep) {
                save_and_end();
            } else {
                process_->kill();
            }
        }
        process_.reset();
        if (data == Data::fresh) {
            std::filesystem::remove_all(this->data());
        }
        launch();
    }

private:
    std::filesystem::path log() const { return directory_ / "redis.log"; }

    void launch() {
        std::filesystem::create_directories(data());
        const auto file = directory_ / "redis.conf";
        detail::write_text(file, configuration());
        ProcessOptions process;
        process.argv = {"redis-server", file.string()};
        process.package = "redis-server";
        process.log = log();
        process.directory = directory_.path();
        process.cpus = options_.cpus;
        process.environment = options_.environment;
        process_.emplace(std::move(process));
        wait_ready(options_.cap);
    }

    void save_and_end() {
        process_->resume();
        auto connection = connect(default_cap);
        connection.send({"SHUTDOWN", "SAVE"});
        if (!process_->wait(default_cap)) {
            throw LabError("redis-server did not save and end\n" + process_->log_tail());
        }
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
    TempDir directory_;
    Port port_ = free_port();
    std::optional<Port> lab_port_ = options_.tls ? std::optional<Port>(free_port()) : std::nullopt;
    std::string lab_password_;
    std::optional<TlsFiles> tls_;
    std::optional<Process> process_;
};

RedisServer RedisServer::start(RedisOptions options) {
    return RedisServer(std::make_unique<Impl>(std::move(options)));
}

RedisServer::RedisServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RedisServer::RedisServer(RedisServer&&) noexcept = default;
RedisServer& RedisServer::operator=(RedisServer&&) noexcept = default;
RedisServer::~RedisServer() = default;

std::string RedisServer::url() const {
    return fmt::format("{}://127.0.0.1:{}", impl_->tls() ? "rediss" : "redis", port());
}

std::string RedisServer::url_with_password() const {
    return url_with_password(port());
}

std::string RedisServer::url_with_password(std::uint16_t port) const {
    return fmt::format("{}://{}127.0.0.1:{}", impl_->tls() ? "rediss" : "redis",
                       password().empty() ? std::string() : ":" + password() + "@", port);
}

std::uint16_t RedisServer::port() const noexcept {
    return impl_->port();
}
const std::string& RedisServer::password() const noexcept {
    return impl_->options().password;
}

const TlsFiles& RedisServer::tls_files() const {
    if (!impl_->tls()) {
        throw LabError("this Redis server was started without TLS");
    }
    return *impl_->tls();
}

std::filesystem::path RedisServer::data_directory() const {
    return impl_->data();
}
Process& RedisServer::process() {
    return impl_->process();
}
bool RedisServer::alive() {
    return impl_->process().alive();
}
void RedisServer::pause() {
    impl_->process().pause();
}
void RedisServer::resume() {
    impl_->process().resume();
}
void RedisServer::kill() {
    impl_->process().kill();
}
void RedisServer::restart(Data data) {
    impl_->restart(data);
}
void RedisServer::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}

RedisConnection RedisServer::connect(std::chrono::nanoseconds cap) const {
    return impl_->connect(cap);
}

Reply RedisServer::cli(const std::vector<std::string>& arguments,
                       std::chrono::nanoseconds cap) const {
    return impl_->connect(cap).command(arguments, cap);
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
    auto* impl = impl_.get();
    return RedisMonitor([impl] { return impl->connect(default_cap); });
}

}  // namespace holdfast::lab
