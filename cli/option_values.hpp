// Values of options that are read strictly.
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace holdfast::cli {

/// A decimal number from `least` to `most`: no sign, no other base, no space. For
/// Option::transform.
CLI::Validator number(std::uint64_t least,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// One of these words. For Option::check.
CLI::Validator one_of(std::vector<std::string> words);

/// The words that one_of() gave this option; none without it.
std::vector<std::string> words_of(CLI::Option&);

}  // namespace holdfast::cli
