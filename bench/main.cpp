// holdfast-bench: runs the scenarios on real servers and writes what came out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <holdfast/spi/config.hpp>

#include "cores.hpp"
#include "environment.hpp"
#include "measure/histories.hpp"
#include "processes/cycles.hpp"
#include "processes/worker.hpp"
#include "report/compare.hpp"
#include "report/report.hpp"
#include "runner.hpp"

namespace {

using namespace holdfast::bench;

std::atomic<bool> stop{false};

/// The first ^C ends the run after the step's next look; the second one ends the program.
void on_interrupt(int) {
    stop = true;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

int list() {
    for (const Scenario& s : scenarios())
        fmt::print("{:<5} {}{}\n", s.id, s.title,
                   s.on_own_servers ? "  [also on your own servers]" : "");
    return 0;
}

/// False, with a message, when a scenario is asked for that does not exist.
bool known(const Options& options) {
    for (const auto& id : options.scenarios) {
        bool found = false;
        for (const Scenario& s : scenarios())
            found = found || s.id == id;
        if (found) continue;
        fmt::print(stderr, "holdfast-bench: no scenario '{}'; --list shows them\n", id);
        return false;
    }
    return true;
}

std::vector<Method> methods(const std::vector<std::string>& ran) {
    std::vector<Method> all;
    for (const Scenario& s : scenarios())
        if (std::find(ran.begin(), ran.end(), s.id) != ran.end())
            all.push_back({s.id, s.title, s.method});
    return all;
}

int run(Options options) {
    if (!known(options)) return 64;
    if (!options.histories.empty() && std::filesystem::exists(options.histories)) {
        fmt::print(stderr, "holdfast-bench: {} is there already: name a new folder\n",
                   options.histories);
        return 64;
    }
    if (options.seed == 0) options.seed = std::random_device{}() % 1000000 + 1;
    const int core = options.placement == Placement::one ? pin_to_one_core() : -1;

    Report report;
    report.seed = options.seed;
    report.environment = environment(options, core);
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    {
        Site site(options, report.rows);
        report.environment.merge(site.facts());
        Histories histories(options.histories.empty() ? site.folder() / "histories"
                                                      : std::filesystem::path(options.histories));
        Bench bench{options, site, report.rows, std::mt19937_64(options.seed), stop, histories};
        const Run done = run_all(bench);
        histories.judge(report.rows);
        site.clean_up(report.rows);
        report.partial = done.partial;
        report.seconds = done.seconds;
        report.methods = methods(done.ran);
    }
    (options.verbose ? print_tables : print_screen)(stdout, report);
    if (!options.json.empty()) write_json(options.json, report);
    if (!options.html.empty()) write_html(options.html, report);
    return exit_code(report.rows);
}

int compare_runs(const std::vector<std::string>& files, double margin) {
    const Comparison all = compare(read_json(files.at(0)), read_json(files.at(1)), margin);
    print_comparison(stdout, all, margin);
    return exit_code(all);
}

void add_worker(CLI::App& app, WorkerOptions& o) {
    auto* worker = app.add_subcommand("worker", "one of the bench's own processes")->group("");
    worker->add_option("--job", o.job);
    worker->add_option("--guard", o.guard);
    worker->add_option("--store", o.store);
    worker->add_option("--url", o.url);
    worker->add_option("--name", o.name);
    worker->add_option("--who", o.who);
    worker->add_option("--history", o.history);
    worker->add_option("--cycles", o.cycles);
    worker->add_option("--threads", o.threads);
    worker->add_option("--ttl", o.ttl_ms);
}

void add_cycles(CLI::App& app, CyclesOptions& o) {
    auto* cycles = app.add_subcommand(
        "cycles", "nothing but acquire and release, for strace, perf and heap profilers");
    cycles->add_option("url", o.url)->required();
    cycles->add_option("--count", o.count)->check(CLI::PositiveNumber)->capture_default_str();
    cycles->add_option("--in-flight", o.in_flight,
                       "so many names at once, by callbacks; 0: one blocking caller");
}

/// The command line for the report. A URL may carry a password, and where a file lies is nobody's
/// business who reads it.
std::string shown(int argc, char** argv) {
    std::string all = "holdfast-bench";
    bool hide = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool url = word.rfind("--url=", 0) == 0;
        all += " " + (hide  ? "..."
                      : url ? "--url=..."
                            : std::filesystem::path(word).filename().string());
        hide = word == "--url";
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) try {
    CLI::App app{
        "Compares locks on real servers: cost, safety, order, and what of the common claims "
        "about them holds."};
    Options options;
    WorkerOptions worker;
    CyclesOptions cycles;
    bool quick = false, full = false, lists = false;
    std::string placement = "one";
    app.add_flag("--quick", quick, "three to four minutes: fewer rounds, the same scenarios");
    app.add_flag("--full", full, "longer, and 1000 waiters")->excludes("--quick");
    app.add_option("--scenario", options.scenarios, "only these, for example C1,C3")
        ->delimiter(',');
    app.add_flag("--list", lists, "show the scenarios and end");
    app.add_option("--seed", options.seed, "of the order of rounds; default: drawn and printed");
    app.add_option("--placement", placement,
                   "one: client and servers on one core; spread: anywhere")
        ->check(CLI::IsMember({"one", "spread"}))
        ->capture_default_str();
    app.add_flag("--verbose", options.verbose, "print all figures instead of one screen");
    app.add_option("--json", options.json, "write everything there")->take_last();
    app.add_option("--html", options.html, "write one page there that needs no network")
        ->take_last();
    app.add_option("--histories", options.histories,
                   "keep what every process did with its locks in this folder, which must be new")
        ->take_last();
    app.add_option("--config", options.config,
                   "holdfast.toml: run the cost scenarios on your own server instead");
    app.add_option("--backend", options.backend, "which one of that file; default: its default");
    app.add_option("--url", options.url, "the same with a URL")->excludes("--config");
    std::string kept;
    app.add_option("--page", kept, "RUN.json: run nothing, write the --html page of a kept run")
        ->needs("--html");
    std::vector<std::string> files;
    double margin = 10;
    auto* compares =
        app.add_option("--compare", files,
                       "BEFORE.json AFTER.json: run nothing, say what became slower and faster")
            ->expected(2);
    app.add_option("--slower", margin, "--compare: by how many percent something may be worse")
        ->check(CLI::Range(0.0, 1000.0))
        ->needs(compares)
        ->capture_default_str();
    app.footer(
        "exit: 0 fine, 1 a server missing or a self-check failed, 2 a guarantee of Holdfast "
        "violated,\n3 --compare found something slower; a refuted claim is no error.");
    add_worker(app, worker);
    add_cycles(app, cycles);
    CLI11_PARSE(app, argc, argv);
    if (app.got_subcommand("worker")) return worker_main(worker);
    if (app.got_subcommand("cycles")) return cycles_main(cycles);
    if (lists) return list();
    if (!files.empty()) return compare_runs(files, margin);
    if (!kept.empty()) {
        write_html_of(options.html, kept);
        return 0;
    }
    options.effort = full ? Effort::full : quick ? Effort::quick : Effort::normal;
    options.placement = placement == "one" ? Placement::one : Placement::spread;
    options.command_line = shown(argc, argv);
    return run(std::move(options));
} catch (const std::exception& error) {
    fmt::print(stderr, "holdfast-bench: {}\n", error.what());
    return 1;
}
