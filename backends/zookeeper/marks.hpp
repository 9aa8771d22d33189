// robust=true: how the last holder ended, kept in a node that outlives the lock's own.
#pragma once
#include <optional>
#include <string>

#include "queue_node.hpp"
#include "shared.hpp"

namespace holdfast::zookeeper {

std::string marks_base(const Options&);
std::string mark_path(const Options&, const std::string& name);
/// The folder of the last breaks.
std::string records_base(const Options&);

/// The mark's text while this place holds.
std::string mark_of(const QueueNode&);
/// The mark's text once this place is left; nullopt: delete it, which stands for a clean release. A
/// place that core never learned of passes on what it had found.
std::optional<std::string> mark_left_by(const QueueNode&);

}  // namespace holdfast::zookeeper
