// A row is the bench's only product: tables, verdicts, JSON and the page are all made from rows, so
// that no figure can appear that was not measured.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

enum class Status : std::uint8_t {
    ok,
    failed,   ///< a server did not start, or a self-check failed: exit 1
    violated  ///< a guarantee of Holdfast did not hold: exit 2
};

/// One measured figure.
struct Row {
    std::string scenario;     ///< "C1"
    std::string backend;      ///< "redis"; for a comparison without Holdfast the server it ran on
    std::string variant;      ///< "default", "plain", "floor: plain pair", ...
    std::string metric;       ///< "p50", "requests per hand-off", ...
    double x = 0;             ///< the load: waiters, locks in flight; 0 where there is none
    double value = 0;         ///< a median where there were several rounds
    std::string unit;         ///< "us", "1/s", "x", ...
    std::uint64_t n = 0;      ///< samples behind the value
    double min = 0, max = 0;  ///< over the rounds; both equal to value for a single one
    std::uint64_t seed = 0;
    std::string note;
    Status status = Status::ok;
};

using Rows = std::vector<Row>;

/// Selects rows; an empty text matches everything.
struct Pick {
    std::string_view scenario = {}, backend = {}, variant = {}, metric = {};
    double x = -1;  ///< negative: any
};

bool matches(const Row&, const Pick&);
/// The first match; null when there is none.
const Row* find(const Rows&, const Pick&);
std::vector<const Row*> find_all(const Rows&, const Pick&);

std::string_view to_string(Status);

}  // namespace holdfast::bench
