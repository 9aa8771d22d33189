// Five Redis servers for Redlock, with clocks that can be moved, and clients that reach only some.
#pragma once
#include <array>
#include <holdfast/lab/proxy.hpp>
#include <holdfast/lab/wall_clock.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

class Five {
public:
    static constexpr std::size_t count = 5;

    /// `keep`: each node keeps every write. Errors: SelfCheck, LabError.
    Five(const std::filesystem::path& folder, bool keep);

    lab::RedisServer& operator[](std::size_t i) { return nodes_[i]; }
    lab::WallClock& clock(std::size_t i) { return *clocks_[i]; }

    /// For clients that reach all of them; `query` without its question mark.
    Deployment whole(const std::string& query) const;
    /// For clients that some nodes refuse, those whose bit is false.
    Deployment partial(const std::string& query, std::array<bool, count> reached);
    /// At how many nodes the key is now.
    std::size_t holding(const std::string& name);
    /// Restarts all of them, empty, and makes them look an hour old: nodes that have only just
    /// started would not vote.
    void start_old();

private:
    std::vector<std::unique_ptr<lab::WallClock>> clocks_;
    std::vector<lab::RedisServer> nodes_;
    std::vector<lab::Proxy> proxies_;
};

}  // namespace holdfast::bench
