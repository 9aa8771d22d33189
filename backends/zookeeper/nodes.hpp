// How names become nodes, and what the names of nodes say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

/// The name of a lock as one path component. Everything but printable ASCII, and '/' and '%', is
/// percent-encoded, and so is the beginning of what the server or this backend keeps for itself.
std::string escape(std::string_view name, bool at_root);
/// Empty when it is not what escape() makes.
std::optional<std::string> unescape(std::string_view component);

/// Random, in the form in which Curator writes its own: 8-4-4-4-12 hexadecimal digits.
std::string make_guid();
/// "_c_<guid>-lock-", to which the server adds the sequence.
std::string node_prefix(std::string_view guid);

/// The sequence of a node that stands in line: Curator's and ours end in "lock-<n>", kazoo's in
/// "__lock__<n>". Nothing for foreign names. The number wraps from 2147483647 to -2147483648.
std::optional<std::int32_t> sequence_of(std::string_view node) noexcept;
/// No other node of the same line has, or will have, this number. At the end of 32 bits the server
/// gives the last ones again and again, for as long as the line's own node is there.
bool is_unique(std::int32_t sequence) noexcept;
/// True when the node was made by the acquisition with that guid.
bool made_by(std::string_view node, std::string_view guid) noexcept;

/// What is kept in a lock's node.
struct NodeData {
    std::string owner;
    long long ttl_ms = 0;
    bool revoked = false;
};
std::string write_data(const NodeData&);
/// Nothing when another library made it.
std::optional<NodeData> read_data(std::string_view);

}  // namespace holdfast::zookeeper
