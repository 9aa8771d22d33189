// Which cluster the hosts of a URL belong to, by what their answers say. Two clusters in one URL
// would grant each lock twice.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::etcd {

class Identity {
public:
    enum class Says : std::uint8_t {
        same,
        anew,  ///< the cluster of that host was made anew: what is known of it is void
        other  ///< that host belongs to another cluster than the one in use
    };
    explicit Identity(std::size_t hosts) : said_(hosts) {}

    /// What an answer of that host says; 0 says nothing.
    Says hear(std::size_t host, std::uint64_t cluster) {
        if (cluster == 0) return Says::same;
        if (current_ == 0) current_ = cluster;
        if (cluster == current_) {
            said_[host] = true;
            return Says::same;
        }
        // Only a host that has answered for the cluster can say that there is another one now.
        const bool former = std::find(former_.begin(), former_.end(), cluster) != former_.end();
        if (!said_[host] || former) return Says::other;
        former_.push_back(std::exchange(current_, cluster));
        said_.assign(said_.size(), false);
        said_[host] = true;
        return Says::anew;
    }

    /// Whether that host has answered for the cluster in use.
    bool heard(std::size_t host) const { return said_[host]; }

private:
    std::uint64_t current_ = 0;
    std::vector<std::uint64_t> former_;
    std::vector<bool> said_;  ///< by host: it has answered for the current one
};

}  // namespace holdfast::etcd
