#include "shared.hpp"

namespace holdfast::postgresql {

spi::Failure Origin::judge(const std::string& cluster, std::optional<std::uint32_t> timeline) {
    const std::lock_guard hold(mutex_);
    if (!cluster.empty() && !cluster_.empty() && cluster != cluster_)
        return {make(Error::other_cluster),
                "its system identifier is " + cluster + ", that of the one before it " + cluster_ +
                    ": name the hosts of one cluster; if the database has been moved to a new one, "
                    "restart this program"};
    // Each promotion begins a higher one. Two that were promoted apart may have the same.
    if (timeline && *timeline < timeline_)
        return {
            make(Error::old_primary),
            "its timeline is " + std::to_string(*timeline) + ", and the primary's was " +
                std::to_string(timeline_) +
                ": stop it, or make it a standby; if it is the right one, restart this program"};
    if (timeline) timeline_ = *timeline;
    if (!cluster.empty()) cluster_ = cluster;
    return {};
}

}  // namespace holdfast::postgresql
