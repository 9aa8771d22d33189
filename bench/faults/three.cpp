#include "faults/three.hpp"

#include <atomic>
#include <future>

#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

Three::Three(const Bench& bench) {
    std::vector<std::future<void>> started;
    if (bench.site.find("zookeeper") != nullptr)
        started.push_back(std::async(std::launch::async, [this] { start_zookeeper(); }));
    if (bench.site.find("etcd") != nullptr)
        started.push_back(std::async(std::launch::async, [this] {
            lab::EtcdOptions options = short_elections();
            options.count = count;
            etcd_ = lab::EtcdServers::start(options);
        }));
    for (auto& one : started)
        one.get();
    // New servers count tokens from the start, so their names are their own.
    static std::atomic<unsigned> started_so_far{0};
    const std::string prefix = "three-" + std::to_string(++started_so_far) + "/";
    const auto add = [&](const char* backend, const std::string& url) {
        deployments_.push_back({backend, "3 servers", url, {}, prefix, {}});
    };
    if (zookeeper_) add("zookeeper", zookeeper_->url() + "?tick_time=100ms");
    if (etcd_) add("etcd", etcd_->url());
}

void Three::start_zookeeper() {
    lab::ZooKeeperOptions options;
    options.count = count;
    for (std::size_t i = 0; i < count; ++i) {
        clocks_[i] = std::make_unique<lab::WallClock>(folder_.path() / std::to_string(i));
        options.hosts.emplace_back("127.0.0.1");
        std::vector<std::string> launcher{"env"};
        for (const auto& [name, value] : clocks_[i]->environment())
            launcher.push_back(name + "=" + value);
        options.launchers.push_back(std::move(launcher));
    }
    zookeeper_ = lab::ZooKeeperServers::start(options);
}

milliseconds Three::zookeeper_ahead() const {
    using namespace std::chrono;
    ZooKeeperSession session(zookeeper_->connect_string(), seconds(4));
    const auto made = session.create("/bench-clock-", ZooKeeperSession::Kind::sequential);
    if (!made.ok()) throw SelfCheck("no node for the leader's clock");
    const auto theirs = milliseconds(session.exists(made.path).created_ms);
    return theirs - duration_cast<milliseconds>(system_clock::now().time_since_epoch());
}

}  // namespace holdfast::bench
