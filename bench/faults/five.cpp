#include "faults/five.hpp"

namespace holdfast::bench {

Five::Five(const std::filesystem::path& folder, bool keep) {
    for (std::size_t i = 0; i < count; ++i) {
        clocks_.push_back(
            std::make_unique<lab::WallClock>(folder / ("clock-" + std::to_string(i))));
        lab::RedisOptions options;
        options.append_only = keep;
        options.environment = clocks_.back()->environment();
        nodes_.push_back(lab::RedisServer::start(options));
        proxies_.emplace_back(nodes_.back().port());
    }
}

Deployment Five::whole(const std::string& query) const {
    std::string hosts;
    for (const auto& node : nodes_)
        hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(node.port());
    return {"redlock", "default", "redlock://" + hosts + "?node_set=five&" + query, {}, {}, {}};
}

Deployment Five::partial(const std::string& query, std::array<bool, count> reached) {
    std::string hosts;
    for (std::size_t i = 0; i < count; ++i) {
        proxies_[i].heal();
        if (!reached[i]) proxies_[i].refuse();
        hosts += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(proxies_[i].port());
    }
    return {"redlock", "default", "redlock://" + hosts + "?node_set=five&" + query, {}, {}, {}};
}

std::size_t Five::holding(const std::string& name) {
    std::size_t n = 0;
    for (auto& node : nodes_)
        n += node.alive() && node.cli({"EXISTS", name}).integer == 1 ? 1 : 0;
    return n;
}

void Five::start_old() {
    for (std::size_t i = 0; i < count; ++i) {
        clocks_[i]->set(std::chrono::hours(-1));
        nodes_[i].restart(lab::Data::fresh);
        clocks_[i]->set(milliseconds(0));
    }
}

}  // namespace holdfast::bench
