// Java is slow to start and slow to warm up; what can be spared is spared: no C2 compiler, one
// collector thread, no web server, and all servers of an ensemble start at once.
#include "holdfast/lab/zookeeper_server.hpp"

#include <fmt/format.h>

#include <utility>

#include "exchange.hpp"
#include "holdfast/lab/error.hpp"
#include "server_group.hpp"
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

class ZooKeeperServers::Impl final : public ServerGroup::Impl {
public:
    explicit Impl(ZooKeeperOptions options)
        : ServerGroup::Impl({"ZooKeeper server", "default-jre-headless"}, options),
          options_(std::move(options)) {
        if (!std::filesystem::exists(jar)) {
            throw LabError(
                fmt::format("{} is missing (Debian: apt install libzookeeper-java)", jar));
        }
        start();
    }

    const char* scheme() const noexcept override { return "zookeeper"; }
    std::string ask(std::size_t i, const std::string& word, std::chrono::nanoseconds cap) const {
        return detail::exchange(host(i), port(i), word, cap);
    }
    std::string mode(std::size_t i) const {
        return line_after(ask(i, "srvr", std::chrono::seconds(1)), "Mode: ");
    }

    std::optional<std::size_t> leader() const override {
        for (std::size_t i = 0; i < size(); ++i) {
            const auto now = mode(i);
            if (now == "leader" || now == "standalone") {
                return i;
            }
        }
        return std::nullopt;
    }

private:
    bool serves(std::size_t i) const override { return !mode(i).empty(); }
    /// All that run follow one leader. What one of them says of itself may be old: after a pause it
    /// has yet to notice that the others have left it.
    bool agree() const override {
        if (size() == 1) return true;  // and its settings may refuse mntr
        std::size_t running = 0, leaders = 0, followers = 0;
        for (std::size_t i = 0; i < size(); ++i) {
            if (auto& process = at(i).process; !process || !process->alive()) continue;
            ++running;
            const auto facts = ask(i, "mntr", std::chrono::seconds(1));
            if (line_after(facts, "zk_server_state\t") != "leader") continue;
            ++leaders;
            const auto synced = line_after(facts, "zk_synced_followers\t");
            followers += synced.empty() ? 0 : std::stoull(synced);
        }
        return leaders == 1 && followers + 1 == running;
    }

    std::vector<std::string> command(std::size_t i) override {
        const auto& directory = at(i).directory;
        std::filesystem::create_directories(directory / "data");
        detail::write_text(directory / "zoo.cfg", configuration(i));
        if (size() > 1) {
            detail::write_text(directory / "data" / "myid", std::to_string(i + 1) + "\n");
        }
        std::vector<std::string> argv;
        for (const char* word :
             {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx192m", "-XX:-UsePerfData",
              "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
              "-Dorg.slf4j.simpleLogger.showDateTime=true",
              // An election that missed a word asks again soon, not after up to a minute.
              "-Dzookeeper.fastleader.maxNotificationInterval=400"}) {
            argv.emplace_back(word);
        }
        argv.insert(argv.end(), options_.java.begin(), options_.java.end());
        argv.insert(argv.end(), {"-cp", std::string(jar) + ":" + logger,
                                 "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                 (directory / "zoo.cfg").string()});
        return argv;
    }

    std::string configuration(std::size_t i) const {
        std::string text = fmt::format(
            "tickTime={}\ninitLimit=300\nsyncLimit={}\ndataDir={}\nclientPort={}\n"
            "clientPortAddress={}\nmaxSessionTimeout=3600000\nmaxClientCnxns=0\n"
            "admin.enableServer=false\n4lw.commands.whitelist=*\nsnapshot.trust.empty=true\n"
            "standaloneEnabled=true\npreAllocSize=1024\n",
            options_.tick.count(), options_.sync_limit, (at(i).directory / "data").string(),
            port(i), host(i));
        if (size() > 1) {
            for (std::size_t k = 0; k < size(); ++k) {
                text += fmt::format("server.{}={}:{}:{}\n", k + 1, host(k), at(k).peer.number(),
                                    at(k).third.number());
            }
        }
        for (const auto& line : options_.config) {
            text += line + "\n";
        }
        return text;
    }

    const ZooKeeperOptions options_;
};

ZooKeeperServers ZooKeeperServers::start(ZooKeeperOptions options) {
    return ZooKeeperServers(std::make_unique<Impl>(std::move(options)));
}

ZooKeeperServers::ZooKeeperServers(std::unique_ptr<Impl> impl) noexcept
    : ServerGroup(std::move(impl)) {}
ZooKeeperServers::Impl& ZooKeeperServers::impl() const noexcept {
    return static_cast<Impl&>(*impl_);
}

std::string ZooKeeperServers::ask(std::size_t server, const std::string& word,
                                  std::chrono::nanoseconds cap) const {
    return impl().ask(server, word, cap);
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
