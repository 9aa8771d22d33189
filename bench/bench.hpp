// What a scenario gets: the servers, the effort, and a place for its rows.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <holdfast/client.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/histories.hpp"
#include "measure/latency.hpp"
#include "measure/row.hpp"
#include "options.hpp"
#include "site.hpp"

namespace holdfast::bench {

/// A measurement that could not be made, or a floor that is none: a failed row, exit 1.
class SelfCheck : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Bench {
    const Options& options;
    Site& site;
    Rows& rows;
    std::mt19937_64 random;
    const std::atomic<bool>& stop;  ///< ^C: end soon, keep the rows so far
    Histories& histories;           ///< of everybody who uses locks under a scenario's eyes

    bool stopped() const { return stop.load(std::memory_order_relaxed); }

    /// Adds a row; `seed` is filled in.
    void add(Row row) {
        row.seed = options.seed;
        rows.push_back(std::move(row));
    }
    /// Adds a row with the spread over rounds.
    void add(Row row, const Spread& spread) {
        row.value = spread.median;
        row.min = spread.min;
        row.max = spread.max;
        add(std::move(row));
    }
    /// A single figure: its spread is itself.
    void add_value(Row row, double value) { add(std::move(row), Spread{value, value, value}); }

    /// A file for what one more process does with its locks on a deployment of Holdfast's.
    std::filesystem::path history(const Deployment& d, std::string_view who) const {
        return histories.file(d.backend, d.variant, Promise::holdfast, who);
    }

    /// Opens the deployment. Errors: SelfCheck with the words of the mistake.
    static Client open(const Deployment&, asio::any_io_executor executor = {});
    /// Makes a lock below the deployment's prefix. Errors: SelfCheck.
    static std::unique_ptr<Lock> lock(const Client&, const Deployment&, const std::string& name,
                                      const LockOptions& = {});
};

/// A row of this deployment, without its figure. `x` is the load.
Row row_of(const std::string& scenario, const Deployment&, double x = 0);

/// Throws SelfCheck when an operation that the measurement needs did not work.
void check(error_code ec, const std::string& what);

}  // namespace holdfast::bench
