// robust=true: what became of the last holder, kept in a node that outlives the lock's own.
#pragma once
#include <optional>
#include <string>

#include "queue_node.hpp"
#include "shared.hpp"

namespace holdfast::zookeeper {

std::string marks_base(const Options&);
std::string mark_path(const Options&, const std::string& name);

/// What the mark is to say once this place is left; nothing: it is to be deleted, which says that
/// the release was clean. A place that core never learned of hands on what it had found.
std::optional<std::string> mark_left_by(const QueueNode&);

}  // namespace holdfast::zookeeper
