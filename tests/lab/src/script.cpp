// The generator is written out here, since the standard distributions differ between libraries and
// a seed in a failure report must mean the same plan everywhere.
#include "holdfast/lab/script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/lab/error.hpp"
#include "random.hpp"
#include "words.hpp"

namespace holdfast::lab {
namespace {

Direction random_direction(detail::Random& random) {
    return random.below(2) == 0 ? Direction::to_server : Direction::to_client;
}

Fault random_fault(detail::Random& random, const ScriptBounds& bounds) {
    Fault fault;
    const auto ending = random.below(2) == 0 ? Ending::close : Ending::reset;
    switch (random.below(8)) {
        case 0:
            fault.kind = Fault::Kind::delay;
            fault.time = std::chrono::milliseconds(1 + random.below(100));
            fault.jitter = std::chrono::milliseconds(random.below(50));
            break;
        case 1:
        case 2:
            fault.kind = Fault::Kind::cut;
            fault.direction = random_direction(random);
            fault.after = random.below(bounds.bytes + 1);
            fault.ending = ending;
            fault.count = random.below(4) == 0 ? Count::new_connections : Count::overall;
            break;
        case 3:
            fault.kind = Fault::Kind::swallow;
            fault.direction = Direction::to_client;
            fault.after = random.below(bounds.bytes + 1);
            if (random.below(2) == 0) {
                fault.cut_after = 1 + random.below(std::max<std::uint64_t>(bounds.bytes, 1));
                fault.ending = ending;
            }
            break;
        case 4:
            fault.kind = Fault::Kind::stall;
            fault.direction = random_direction(random);
            break;
        case 5:
            fault.kind = Fault::Kind::black_hole;
            break;
        case 6:
            fault.kind = Fault::Kind::refuse;
            break;
        default:
            fault.kind = Fault::Kind::cut_all;
            fault.ending = ending;
            break;
    }
    return fault;
}

}  // namespace

Script Script::from_seed(std::uint64_t seed, const ScriptBounds& bounds) {
    Script script;
    script.seed = seed;
    detail::Random random(seed);
    const auto slice =
        std::max<std::int64_t>(bounds.duration.count() / std::max(bounds.faults, 1U), 2);
    for (unsigned number = 0; number < bounds.faults; ++number) {
        // A fault lies within its slice, with its heal.
        const auto begin = static_cast<std::int64_t>(number) * slice;
        const auto most = std::clamp<std::int64_t>(bounds.longest.count(), 1, slice - 1);
        const auto lasts =
            1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
        const auto offset =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(slice - lasts)));
        Step fault;
        fault.at = std::chrono::milliseconds(begin + offset);
        fault.fault = random_fault(random, bounds);
        Step heal;
        heal.at = *fault.at + std::chrono::milliseconds(lasts);
        script.steps.push_back(std::move(fault));
        script.steps.push_back(std::move(heal));
    }
    Step last;
    last.at = bounds.duration;
    script.steps.push_back(std::move(last));
    return script;
}

Script Script::parse(std::string_view text) {
    Script script;
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        const auto line = text.substr(begin, end - begin);
        begin = end + 1;
        ++number;
        const auto words = detail::words_of(line);
        if (words.empty() || words[0].front() == '#') {
            if (words.size() >= 3 && words[1] == "seed") {
                script.seed = detail::number_of(words[2]);
            }
            continue;
        }
        const auto colon = line.find(':');
        const auto when = detail::words_of(line.substr(0, colon));
        const auto value = when.size() == 2 ? detail::number_of(when[1]) : std::nullopt;
        if (colon == std::string_view::npos || !value ||
            (when[0] != "at" && when[0] != "connection")) {
            throw LabError(fmt::format(
                "line {} of the script: expected \"at MS: FAULT\" or \"connection N: FAULT\"",
                number));
        }
        Step step;
        if (when[0] == "at") {
            step.at = std::chrono::milliseconds(static_cast<std::int64_t>(*value));
        } else {
            step.connection = *value;
        }
        try {
            step.fault = parse_fault(line.substr(colon + 1));
        } catch (const LabError& error) {
            throw LabError(fmt::format("line {} of the script: {}", number, error.what()));
        }
        script.steps.push_back(std::move(step));
    }
    return script;
}

std::string to_string(const Script& script) {
    std::string text;
    if (script.seed) {
        text += fmt::format("# seed {}\n", *script.seed);
    }
    for (const auto& step : script.steps) {
        text += step.at ? fmt::format("at {}: ", step.at->count())
                        : fmt::format("connection {}: ", step.connection.value_or(0));
        text += to_string(step.fault) + "\n";
    }
    return text;
}

}  // namespace holdfast::lab
