// Several contenders measured in interleaved rounds, so that whatever the machine does meanwhile
// happens to all of them, and ratios are taken within a round.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench.hpp"

namespace holdfast::bench {

struct Contender {
    std::string backend, variant;
    /// Does some cycles and returns how many; called again and again within a block.
    std::function<std::size_t()> work;
    /// Latencies that `work` measured by itself go here; null: each call of `work` is one sample.
    std::shared_ptr<Latency> own_latency = {};
    /// What has to be done before each block and costs it nothing; may be empty.
    std::function<void()> get_ready = {};
};

struct Measured {
    std::string backend, variant;
    std::vector<double> p50_us;  ///< one per round; with several cycles per call, time per cycle
    std::vector<double> rate;    ///< cycles per second, one per round
    Latency all;
    bool failed = false;
    bool none() const { return failed || rate.empty(); }
};

/// A row of what was measured, without its figure. `x` is the load.
Row row_of(const std::string& scenario, const Measured&, double x = 0);

/// Adds what `make` makes; when that throws, a failed row instead.
void add_contender(Bench&, const std::string& scenario, std::vector<Contender>&,
                   const std::string& backend, const std::string& variant,
                   const std::function<Contender()>& make);

struct RoundPlan {
    std::string scenario;
    int rounds = 5;
    double block_seconds = 0.1;  ///< of one contender in one round
    int least_calls = 10;        ///< however long they take
};

/// Runs the rounds in an order drawn anew each time. A contender that throws is left out from then
/// on and becomes a failed row.
std::vector<Measured> measure_rounds(Bench&, const RoundPlan&, std::vector<Contender>&);

const Measured* find(const std::vector<Measured>&, const std::string& backend,
                     const std::string& variant);

/// The ratios of `over` to `under`, round by round, of their p50 (or their rates inverted).
enum class Of : std::uint8_t { p50, rate };
std::vector<double> ratios(const Measured& over, const Measured& under, Of);

}  // namespace holdfast::bench
