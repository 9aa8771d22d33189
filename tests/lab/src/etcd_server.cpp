// The lab itself speaks to the JSON gateway, and without TLS whatever clients need: then each
// member listens for it on a port of its own.
#include "holdfast/lab/etcd_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "exchange.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "spawn.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

std::uint64_t number_after(const std::string& json, const std::string& key) {
    const auto text = EtcdServers::text_after(json, key);
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

class EtcdServers::Impl {
public:
    explicit Impl(EtcdOptions options) : options_(std::move(options)) {
        if (options_.tls) {
            tls_ = make_tls_files(directory_.path());
        }
        make_members();
        for (int attempt = 1;; ++attempt) {
            launch_all();
            try {
                wait_ready(options_.cap);
                return;
            } catch (const LabError&) {
                bool taken = false;
                for (auto& m : members_) {
                    taken =
                        taken ||
                        detail::read_text(m->directory / "log").find("address already in use") !=
                            std::string::npos;
                    m->process.reset();
                }
                if (!taken || attempt == 5) {
                    throw;
                }
                make_members();
            }
        }
    }

    struct Member {
        TempDir directory;
        Port client = free_port(), peer = free_port();
        std::optional<Port> plain;  ///< for the lab, where clients must use TLS
        std::optional<Process> process;
        bool served = false;  ///< since it was started
    };

    Member& at(std::size_t i) {
        if (i >= members_.size()) {
            throw LabError(fmt::format("there is no etcd member {}", i));
        }
        return *members_[i];
    }
    const Member& at(std::size_t i) const { return const_cast<Impl*>(this)->at(i); }
    Process& process(std::size_t i) {
        auto& m = at(i);
        if (!m.process) {
            throw LabError("that etcd member could not be started again");
        }
        return *m.process;
    }
    std::size_t size() const { return members_.size(); }
    std::string host(std::size_t i) const {
        return options_.hosts.empty() ? "127.0.0.1" : options_.hosts.at(i);
    }
    const TlsFiles& tls() const {
        if (!tls_) {
            throw LabError("these etcd servers were started without TLS");
        }
        return *tls_;
    }
    std::string scheme() const { return tls_ ? "etcds" : "etcd"; }
    std::string client_url(std::size_t i) const {
        return fmt::format("{}://{}:{}", tls_ ? "https" : "http", host(i), at(i).client.number());
    }

    std::string post(std::size_t i, const std::string& path, const std::string& body,
                     std::chrono::nanoseconds cap) const {
        // Of HTTP 1.0, in which an answer comes in one piece and the connection ends with it.
        const auto answer = detail::exchange(
            host(i), plain_port(i).number(),
            fmt::format("POST /v3/{} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n"
                        "Content-Length: {}\r\n\r\n{}",
                        path, host(i), body.size(), body),
            cap);
        const auto end = answer.find("\r\n\r\n");
        return end == std::string::npos ? std::string() : answer.substr(end + 4);
    }
    std::string status(std::size_t i) const {
        return post(i, "maintenance/status", "{}", std::chrono::seconds(1));
    }

    std::string ctl(const std::vector<std::string>& arguments, std::chrono::nanoseconds cap) const {
        const auto program = detail::find_program("etcdctl");
        if (program.empty()) {
            throw LabError(
                "etcdctl is not installed: install the Debian package etcd-client (apt install "
                "etcd-client)");
        }
        std::string endpoints;
        for (std::size_t i = 0; i < size(); ++i) {
            endpoints += fmt::format("{}{}", i == 0 ? "" : ",", plain_url(i));
        }
        const TempDir directory;
        ProcessOptions options;
        // Its warnings, of a member that is dead for example, are no part of the output.
        options.argv = {"sh", "-c", "exec \"$0\" \"$@\" 2>errors", program};
        options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
        options.environment = {{"ETCDCTL_API", "3"}, {"ETCDCTL_ENDPOINTS", endpoints}};
        options.directory = directory.path();
        options.log = directory / "output";
        Process process(std::move(options));
        const auto ended = process.wait(cap);
        if (!ended || ended->by_signal || ended->code != 0) {
            throw LabError(fmt::format("this {}: etcdctl {}\n{}", ended ? "failed" : "did not end",
                                       fmt::join(arguments, " "),
                                       detail::read_text(directory / "errors")));
        }
        return detail::read_text(directory / "output");
    }

    void wait_ready(std::chrono::nanoseconds cap) {
        std::optional<std::size_t> ended, silent;
        const auto ready = [&] {
            for (std::size_t i = 0; i < size(); ++i) {
                auto& m = at(i);
                if (!m.process) {
                    continue;
                }
                if (!m.process->alive()) {
                    if (!m.served) {
                        ended = i;
                        return true;  // it has ended by itself
                    }
                    continue;
                }
                if (!serves(i)) {
                    silent = i;
                    return false;
                }
                m.served = true;
            }
            return true;
        };
        const bool reached_it = reached(ready, cap);
        const auto failed = ended ? ended : reached_it ? std::nullopt : silent;
        if (failed) {
            throw LabError(fmt::format("etcd member {} {}\n  command: {}\n  log:\n{}", *failed,
                                       ended ? "has ended" : "does not serve",
                                       process(*failed).command_line(),
                                       process(*failed).log_tail()));
        }
    }

    /// The last one that became a leader of those that say they are.
    std::optional<std::size_t> leader() const {
        std::optional<std::size_t> found;
        std::uint64_t last = 0;
        for (std::size_t i = 0; i < size(); ++i) {
            const auto text = status(i);
            const auto term = number_after(text, "raftTerm");
            const auto leader = EtcdServers::text_after(text, "leader");
            if (!leader.empty() && leader == EtcdServers::text_after(text, "member_id") &&
                term > last) {
                found = i;
                last = term;
            }
        }
        return found;
    }

    void restart(std::size_t i, Data data) {
        if (data == Data::fresh) {
            return start_anew(data);
        }
        end(i);
        launch(i);
    }
    void restart_all(Data data) {
        start_anew(data);
        wait_ready(options_.cap);
    }

private:
    void make_members() {
        members_.clear();
        for (std::size_t i = 0; i < options_.count; ++i) {
            members_.push_back(std::make_unique<Member>());
            if (tls_) {
                members_.back()->plain.emplace(free_port());
            }
        }
    }
    const Port& plain_port(std::size_t i) const {
        const auto& m = at(i);
        return m.plain ? *m.plain : m.client;
    }
    std::string plain_url(std::size_t i) const {
        return fmt::format("http://{}:{}", host(i), plain_port(i).number());
    }
    std::string peer_url(std::size_t i) const {
        return fmt::format("http://{}:{}", host(i), at(i).peer.number());
    }
    bool serves(std::size_t i) const {
        // A key that is never there.
        const auto answer = post(i, "kv/range", R"({"key":"AA=="})", std::chrono::seconds(1));
        // With authentication the lab has no user, and is refused once the member serves.
        return !EtcdServers::text_after(answer, "revision").empty() ||
               answer.find("user name is empty") != std::string::npos;
    }

    void end(std::size_t i) {
        auto& m = at(i);
        if (m.process) {
            m.process->kill();
        }
        m.process.reset();
    }
    void start_anew(Data data) {
        for (std::size_t i = 0; i < size(); ++i) {
            end(i);
        }
        if (data == Data::fresh) {
            ++clusters_;
            for (std::size_t i = 0; i < size(); ++i) {
                std::filesystem::remove_all(at(i).directory / "data");
            }
        }
        launch_all();
    }
    void launch_all() {
        for (std::size_t i = 0; i < size(); ++i) {
            launch(i);
        }
    }

    void launch(std::size_t i) {
        auto& m = at(i);
        m.served = false;
        std::string cluster;
        for (std::size_t k = 0; k < size(); ++k) {
            cluster += fmt::format("{}m{}={}", k == 0 ? "" : ",", k, peer_url(k));
        }
        ProcessOptions process;
        if (!options_.launchers.empty()) {
            process.argv = options_.launchers.at(i);
        }
        const auto add = [&](const char* name, std::string value) {
            process.argv.emplace_back(name);
            process.argv.push_back(std::move(value));
        };
        process.argv.emplace_back("etcd");
        add("--name", fmt::format("m{}", i));
        add("--data-dir", (m.directory / "data").string());
        add("--listen-client-urls", tls_ ? client_url(i) + "," + plain_url(i) : client_url(i));
        add("--advertise-client-urls", client_url(i));
        add("--listen-peer-urls", peer_url(i));
        add("--initial-advertise-peer-urls", peer_url(i));
        add("--initial-cluster", cluster);
        add("--initial-cluster-state", "new");
        // Another one for each cluster, so that none takes a member of the one before for its own.
        add("--initial-cluster-token", fmt::format("lab-{}-{}", at(0).peer.number(), clusters_));
        add("--heartbeat-interval", std::to_string(options_.heartbeat.count()));
        add("--election-timeout", std::to_string(options_.election.count()));
        add("--logger", "zap");
        add("--log-level", "warn");
        if (tls_) {
            add("--cert-file", tls_->cert.string());
            add("--key-file", tls_->key.string());
            if (options_.client_certificates) {
                add("--trusted-ca-file", tls_->ca.string());
                process.argv.emplace_back("--client-cert-auth");
            }
        }
        process.argv.insert(process.argv.end(), options_.arguments.begin(),
                            options_.arguments.end());
        process.package = "etcd-server";
        process.log = m.directory / "log";
        process.directory = m.directory.path();
        process.cpus = options_.cpus;
        m.process.emplace(std::move(process));
    }

    const EtcdOptions options_;
    TempDir directory_;
    std::optional<TlsFiles> tls_;
    std::vector<std::unique_ptr<Member>> members_;
    unsigned clusters_ = 0;
};

std::string EtcdServers::text_after(const std::string& answer, const std::string& key) {
    const auto mark = "\"" + key + "\":\"";
    const auto at = answer.find(mark);
    if (at == std::string::npos) {
        return {};
    }
    const auto begin = at + mark.size();
    return answer.substr(begin, answer.find('"', begin) - begin);
}

EtcdServers EtcdServers::start(EtcdOptions options) {
    return EtcdServers(std::make_unique<Impl>(std::move(options)));
}

EtcdServers::EtcdServers(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
EtcdServers::EtcdServers(EtcdServers&&) noexcept = default;
EtcdServers& EtcdServers::operator=(EtcdServers&&) noexcept = default;
EtcdServers::~EtcdServers() = default;

std::size_t EtcdServers::size() const noexcept {
    return impl_->size();
}

std::string EtcdServers::url() const {
    std::string text = impl_->scheme() + "://";
    for (std::size_t i = 0; i < size(); ++i) {
        text += fmt::format("{}{}:{}", i == 0 ? "" : ",", host(i), port(i));
    }
    return text;
}
std::string EtcdServers::url(std::size_t member) const {
    return fmt::format("{}://{}:{}", impl_->scheme(), host(member), port(member));
}

std::string EtcdServers::endpoints() const {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ",", impl_->client_url(i));
    }
    return text;
}

std::string EtcdServers::host(std::size_t member) const {
    return impl_->host(member);
}
std::uint16_t EtcdServers::port(std::size_t member) const {
    return impl_->at(member).client.number();
}
std::filesystem::path EtcdServers::ca_file() const {
    return impl_->tls().ca;
}
std::filesystem::path EtcdServers::cert_file() const {
    return impl_->tls().cert;
}
std::filesystem::path EtcdServers::key_file() const {
    return impl_->tls().key;
}
std::filesystem::path EtcdServers::data_directory(std::size_t member) const {
    return impl_->at(member).directory / "data";
}
Process& EtcdServers::process(std::size_t member) {
    return impl_->process(member);
}
bool EtcdServers::alive(std::size_t member) {
    return impl_->process(member).alive();
}
void EtcdServers::pause(std::size_t member) {
    impl_->process(member).pause();
}
void EtcdServers::resume(std::size_t member) {
    impl_->process(member).resume();
}
void EtcdServers::kill(std::size_t member) {
    impl_->process(member).kill();
}
void EtcdServers::restart(std::size_t member, Data data) {
    impl_->restart(member, data);
}
void EtcdServers::restart_all(Data data) {
    impl_->restart_all(data);
}
std::optional<std::size_t> EtcdServers::leader() const {
    return impl_->leader();
}

std::size_t EtcdServers::kill_leader() {
    std::optional<std::size_t> found;
    if (!reached([&] { return (found = leader()).has_value(); }, default_cap)) {
        throw LabError("no etcd member leads");
    }
    kill(*found);
    return *found;
}

void EtcdServers::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}

std::string EtcdServers::version() const {
    for (std::size_t i = 0; i < size(); ++i) {
        auto text = EtcdServers::text_after(impl_->status(i), "version");
        if (!text.empty()) {
            return text;
        }
    }
    throw LabError("no etcd member says which version it is");
}

std::string EtcdServers::post(std::size_t member, const std::string& path, const std::string& body,
                              std::chrono::nanoseconds cap) const {
    return impl_->post(member, path, body, cap);
}
std::string EtcdServers::ctl(const std::vector<std::string>& arguments,
                             std::chrono::nanoseconds cap) const {
    return impl_->ctl(arguments, cap);
}
void EtcdServers::compact() const {
    const auto now = EtcdServers::text_after(post(0, "kv/range", R"({"key":"AA=="})"), "revision");
    post(0, "kv/compaction", fmt::format(R"({{"revision":"{}"}})", now));
}

std::size_t EtcdServers::erase(const std::string& prefix) const {
    return std::stoull(ctl({"del", "--prefix", prefix}));
}

}  // namespace holdfast::lab
