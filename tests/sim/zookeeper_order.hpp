// In which order ZooKeeper's lines let in who stands in them: nobody holds beside a node that came
// before its own and that it has to wait for. Written after backends/zookeeper/README.md.
#pragma once
#include <map>
#include <string>

#include "holdfast/lease.hpp"
#include "holdfast/options.hpp"
#include "zookeeper.hpp"

namespace holdfast::sim {

class ZkOrder {
public:
    explicit ZkOrder(ZkEnsemble& servers);
    /// Whether this holder stands behind somebody whom it has to wait for. `line` ends with '/'.
    bool passed(const Lease&, const std::string& owner, const std::string& line,
                const LockOptions&) const;

private:
    struct Place {
        std::string owner;
        std::int64_t made = 0;  ///< by which transaction
        bool reads = false;
    };
    using Places = std::map<long, Place>;  ///< by their numbers
    Places places_in(const std::string& folder) const;
    bool passed_for_permits(const std::string& owner, const std::string& line,
                            std::size_t limit) const;

    const ZkEnsemble& servers_;
    std::map<std::string, std::int64_t> turns_;  ///< of owners: when they came for permits
};

}  // namespace holdfast::sim
