// What a session knows of a line's own node, the parent of all nodes in it.
#pragma once
#include <cstdint>
#include <optional>

namespace holdfast::zookeeper {

/// A node's number is the number of nodes made below its parent before it. While the parent is the
/// same, numbers without a gap mean that no node came in between. A parent that is deleted and made
/// again begins at 0; its watch reports that before any answer about later nodes.
/// docs/adr/0009-a-list-that-need-not-be-read.md
struct VerifiedParent {
    bool asked = false;      ///< the watch was requested
    std::uint64_t life = 0;  ///< counts the times that it is watched; 0: it is not watched
    std::optional<std::int64_t> clear;  ///< nodes of this life up to this sequence are gone
};

}  // namespace holdfast::zookeeper
