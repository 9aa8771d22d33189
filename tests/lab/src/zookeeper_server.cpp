// Java is slow to start and slow to warm up; what can be spared is spared: no C2 compiler, one
// collector thread, no web server, and all servers of an ensemble start at once.
#include "holdfast/lab/zookeeper_server.hpp"

#include <fmt/format.h>

#include <utility>

#include "exchange.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr const char* jar = "/usr/share/java/zookeeper.jar";
constexpr const char* logger = "/usr/share/java/slf4j-simple.jar";

std::string line_after(const std::string& text, const std::string& key) {
    const auto at = text.find(key);
    if (at == std::string::npos) {
        return {};
    }
    const auto begin = at + key.size();
    return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

class ZooKeeperServers::Impl {
public:
    explicit Impl(ZooKeeperOptions options) : options_(std::move(options)) {
        if (!std::filesystem::exists(jar)) {
            throw LabError(
                fmt::format("{} is missing (Debian: apt install libzookeeper-java)", jar));
        }
        for (std::size_t i = 0; i < options_.count; ++i) {
            members_.push_back(std::make_unique<Member>());
        }
        for (int attempt = 1;; ++attempt) {
            for (std::size_t i = 0; i < options_.count; ++i) {
                launch(i);
            }
            try {
                wait_ready(options_.cap);
                return;
            } catch (const LabError&) {
                bool taken = false;
                for (auto& m : members_) {
                    taken =
                        taken ||
                        detail::read_text(m->directory / "log").find("Address already in use") !=
                            std::string::npos;
                    m->process.reset();
                }
                if (!taken || attempt == 5) {
                    throw;
                }
                for (auto& m : members_) {
                    m = std::make_unique<Member>();
                }
            }
        }
    }

    struct Member {
        TempDir directory;
        Port client = free_port(), quorum = free_port(), election = free_port();
        std::optional<Process> process;
    };

    Member& at(std::size_t i) {
        if (i >= members_.size()) {
            throw LabError(fmt::format("there is no ZooKeeper server {}", i));
        }
        return *members_[i];
    }
    const Member& at(std::size_t i) const { return const_cast<Impl*>(this)->at(i); }
    Process& process(std::size_t i) {
        auto& m = at(i);
        if (!m.process) {
            throw LabError("that ZooKeeper server could not be started again");
        }
        return *m.process;
    }
    std::size_t size() const { return members_.size(); }
    std::string host(std::size_t i) const {
        return options_.hosts.empty() ? "127.0.0.1" : options_.hosts.at(i);
    }

    std::string ask(std::size_t i, const std::string& word, std::chrono::nanoseconds cap) const {
        return detail::exchange(host(i), at(i).client.number(), word, cap);
    }
    std::string mode(std::size_t i) const {
        return line_after(ask(i, "srvr", std::chrono::seconds(1)), "Mode: ");
    }

    void wait_ready(std::chrono::nanoseconds cap) {
        std::size_t silent = 0;
        const auto ready = [&] {
            bool leads = false;
            for (std::size_t i = 0; i < size(); ++i) {
                if (!at(i).process || !at(i).process->alive()) {
                    if (at(i).process && starting(i)) {
                        silent = i;
                        return true;  // it has ended by itself
                    }
                    continue;
                }
                const auto now = mode(i);
                if (now.empty()) {
                    silent = i;
                    return false;
                }
                at_started(i);
                leads = leads || now == "leader" || now == "standalone";
            }
            return leads;
        };
        const bool reached_it = reached(ready, cap);
        for (std::size_t i = 0; i < size(); ++i) {
            if (started_.size() > i && !started_[i] && at(i).process && !at(i).process->alive()) {
                throw LabError(
                    fmt::format("a ZooKeeper server has ended\n  command: {}\n  log:\n{}",
                                at(i).process->command_line(), at(i).process->log_tail()));
            }
        }
        if (!reached_it) {
            throw LabError(
                fmt::format("ZooKeeper server {} does not serve\n  command: {}\n  log:\n{}", silent,
                            process(silent).command_line(), process(silent).log_tail()));
        }
    }

    void restart(std::size_t i, Data data) {
        auto& m = at(i);
        if (m.process) {
            m.process->kill();
        }
        m.process.reset();
        if (data == Data::fresh) {
            std::filesystem::remove_all(m.directory / "data");
        }
        launch(i);
    }

private:
    bool starting(std::size_t i) const { return i >= started_.size() || !started_[i]; }
    void at_started(std::size_t i) {
        started_.resize(size());
        started_[i] = true;
    }

    void launch(std::size_t i) {
        started_.resize(size());
        started_[i] = false;
        auto& m = at(i);
        std::filesystem::create_directories(m.directory / "data");
        detail::write_text(m.directory / "zoo.cfg", configuration(i));
        if (size() > 1) {
            detail::write_text(m.directory / "data" / "myid", std::to_string(i + 1) + "\n");
        }
        ProcessOptions process;
        if (!options_.launchers.empty()) {
            process.argv = options_.launchers.at(i);
        }
        for (const char* word :
             {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx192m", "-XX:-UsePerfData",
              "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
              "-Dorg.slf4j.simpleLogger.showDateTime=true",
              // An election that missed a word asks again soon, not after up to a minute.
              "-Dzookeeper.fastleader.maxNotificationInterval=400"}) {
            process.argv.emplace_back(word);
        }
        process.argv.insert(process.argv.end(), options_.java.begin(), options_.java.end());
        process.argv.insert(process.argv.end(),
                            {"-cp", std::string(jar) + ":" + logger,
                             "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                             (m.directory / "zoo.cfg").string()});
        process.package = "default-jre-headless";
        process.log = m.directory / "log";
        process.directory = m.directory.path();
        process.cpus = options_.cpus;
        m.process.emplace(std::move(process));
    }

    std::string configuration(std::size_t i) const {
        const auto& m = at(i);
        std::string text = fmt::format(
            "tickTime={}\ninitLimit=300\nsyncLimit={}\ndataDir={}\nclientPort={}\n"
            "clientPortAddress={}\nmaxSessionTimeout=3600000\nmaxClientCnxns=0\n"
            "admin.enableServer=false\n4lw.commands.whitelist=*\nsnapshot.trust.empty=true\n"
            "standaloneEnabled=true\npreAllocSize=1024\n",
            options_.tick.count(), options_.sync_limit, (m.directory / "data").string(),
            m.client.number(), host(i));
        if (size() > 1) {
            for (std::size_t k = 0; k < size(); ++k) {
                text += fmt::format("server.{}={}:{}:{}\n", k + 1, host(k), at(k).quorum.number(),
                                    at(k).election.number());
            }
        }
        for (const auto& line : options_.config) {
            text += line + "\n";
        }
        return text;
    }

    const ZooKeeperOptions options_;
    std::vector<std::unique_ptr<Member>> members_;
    std::vector<bool> started_;
};

ZooKeeperServers ZooKeeperServers::start(ZooKeeperOptions options) {
    return ZooKeeperServers(std::make_unique<Impl>(std::move(options)));
}

ZooKeeperServers::ZooKeeperServers(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ZooKeeperServers::ZooKeeperServers(ZooKeeperServers&&) noexcept = default;
ZooKeeperServers& ZooKeeperServers::operator=(ZooKeeperServers&&) noexcept = default;
ZooKeeperServers::~ZooKeeperServers() = default;

std::size_t ZooKeeperServers::size() const noexcept {
    return impl_->size();
}

std::string ZooKeeperServers::connect_string() const {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host(i), port(i));
    }
    return text;
}

std::string ZooKeeperServers::url() const {
    return "zookeeper://" + connect_string();
}
std::string ZooKeeperServers::url(std::size_t server) const {
    return fmt::format("zookeeper://{}:{}", host(server), port(server));
}
std::string ZooKeeperServers::host(std::size_t server) const {
    return impl_->host(server);
}
std::uint16_t ZooKeeperServers::port(std::size_t server) const {
    return impl_->at(server).client.number();
}
std::filesystem::path ZooKeeperServers::data_directory(std::size_t server) const {
    return impl_->at(server).directory / "data";
}
Process& ZooKeeperServers::process(std::size_t server) {
    return impl_->process(server);
}
bool ZooKeeperServers::alive(std::size_t server) {
    return impl_->process(server).alive();
}
void ZooKeeperServers::pause(std::size_t server) {
    impl_->process(server).pause();
}
void ZooKeeperServers::resume(std::size_t server) {
    impl_->process(server).resume();
}
void ZooKeeperServers::kill(std::size_t server) {
    impl_->process(server).kill();
}
void ZooKeeperServers::restart(std::size_t server, Data data) {
    impl_->restart(server, data);
}

void ZooKeeperServers::restart_all(Data data) {
    for (std::size_t i = 0; i < size(); ++i) {
        impl_->process(i).kill();
    }
    for (std::size_t i = 0; i < size(); ++i) {
        impl_->restart(i, data);
    }
    wait_ready();
}

std::optional<std::size_t> ZooKeeperServers::leader() const {
    for (std::size_t i = 0; i < size(); ++i) {
        const auto mode = impl_->mode(i);
        if (mode == "leader" || mode == "standalone") {
            return i;
        }
    }
    return std::nullopt;
}

std::size_t ZooKeeperServers::kill_leader() {
    std::optional<std::size_t> found;
    if (!reached([&] { return (found = leader()).has_value(); }, default_cap)) {
        throw LabError("no ZooKeeper server leads");
    }
    kill(*found);
    return *found;
}

void ZooKeeperServers::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}

std::string ZooKeeperServers::ask(std::size_t server, const std::string& word,
                                  std::chrono::nanoseconds cap) const {
    return impl_->ask(server, word, cap);
}

ZooKeeperServers::Packets ZooKeeperServers::packets(std::size_t server) const {
    const auto text = ask(server, "srvr");
    const auto number = [&](const char* key) -> std::uint64_t {
        const auto word = line_after(text, key);
        return word.empty() ? 0 : std::stoull(word);
    };
    return {number("Received: "), number("Sent: ")};
}

}  // namespace holdfast::lab
