// The nodes of a ZooKeeper server: what its transactions do to them. No network, no clock and no
// sessions: whoever has them says whose node it is, and when. After "ZooKeeper Programmer's Guide".
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

enum class ZkError : std::int32_t {
    ok = 0,
    unimplemented = -6,
    no_node = -101,
    bad_version = -103,
    no_children_for_ephemerals = -108,
    node_exists = -110,
    not_empty = -111,
    no_watcher = -121
};

struct ZkNode {
    std::string data;
    std::int64_t czxid = 0, mzxid = 0, pzxid = 0, session = 0;
    std::int32_t version = 0;
    std::int32_t creates = 0;  ///< of children, ever: numbers the next sequential one
    bool container = false;
    std::set<std::string> children;  ///< names
    /// As clients see it: creations and deletions.
    std::int32_t cversion() const noexcept {
        return 2 * creates - static_cast<std::int32_t>(children.size());
    }
};

/// What becomes of one node. Its path is final: a sequential one has its number.
struct ZkChange {
    enum class Kind : std::uint8_t { create, remove, set } kind;
    std::string path, data = {};
    std::int64_t session = 0;  ///< of an ephemeral one
    bool container = false;
};

class ZkTree {
public:
    ZkTree();
    /// Errors: what a server answers; `change` is then not to be made.
    ZkError check(const ZkChange& change, std::int32_t version, bool sequential,
                  ZkChange& final) const;
    void make(const ZkChange&, std::int64_t zxid);
    const ZkNode* find(std::string_view path) const;
    std::vector<std::string> nodes_of(std::int64_t session) const;
    static std::string parent_of(const std::string& path);

    std::map<std::string, ZkNode, std::less<>> nodes;
};

}  // namespace holdfast::sim
