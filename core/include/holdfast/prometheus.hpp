// Stats as text for Prometheus and what reads its formats.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/export.hpp"
#include "holdfast/stats.hpp"

namespace holdfast {

/// Name and value of each; they are the same for every metric of one client.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// One client's numbers, and what tells them apart from those of other clients in the same text.
struct LabelledStats {
    MetricLabels labels;
    Stats stats;
};

/// OpenMetrics 1.0 text, to be served as `application/openmetrics-text; version=1.0.0`. Readers of
/// Prometheus' older text format 0.0.4, among them node_exporter's textfile collector, accept it as
/// well; to them the counters are of unknown type.
///
/// Times are in seconds. No label has the name of a lock, so the number of series is constant.
/// Values of labels may be any text; bytes that are not UTF-8 become U+FFFD. Throws
/// std::invalid_argument for a label that has no valid name (letters, digits and `_`, neither a
/// digit nor `__` first), has one twice, or has `le` or `reason`, which Holdfast sets; and for two
/// clients with the same labels. Thread-safe.
[[nodiscard]] HOLDFAST_EXPORT std::string prometheus_text(const Stats&, const MetricLabels& = {});

/// Several clients in one text.
[[nodiscard]] HOLDFAST_EXPORT std::string prometheus_text(std::span<const LabelledStats>);

}  // namespace holdfast
