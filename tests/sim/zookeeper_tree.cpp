#include "zookeeper_tree.hpp"

#include <array>
#include <cstdio>

namespace holdfast::sim {

ZkTree::ZkTree() {
    for (const char* path : {"/", "/zookeeper", "/zookeeper/config"})
        nodes[path];
    nodes["/"].children = {"zookeeper"};
    nodes["/"].creates = 1;
    nodes["/zookeeper"].children = {"config"};
}

std::string ZkTree::parent_of(const std::string& path) {
    const auto end = path.rfind('/');
    return end == 0 ? "/" : path.substr(0, end);
}

const ZkNode* ZkTree::find(std::string_view path) const {
    const auto at = nodes.find(path);
    return at == nodes.end() ? nullptr : &at->second;
}

ZkError ZkTree::check(const ZkChange& asked, std::int32_t version, bool sequential,
                      ZkChange& final) const {
    final = asked;
    if (asked.kind == ZkChange::Kind::create) {
        const ZkNode* parent = find(parent_of(asked.path));
        if (parent == nullptr) return ZkError::no_node;
        if (sequential) {
            std::array<char, 16> number{};
            std::snprintf(number.data(), number.size(), "%010d", parent->creates);
            final.path += number.data();
        }
        if (find(final.path) != nullptr) return ZkError::node_exists;
        if (parent->session != 0) return ZkError::no_children_for_ephemerals;
        return ZkError::ok;
    }
    const ZkNode* node = find(asked.path);
    if (node == nullptr) return ZkError::no_node;
    if (version != -1 && version != node->version) return ZkError::bad_version;
    if (asked.kind == ZkChange::Kind::remove && !node->children.empty()) return ZkError::not_empty;
    return ZkError::ok;
}

void ZkTree::make(const ZkChange& c, std::int64_t zxid) {
    if (c.kind == ZkChange::Kind::set) {
        ZkNode& node = nodes.at(c.path);
        node.data = c.data;
        node.mzxid = zxid;
        ++node.version;
        return;
    }
    ZkNode& parent = nodes.at(parent_of(c.path));
    const std::string name = c.path.substr(c.path.rfind('/') + 1);
    parent.pzxid = zxid;
    if (c.kind == ZkChange::Kind::remove) {
        parent.children.erase(name);
        nodes.erase(c.path);
        return;
    }
    ++parent.creates;
    parent.children.insert(name);
    ZkNode node;
    node.data = c.data;
    node.czxid = node.mzxid = node.pzxid = zxid;
    node.session = c.session;
    node.container = c.container;
    nodes[c.path] = std::move(node);
}

std::vector<std::string> ZkTree::nodes_of(std::int64_t session) const {
    std::vector<std::string> out;
    for (const auto& [path, node] : nodes)
        if (node.session == session && session != 0) out.push_back(path);
    return out;
}

}  // namespace holdfast::sim
