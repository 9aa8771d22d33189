// Two runs side by side: what became slower, and whether by more than the rounds themselves differ.
#pragma once
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "report/report.hpp"

namespace holdfast::bench {

/// Which way a figure of cost is better; figures of safety have verdicts instead.
enum class Better : std::uint8_t { neither, lower, higher };
Better better(const Row&);

struct Change {
    enum class Finding : std::uint8_t {
        same,     ///< within the margin
        unclear,  ///< beyond the margin, but the rounds of both runs overlap
        slower,   ///< beyond the margin, and so is every round
        faster
    };
    Row before, after;
    double worse = 1;  ///< 1.2: a fifth slower, or a fifth less done
    Finding finding = Finding::same;
    bool foreign =
        false;  ///< not Holdfast: it shows what the machine did, and is not held against us
};

struct Comparison {
    std::vector<Change> changes;          ///< in the order of the first run
    std::vector<std::string> missing;     ///< figures of the first run that the second one lacks
    std::vector<std::string> verdicts;    ///< "C4: confirmed, now refuted"
    std::vector<std::string> conditions;  ///< "processor: A, now B"

    int slower() const;
};

/// `margin`: percent that a figure may be worse before it counts; three times that where a run had
/// one round only.
Comparison compare(const Report& before, const Report& after, double margin);

void print_comparison(std::FILE*, const Comparison&, double margin);

/// 3 when something of Holdfast's became slower, else 0.
int exit_code(const Comparison&);

}  // namespace holdfast::bench
