// Durations on the command line, read and written.
#include "duration.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace holdfast::cli {
namespace {

constexpr double year_ms = 365.0 * 24 * 3600 * 1000;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Takes "12" or "0.5" off the front.
std::optional<double> take_number(std::string_view& text) {
    std::size_t n = 0, dots = 0, digits = 0;
    for (; n < text.size() && (is_digit(text[n]) || text[n] == '.'); ++n)
        text[n] == '.' ? ++dots : ++digits;
    if (digits == 0 || dots > 1 || n > 18) return {};
    double value = 0, scale = 1;
    bool fraction = false;
    for (const char c : text.substr(0, n)) {
        if (c == '.') {
            fraction = true;
            continue;
        }
        value = value * 10 + (c - '0');
        if (fraction) scale *= 10;
    }
    text.remove_prefix(n);
    return value / scale;
}

std::optional<double> take_unit(std::string_view& text) {
    std::size_t n = 0;
    while (n < text.size() && !is_digit(text[n]) && text[n] != '.')
        ++n;
    const std::string_view unit = text.substr(0, n);
    text.remove_prefix(n);
    if (unit == "ms") return 1;
    if (unit == "s") return 1000;
    if (unit == "m" || unit == "min") return 60'000;
    if (unit == "h") return 3'600'000;
    if (unit == "d") return 86'400'000;
    return {};
}

}  // namespace

std::optional<milliseconds> parse_wait(std::string_view text) {
    if (text.empty()) return {};
    double total = 0;
    bool bare = false, first = true;
    while (!text.empty()) {
        const auto number = take_number(text);
        if (!number || bare) return {};
        if (text.empty()) {
            if (!first) return {};  // "1m30" is a guess
            bare = true;
            total += *number * 1000;
            break;
        }
        const auto unit = take_unit(text);
        if (!unit) return {};
        total += *number * *unit;
        first = false;
    }
    if (!(total <= year_ms)) return {};
    return milliseconds(static_cast<long long>(std::ceil(total - 1e-6)));
}

std::string spoken(milliseconds d) {
    const long long ms = d.count() < 0 ? 0 : d.count();
    if (ms < 1000) return fmt::format("{} ms", ms);
    if (ms < 10'000) return fmt::format("{}.{} s", ms / 1000, ms % 1000 / 100);
    const long long s = (ms + 500) / 1000;
    if (s < 60) return fmt::format("{} s", s);
    if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
    return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
}

}  // namespace holdfast::cli
