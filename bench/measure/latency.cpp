#include "measure/latency.hpp"

namespace holdfast::bench {

double Latency::quantile_us(double q) const {
    if (count_ == 0) return 0;
    const double wanted = q * static_cast<double>(count_);
    double below = 0;
    for (auto&& bin : boost::histogram::indexed(histogram_, boost::histogram::coverage::all)) {
        const double here = static_cast<double>(*bin);
        if (here > 0 && below + here >= wanted) {
            const double low = std::max(bin.bin().lower(), 0.0);
            const double high = std::min(bin.bin().upper(), largest_);
            return std::min(low + (high - low) * (wanted - below) / here, largest_);
        }
        below += here;
    }
    return largest_;
}

Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    return {median, values.front(), values.back()};
}

double jain_index(const std::vector<double>& shares) {
    double sum = 0, squares = 0;
    for (const double x : shares) {
        sum += x;
        squares += x * x;
    }
    return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

double inversions(const std::vector<std::size_t>& order) {
    if (order.size() < 2) return 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t j = i + 1; j < order.size(); ++j)
            if (order[i] > order[j]) ++wrong;
    const double pairs = static_cast<double>(order.size() * (order.size() - 1)) / 2;
    return static_cast<double>(wrong) / pairs;
}

}  // namespace holdfast::bench
