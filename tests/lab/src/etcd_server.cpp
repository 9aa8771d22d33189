// The lab itself speaks to the JSON gateway, and without TLS whatever clients need: then each
// member listens for it on a port of its own.
#include "holdfast/lab/etcd_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "exchange.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "server_group.hpp"
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

class EtcdServers::Impl final : public ServerGroup::Impl {
public:
    explicit Impl(EtcdOptions options)
        : ServerGroup::Impl({"etcd member", "etcd-server"}, options), options_(std::move(options)) {
        if (options_.tls) {
            tls_ = make_tls_files(directory_.path());
        }
        start();
    }

    const TlsFiles& tls() const {
        if (!tls_) {
            throw LabError("these etcd servers were started without TLS");
        }
        return *tls_;
    }
    const char* scheme() const noexcept override { return tls_ ? "etcds" : "etcd"; }
    std::string client_url(std::size_t i) const {
        return fmt::format("{}://{}", tls_ ? "https" : "http", address(i));
    }

    std::string post(std::size_t i, const std::string& path, const std::string& body,
                     std::chrono::nanoseconds cap) const {
        // Of HTTP 1.0, in which an answer comes in one piece and the connection ends with it.
        const auto answer = detail::exchange(
            host(i), plain_port(i),
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

    /// The last one that became a leader of those that say they are.
    std::optional<std::size_t> leader() const override {
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

    void restart(std::size_t i, Data data) override {
        if (data == Data::fresh) {
            return start_anew(data);
        }
        ServerGroup::Impl::restart(i, data);
    }

private:
    /// For the lab, which speaks no TLS.
    std::uint16_t plain_port(std::size_t i) const { return tls_ ? at(i).third.number() : port(i); }
    std::string plain_url(std::size_t i) const {
        return fmt::format("http://{}:{}", host(i), plain_port(i));
    }
    std::string peer_url(std::size_t i) const {
        return fmt::format("http://{}:{}", host(i), at(i).peer.number());
    }
    bool serves(std::size_t i) const override {
        // A key that is never there.
        const auto answer = post(i, "kv/range", R"({"key":"AA=="})", std::chrono::seconds(1));
        // With authentication the lab has no user, and is refused once the member serves.
        return !EtcdServers::text_after(answer, "revision").empty() ||
               answer.find("user name is empty") != std::string::npos;
    }
    bool agree() const override { return true; }  // none serves without a leader

    std::vector<std::string> command(std::size_t i) override {
        std::string cluster;
        for (std::size_t k = 0; k < size(); ++k) {
            cluster += fmt::format("{}m{}={}", k == 0 ? "" : ",", k, peer_url(k));
        }
        std::vector<std::string> argv{"etcd"};
        const auto add = [&](const char* name, std::string value) {
            argv.emplace_back(name);
            argv.push_back(std::move(value));
        };
        add("--name", fmt::format("m{}", i));
        add("--data-dir", (at(i).directory / "data").string());
        add("--listen-client-urls", tls_ ? client_url(i) + "," + plain_url(i) : client_url(i));
        add("--advertise-client-urls", client_url(i));
        add("--listen-peer-urls", peer_url(i));
        add("--initial-advertise-peer-urls", peer_url(i));
        add("--initial-cluster", cluster);
        add("--initial-cluster-state", "new");
        // Another one for each cluster, so that none takes a member of the one before for its own.
        add("--initial-cluster-token", fmt::format("lab-{}-{}", at(0).peer.number(), generation()));
        add("--heartbeat-interval", std::to_string(options_.heartbeat.count()));
        add("--election-timeout", std::to_string(options_.election.count()));
        add("--logger", "zap");
        add("--log-level", "warn");
        if (tls_) {
            add("--cert-file", tls_->cert.string());
            add("--key-file", tls_->key.string());
            if (options_.client_certificates) {
                add("--trusted-ca-file", tls_->ca.string());
                argv.emplace_back("--client-cert-auth");
            }
        }
        argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
        return argv;
    }

    const EtcdOptions options_;
    TempDir directory_;
    std::optional<TlsFiles> tls_;
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

EtcdServers::EtcdServers(std::unique_ptr<Impl> impl) noexcept : ServerGroup(std::move(impl)) {}
EtcdServers::Impl& EtcdServers::impl() const noexcept {
    return static_cast<Impl&>(*impl_);
}

std::string EtcdServers::endpoints() const {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ",", impl().client_url(i));
    }
    return text;
}

std::filesystem::path EtcdServers::ca_file() const {
    return impl().tls().ca;
}
std::filesystem::path EtcdServers::cert_file() const {
    return impl().tls().cert;
}
std::filesystem::path EtcdServers::key_file() const {
    return impl().tls().key;
}

std::string EtcdServers::version() const {
    for (std::size_t i = 0; i < size(); ++i) {
        auto text = EtcdServers::text_after(impl().status(i), "version");
        if (!text.empty()) {
            return text;
        }
    }
    throw LabError("no etcd member says which version it is");
}

std::string EtcdServers::post(std::size_t member, const std::string& path, const std::string& body,
                              std::chrono::nanoseconds cap) const {
    return impl().post(member, path, body, cap);
}
std::string EtcdServers::ctl(const std::vector<std::string>& arguments,
                             std::chrono::nanoseconds cap) const {
    return impl().ctl(arguments, cap);
}
void EtcdServers::compact() const {
    const auto now = EtcdServers::text_after(post(0, "kv/range", R"({"key":"AA=="})"), "revision");
    post(0, "kv/compaction", fmt::format(R"({{"revision":"{}"}})", now));
}

std::size_t EtcdServers::erase(const std::string& prefix) const {
    return std::stoull(ctl({"del", "--prefix", prefix}));
}

}  // namespace holdfast::lab
