#include "zookeeper_order.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace holdfast::sim {
namespace {

/// "hf1 TTL OWNER", and words.
std::string owner_in(std::string_view data) {
    for (int before = 2; before > 0; --before)
        data = data.find(' ') == data.npos ? "" : data.substr(data.find(' ') + 1);
    return std::string(data.substr(0, data.find(' ')));
}

long number_of(const std::string& path) {
    return path.size() < 10 ? 0 : std::strtol(path.c_str() + path.size() - 10, nullptr, 10);
}

}  // namespace

ZkOrder::ZkOrder(ZkEnsemble& servers) : servers_(servers) {
    // A holder of permits has left that line. A request that comes late may make a second turn.
    servers.decided = [this](const ZkChange& c) {
        if (c.kind == ZkChange::Kind::create && c.path.find("/locks/_c_") != c.path.npos)
            turns_.try_emplace(owner_in(c.data), servers_.committed().find(c.path)->czxid);
    };
}

ZkOrder::Places ZkOrder::places_in(const std::string& folder) const {
    Places out;
    const auto& all = servers_.committed().nodes;
    for (auto at = all.lower_bound(folder); at != all.end() && at->first.starts_with(folder);
         ++at) {
        const auto& [path, node] = *at;
        if (node.session == 0 || path.find('/', folder.size()) != path.npos) continue;
        const bool reads =
            path.find("__READ__") != path.npos || node.data.find(" shared") != node.data.npos;
        out[number_of(path)] = {owner_in(node.data), node.czxid, reads};
    }
    return out;
}

bool ZkOrder::passed(const Lease& lease, const std::string& owner, const std::string& line,
                     const LockOptions& o) const {
    if (o.kind == Kind::semaphore) return passed_for_permits(owner, line, o.limit);
    for (const auto& [number, place] : places_in(line)) {
        if (place.owner == owner) return false;
        if (lease.mode() != Mode::shared || !place.reads) return true;
    }
    return false;
}

bool ZkOrder::passed_for_permits(const std::string& owner, const std::string& line,
                                 std::size_t limit) const {
    std::map<std::string, std::size_t> held, in;  // of each owner: all nodes, and those that hold
    std::size_t rank = 0;
    for (const auto& [number, place] : places_in(line + "leases/")) {
        ++held[place.owner];
        if (rank++ < limit) ++in[place.owner];
    }
    if (in[owner] < held[owner]) return true;
    const auto turn = turns_.find(owner);
    if (turn == turns_.end()) return false;
    for (const auto& [number, place] : places_in(line + "locks/"))
        if (place.made < turn->second && place.owner != owner &&
            (held[place.owner] == 0 || in[place.owner] < held[place.owner]))
            return true;
    return false;
}

}  // namespace holdfast::sim
