// A plan of faults over time. Drawn from a seed it explores what nobody thought of; printed, it can
// be played again and cut down by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/lab/fault.hpp"

namespace holdfast::lab {

/// One fault and when it is installed. Exactly one of the two is set.
struct Step {
    std::optional<std::chrono::milliseconds> at;  ///< counted from the start of the script
    std::optional<std::uint64_t> connection;      ///< on accepting this one since then, from 1
    Fault fault;

    friend bool operator==(const Step&, const Step&) = default;
};

/// Bounds of a random plan.
struct ScriptBounds {
    std::chrono::milliseconds duration{5000};  ///< of the whole plan; its last step is a heal
    unsigned faults = 8;                       ///< each is healed before the next
    std::chrono::milliseconds longest{400};    ///< that one fault lasts
    std::uint64_t bytes = 400;                 ///< at most, before a cut or swallow acts
};

/// A list of steps. Installing a fault does not take back the earlier ones; heal does.
struct Script {
    std::vector<Step> steps;
    std::optional<std::uint64_t> seed;  ///< where it was drawn from, for the text form

    /// The plan that belongs to `seed`: the same on every machine.
    [[nodiscard]] static Script from_seed(std::uint64_t seed, const ScriptBounds& bounds = {});

    /// Reads the text form: a step a line, as `at MS: FAULT` or `connection N: FAULT`; blank lines
    /// and lines that begin with # are passed over. Errors: LabError with the line's number.
    [[nodiscard]] static Script parse(std::string_view text);
};

/// The text form; parse() reads it back.
[[nodiscard]] std::string to_string(const Script& script);

}  // namespace holdfast::lab
