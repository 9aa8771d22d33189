// Stats as text for Prometheus and other readers of its formats.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/export.hpp"
#include "holdfast/stats.hpp"

namespace holdfast {

/// Names and values, the same for all metrics of one client.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// One client's Stats, and the labels that tell them apart from those of other clients.
struct LabelledStats {
    MetricLabels labels;
    Stats stats;
};

/// OpenMetrics 1.0 text, to be served as `application/openmetrics-text; version=1.0.0`. Readers of
/// Prometheus' older text format 0.0.4, such as node_exporter's textfile collector, accept it too,
/// but see counters of unknown type.
///
/// Times are in seconds. No label has the name of a lock, so the number of series is constant.
/// Label values may be any text; bytes that are not UTF-8 become U+FFFD. Throws
/// std::invalid_argument for an invalid label name (letters, digits and `_`, beginning with neither
/// a digit nor `__`), for one that is used twice or is `le` or `reason`, which Holdfast sets, and
/// for two clients with the same labels. Thread-safe.
[[nodiscard]] HOLDFAST_EXPORT std::string prometheus_text(const Stats&, const MetricLabels& = {});

/// Several clients in one text.
[[nodiscard]] HOLDFAST_EXPORT std::string prometheus_text(std::span<const LabelledStats>);

}  // namespace holdfast
