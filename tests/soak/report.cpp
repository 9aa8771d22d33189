#include "report.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace holdfast::soak {

using bench::history::Trouble;

void print(std::FILE* out, const Plan& plan, const Result& o) {
    fmt::print(out, "{} ({}), {} s, seed {}\n", plan.backend, o.deployment, o.seconds, plan.seed);
    for (const auto& [kind, count] : o.faults)
        fmt::print(out, "  {:>6}  {}\n", count, kind);
    fmt::print(out, "  {} faults of {} kinds\n", o.fault_count(), o.faults.size());
    for (const auto& [word, count] : o.calls)
        fmt::print(out, "  {:>10} {}\n", word, count);
    fmt::print(out, "{}", o.verdict.text());
    fmt::print(out, "{}", o.complaints);
    fmt::print(out, "left at the server: {} {}\n", o.left, o.left_words);
    fmt::print(out, "control, the servers lose their data: {} overlaps, {} within a validity\n",
               o.control.count(Trouble::overlap), o.control.count(Trouble::within_validity));
    if (!o.control_caught())
        fmt::print(out, "THE CONTROL WAS NOT CAUGHT: the rest proves nothing\n");
    fmt::print(out, "{}\n", o.sound() ? "sound" : "NOT SOUND");
}

std::string json(const Plan& plan, const Result& o, const std::string& commit) {
    namespace js = boost::json;
    const auto counts = [](const std::map<std::string, std::uint64_t>& from) {
        js::object out;
        for (const auto& [word, count] : from)
            out[word] = count;
        return out;
    };
    const js::object all{{"backend", plan.backend},
                         {"deployment", o.deployment},
                         {"commit", commit},
                         {"seconds", o.seconds},
                         {"seed", plan.seed},
                         {"workers", plan.workers},
                         {"faults", counts(o.faults)},
                         {"fault_count", o.fault_count()},
                         {"calls", counts(o.calls)},
                         {"acquired", o.verdict.figures.granted},
                         {"history", js::parse(o.verdict.json())},
                         {"unsynced_release_ms", o.unsynced_release.count()},
                         {"left", o.left},
                         {"control", js::parse(o.control.json())},
                         {"control_caught", o.control_caught()},
                         {"sound", o.sound()}};
    return js::serialize(all);
}

}  // namespace holdfast::soak
