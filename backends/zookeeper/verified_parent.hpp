// What a session knows of a line's own node, the parent of all nodes in it.
#pragma once
#include <cstdint>
#include <optional>

namespace holdfast::zookeeper {

/// A node in line gets the number of nodes made below its parent before it, so numbers without a
/// gap mean that nobody came in between - while the parent is the same. A parent that is deleted
/// and made again begins at 0; the watch on it tells, before any answer about what was made
/// afterwards. docs/adr/0009-a-list-that-need-not-be-read.md
struct VerifiedParent {
    bool asked = false;      ///< the watch is asked for
    std::uint64_t life = 0;  ///< which stretch of being watched this is; 0: it is not watched
    std::optional<std::int64_t> clear;  ///< nodes of this life up to this sequence are gone
};

}  // namespace holdfast::zookeeper
