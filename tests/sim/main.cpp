// Runs seeds of one backend, and shows one of them: README.md.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "watchdog.hpp"
#include "world.hpp"

namespace {

using holdfast::sim::fault_named;
using holdfast::sim::feature_named;
using holdfast::sim::Options;
using holdfast::sim::Report;
using holdfast::sim::Watchdog;
using holdfast::sim::World;

/// On a thread of its own: no seed sees what those before it left in a thread's variables.
/// `expect`: some run has to fail.
Report run(const std::string& backend, Options options, bool expect = false) {
    Watchdog watchdog(options.seed);
    options.steps = &watchdog.steps;
    const auto once = [&] {
        watchdog.begin();
        auto world = std::make_unique<World>(backend, options);
        // What a broken run has open cannot be closed: its threads wait for ever.
        World& running = *world.release();
        Report out = running.run();
        if (out.violation.empty()) world.reset(&running);
        return out;
    };
    auto report = std::async(std::launch::async, once);
    watchdog.watch([&](auto time) { return report.wait_for(time) == std::future_status::ready; },
                   expect);
    return report.get();
}

std::uint64_t number(std::string_view text) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size())
        throw std::runtime_error("no number: " + std::string(text));
    return n;
}

/// Of "A,B,C".
template <class Use>
void for_each(std::string_view list, Use use) {
    while (!list.empty()) {
        const auto comma = std::min(list.find(','), list.size());
        use(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
}

int usage() {
    std::fputs(
        "sim BACKEND [--seeds A..B] [--rough] [--only FAULT,...] [--unsafe] [--expect]\n"
        "                                                   runs these seeds; 1..100 by default\n"
        "sim BACKEND --trace SEED [--without N,...] [--no FEATURE,...]\n"
        "                                                   shows one, less these of its faults, "
        "and of what its clients do\n"
        "sim BACKEND --shrink SEED                          leaves out the faults that it fails "
        "without\n"
        "sim BACKEND --replay A..B                          runs each twice, and compares the "
        "traces\n",
        stderr);
    return 2;
}

/// A failing seed with as few faults as it still fails with.
int shrink(const std::string& backend, Options o) {
    Report whole = run(backend, o);
    if (whole.violation.empty()) return std::puts("it does not fail"), 1;
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (const std::string& fault : std::vector(whole.faults)) {
            Options less = o;
            less.without.insert(number(std::string_view(fault).substr(0, fault.find(' '))));
            const Report out = run(backend, less);
            if (out.violation.empty()) continue;
            o = less;
            whole = out;
            smaller = true;
            break;
        }
    }
    std::string left_out;
    for (const std::size_t i : o.without)
        left_out += (left_out.empty() ? "" : ",") + std::to_string(i);
    std::printf("%s\n--trace %llu%s%s\n", whole.violation.c_str(),
                static_cast<unsigned long long>(o.seed), left_out.empty() ? "" : " --without ",
                left_out.c_str());
    for (const std::string& fault : whole.faults)
        std::printf("  %s\n", fault.c_str());
    return 0;
}

/// The first lines that are not alike.
std::string first_difference(const std::string& a, const std::string& b) {
    std::size_t line = 0, at = 0;
    for (; at < std::min(a.size(), b.size()) && a[at] == b[at]; ++at)
        if (a[at] == '\n') line = at + 1;
    const auto rest = [&](const std::string& s) {
        return s.substr(line, s.find('\n', line) - line) + "\n";
    };
    return rest(a) + rest(b);
}

int go(int count, char** words) {
    if (count < 2) return usage();
    const std::string backend = words[1];
    std::uint64_t from = 1, to = 100;
    bool expect = false, replay = false;
    Options options;
    std::optional<std::uint64_t> trace, shrinks;
    for (int i = 2; i < count; ++i) {
        const std::string_view word = words[i];
        if (word == "--unsafe") {
            options.unsafe = true;
        } else if (word == "--rough") {
            options.rough = true;
        } else if (word == "--expect") {
            expect = true;
        } else if (i + 1 >= count) {
            return usage();
        } else if (word == "--seeds" || word == "--replay") {
            const std::string_view range = words[++i];
            const auto dots = range.find("..");
            from = dots == range.npos ? 1 : number(range.substr(0, dots));
            to = number(dots == range.npos ? range : range.substr(dots + 2));
            replay = word == "--replay";
        } else if (word == "--trace") {
            trace = number(words[++i]);
        } else if (word == "--shrink") {
            shrinks = number(words[++i]);
        } else if (word == "--without") {
            for_each(words[++i], [&](auto one) { options.without.insert(number(one)); });
        } else if (word == "--only") {
            for_each(words[++i], [&](auto one) { options.only.insert(fault_named(one)); });
        } else if (word == "--no") {
            for_each(words[++i], [&](auto one) { options.no.insert(feature_named(one)); });
        } else {
            return usage();
        }
    }
    if (shrinks) {
        options.seed = *shrinks;
        return shrink(backend, options);
    }
    if (trace) {
        options.seed = *trace;
        options.tracing = true;
        const Report out = run(backend, options);
        std::fputs(out.trace.c_str(), stdout);
        std::printf("%s\n", out.violation.empty() ? "no violation" : out.violation.c_str());
        return out.violation.empty() ? 0 : 1;
    }
    std::uint64_t steps = 0, grants = 0, overlaps = 0, failed = 0, first = 0;
    holdfast::sim::Nanos time = 0;
    for (options.seed = from; options.seed <= to; ++options.seed) {
        options.tracing = replay;
        const Report out = run(backend, options, expect);
        if (replay) {
            const Report again = run(backend, options);
            if ((again.trace != out.trace || again.steps != out.steps) && ++failed <= 3)
                std::printf("seed %llu goes otherwise the second time, from here on:\n%s",
                            static_cast<unsigned long long>(options.seed),
                            first_difference(out.trace, again.trace).c_str());
        } else if (!out.violation.empty()) {
            ++failed;
            if (first == 0) first = options.seed;
            if (failed <= 10)
                std::printf("seed %llu at %.3f s: %s\n",
                            static_cast<unsigned long long>(options.seed),
                            static_cast<double>(out.time) / 1e9, out.violation.c_str());
            std::fflush(stdout);
            if (expect) break;
        }
        steps += out.steps;
        grants += out.grants;
        overlaps += out.overlaps;
        time += out.time;
    }
    std::printf("%s: seeds %llu..%llu, %llu steps, %llu grants, %.0f s of their time, %llu %s",
                backend.c_str(), static_cast<unsigned long long>(from),
                static_cast<unsigned long long>(std::min(to, options.seed)),
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(grants),
                static_cast<double>(time) / 1e9, static_cast<unsigned long long>(failed),
                replay ? "differ\n" : "violations\n");
    if (overlaps > 0)
        std::printf("of the grants %llu stood beside others, as the class admits\n",
                    static_cast<unsigned long long>(overlaps));
    if (grants == 0 && failed == 0) return std::puts("nothing was ever granted"), 1;
    return (failed != 0) == expect ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    try {
        return go(count, words);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
