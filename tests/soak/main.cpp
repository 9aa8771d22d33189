// holdfast-soak: one deployment, faults for a while, and a verdict. tests/soak/run calls it for
// each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <holdfast/spi/registry.hpp>

#include "director.hpp"
#include "report.hpp"
#include "worker.hpp"

namespace {

/// The deployments, one a line. Fails for a backend with hosts that has none.
int list() {
    const auto known = holdfast::deployments::names();
    int missing = 0;
    for (const auto& name : known)
        fmt::print("{}\n", name);
    for (const auto& d : holdfast::spi::Registry::linked().all()) {
        if (d->hosts == holdfast::spi::Descriptor::Hosts::none) continue;
        if (std::ranges::count(known, d->name) == 1) continue;
        fmt::print(stderr, "holdfast-soak: no deployment of {}\n", d->name);
        missing = 1;
    }
    return missing;
}

}  // namespace

int main(int argc, char** argv) try {
    namespace soak = holdfast::soak;
    if (argc == 6 && std::string_view(argv[1]) == "worker") {
        soak::WorkerOptions o;
        o.url = argv[2];
        o.folder = argv[3];
        o.seed = std::strtoull(argv[4], nullptr, 10);
        o.long_holds = std::string_view(argv[5]) == "control";
        return soak::work(o);
    }
    if (argc == 2 && std::string_view(argv[1]) == "--list") return list();
    CLI::App app{
        "Faults on a real deployment for a while; then the checker judges what everybody did"};
    soak::Plan plan;
    long seconds = 1800, control = 20;
    std::string file, commit = "unknown";
    app.add_option("--backend", plan.backend, "which deployment")
        ->required()
        ->check(CLI::IsMember(holdfast::deployments::names()));
    app.add_option("--seconds", seconds, "how long")->check(CLI::Range(1L, 1'000'000L));
    app.add_option("--control-seconds", control, "how long the control runs")
        ->check(CLI::Range(1L, 10'000L));
    app.add_option("--seed", plan.seed, "of all choices; the times stay those of the machine");
    app.add_option("--workers", plan.workers, "processes")->check(CLI::Range(2, 64));
    app.add_option("--json", file, "write the figures there");
    app.add_option("--commit", commit, "what is run, for the figures");
    CLI11_PARSE(app, argc, argv);
    plan.length = std::chrono::seconds(seconds);
    plan.control = std::chrono::seconds(control);
    plan.program = "/proc/self/exe";
    if (char* self = ::realpath("/proc/self/exe", nullptr); self != nullptr) {
        plan.program = self;
        std::free(self);
    }
    const auto outcome = soak::run(plan);
    soak::print(stdout, plan, outcome);
    if (!file.empty()) {
        std::ofstream out(file);
        out << soak::json(plan, outcome, commit) << '\n';
        if (!out.flush()) {
            fmt::print(stderr, "holdfast-soak: cannot write {}\n", file);
            return 70;
        }
    }
    return outcome.sound() ? 0 : 1;
} catch (const std::exception& error) {
    fmt::print(stderr, "holdfast-soak: {}\n", error.what());
    return 70;
}
