// Durations as people write them, such as "1m30s", and back.
#include <array>
#include <cstdint>

#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t ms;
};
constexpr std::array<Unit, 4> units{{{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::int64_t most = std::int64_t{3'600'000} * 24 * 365 * 100;  // far from any overflow

bool digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes a number and its unit from the front of `rest`; the unit must be a smaller one than
// `first_unit` allows, so that "30s1m" and "1s1s" are refused.
bool take(std::string_view& rest, std::size_t& first_unit, std::int64_t& total) {
    std::int64_t whole = 0, fraction = 0, scale = 1;
    std::size_t n = 0;
    for (; n < rest.size() && digit(rest[n]); ++n) {
        whole = whole * 10 + (rest[n] - '0');
        if (whole > most) return false;
    }
    if (n == 0) return false;
    if (n < rest.size() && rest[n] == '.') {
        const std::size_t point = n++;
        for (; n < rest.size() && digit(rest[n]); ++n) {
            if (n - point > 9) return false;
            fraction = fraction * 10 + (rest[n] - '0');
            scale *= 10;
        }
        if (n == point + 1) return false;
    }
    rest.remove_prefix(n);
    std::size_t letters = 0;
    while (letters < rest.size() && !digit(rest[letters]))
        ++letters;
    const std::string_view name = rest.substr(0, letters);
    for (std::size_t u = first_unit; u < units.size(); ++u) {
        if (units[u].name != name) continue;
        if (whole > most / units[u].ms || fraction * units[u].ms % scale != 0) return false;
        total += whole * units[u].ms + fraction * units[u].ms / scale;
        first_unit = u + 1;
        rest.remove_prefix(letters);
        return total <= most;
    }
    return false;
}

}  // namespace

result<milliseconds> parse_duration(std::string_view text) {
    std::int64_t total = 0;
    std::size_t first_unit = 0;
    if (text.empty()) return make_error_code(errc::bad_config);
    while (!text.empty())
        if (!take(text, first_unit, total)) return make_error_code(errc::bad_config);
    return milliseconds(total);
}

std::string format_duration(milliseconds duration) {
    if (duration == forever) return "forever";
    std::string text;
    std::uint64_t rest = static_cast<std::uint64_t>(duration.count());
    if (duration.count() < 0) {
        text = "-";
        rest = ~rest + 1;
    }
    if (rest == 0) return "0s";
    for (const Unit& unit : units) {
        const auto size = static_cast<std::uint64_t>(unit.ms);
        if (rest < size) continue;
        text += std::to_string(rest / size);
        text += unit.name;
        rest %= size;
    }
    return text;
}

}  // namespace holdfast::spi
