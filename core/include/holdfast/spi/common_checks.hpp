// Checks that several backends share: lines of text, the round trip, the server's clock, shared
// hosts.
#pragma once
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::spi {

/// Adds a fact for each line "key" + `between` + "value". Ignores other lines and comments ("#").
inline void note_lines(Facts& facts, std::string_view text, std::string_view between) {
    while (!text.empty()) {
        const auto end = text.find_first_of("\r\n");
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        const auto at = line.find(between);
        if (line.starts_with('#') || at == line.npos) continue;
        facts.set(std::string(line.substr(0, at)), std::string(line.substr(at + between.size())));
    }
}

/// Fact "refused": what this user may not do, empty if nothing.
inline std::optional<Judgement> judge_rights(const Facts& f) {
    if (!f.has("refused")) return {};
    const auto refused = f.text("refused");
    return refused.empty() ? sound() : slow("this user may not " + std::string(refused));
}
inline constexpr std::string_view rights_consequence = "what needs it is refused";

/// Fact "shared_host": a host that was noted before. Ignores this machine, where only trials run.
/// An IPv6 address may have brackets.
inline void note_host(Facts& facts, std::set<std::string>& seen, std::string host) {
    const bool brackets = host.starts_with('[') && host.ends_with(']');
    if (on_this_machine(brackets ? host.substr(1, host.size() - 2) : host)) return;
    if (!seen.insert(host).second) facts.set("shared_host", std::move(host));
}

/// Facts "round_trip_us" and "ttl_ms".
inline void note_round_trip(Facts& facts, boot_clock::duration took, milliseconds ttl) {
    using std::chrono::duration_cast;
    facts.set("round_trip_us", duration_cast<std::chrono::microseconds>(took).count());
    facts.set("ttl_ms", ttl.count());
}

/// Slow above a twentieth of the ttl: repeating a renewal twice then takes a good part of the time
/// that is left.
inline std::optional<Judgement> judge_round_trip(const Facts& f) {
    const auto took = f.number("round_trip_us"), ttl = f.number("ttl_ms");
    if (!took || !ttl) return {};
    const std::string words = "a request takes " + std::to_string(*took / 1000) +
                              " ms, with a ttl of " + std::to_string(*ttl) + " ms";
    return *took > *ttl * 1000 / 20 ? slow(words) : sound(words);
}
inline constexpr std::string_view round_trip_consequence =
    "a few lost packets cost the lease, and each acquisition waits for its round trips";
inline constexpr std::string_view round_trip_remedy = "raise the ttl, or use a server nearby";

/// Facts "clock_offset_ms", of the server against this machine, and "clock_doubt_ms". The server
/// read its clock between `before` and `after`, as microseconds since 1970.
inline void note_clock(Facts& facts, std::int64_t server_us,
                       std::chrono::system_clock::time_point before,
                       std::chrono::system_clock::time_point after) {
    using std::chrono::duration_cast;
    const auto half = (after - before) / 2;
    const auto server = bounded_time<std::chrono::microseconds>(server_us);
    facts.set("clock_offset_ms", duration_cast<milliseconds>(server - (before + half)).count());
    facts.set("clock_doubt_ms", duration_cast<milliseconds>(half).count() + 1);
}

/// Unsafe when the clocks differ by more than a second: one of them is wrong, and will be
/// corrected.
inline std::optional<Judgement> judge_clock(const Facts& f) {
    constexpr long long most = 1000;
    const auto offset = f.number("clock_offset_ms"), doubt = f.number("clock_doubt_ms");
    if (!offset || !doubt) return unknown("the server's clock could not be read");
    const std::string words =
        "its clock differs from this machine's by " + std::to_string(*offset) + " ms";
    return std::llabs(*offset) > most + *doubt ? unsafe(words) : sound(words);
}
inline constexpr std::string_view clock_consequence =
    "when the wrong one of the two is set by a jump, leases at a server can end too early, and a "
    "second client acquires the lock";
inline constexpr std::string_view clock_remedy =
    "synchronise both machines (chronyc tracking), and let the clock be slewed, not stepped";

}  // namespace holdfast::spi
