// C12: the holder is stopped for twice its ttl and goes on as if nothing had happened.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "faults/sqlite_file.hpp"
#include "measure/trials.hpp"
#include "processes/store.hpp"
#include "processes/worker.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C12";

struct Trial {
    double paused = 0, resumed = 0, ended = 0;
    std::vector<StoreEvent> events;
};

bool saw(const Store& store, StoreEvent::Kind kind, const std::string& who, double after = 0) {
    for (const StoreEvent& e : store.events())
        if (e.kind == kind && e.who == who && e.at_ms > after) return true;
    return false;
}

std::size_t writes(const Store& store, const std::string& who, double after) {
    std::size_t n = 0;
    for (const StoreEvent& e : store.events())
        if (e.kind == StoreEvent::Kind::write && e.who == who && e.at_ms > after) ++n;
    return n;
}

bool has_begun(const std::filesystem::path& history) {
    std::error_code none;
    const auto size = std::filesystem::file_size(history, none);
    return !none && size > 0;
}

/// Stops the holder, outside of a transaction: there it would keep everybody out until it goes on.
void stop_between(lab::Process& a, const Store& store, const Deployment& d,
                  std::chrono::milliseconds cap) {
    a.pause();
    const auto end = Clock::now() + cap;
    while (stays_locked(d, std::chrono::milliseconds(200))) {
        if (Clock::now() > end) throw SelfCheck("the holder is always inside a transaction");
        const double again = store.now_ms();
        a.resume();
        lab::wait_until([&] { return writes(store, "A", again) > 0; }, cap, "the holder's writes");
        a.pause();
    }
}

/// Nothing when the machine was so busy that the lease was lost before anything was done to it.
std::optional<Trial> run_trial(const Bench& bench, const Deployment& d, int ttl_ms, int number) {
    Store store(bench.site.folder() / ("store " + d.label()));
    store.reset(0, 1);
    WorkerOptions how;
    how.job = "write";
    how.guard = "holdfast";
    how.store = store.address();
    how.url = d.open;
    how.name = "bench/pause/" + std::to_string(number);
    how.ttl_ms = ttl_ms;
    store.record(bench.history(d, "C12-store"), how.name);
    const auto log = bench.site.folder() / "workers.log";
    const auto cap = std::chrono::milliseconds(ttl_ms * 4) + lab::default_cap;

    how.who = "A";
    how.history = bench.history(d, "C12-A").string();
    auto a = start_worker(how, log);
    const auto lost = [&] { return saw(store, StoreEvent::Kind::lost, "A"); };
    lab::wait_until([&] { return writes(store, "A", 0) >= 5 || lost(); }, cap,
                    "the holder's first writes");
    how.who = "B";
    how.history = bench.history(d, "C12-B").string();
    auto b = start_worker(how, log);
    const double b_started = store.now_ms();
    // Its history is asked for at the end, even if this trial is void.
    lab::wait_until([&] { return has_begun(how.history); }, cap, "the second holder's start");
    lab::wait_until([&] { return writes(store, "A", b_started) >= 5 || lost(); }, cap,
                    "the holder's writes");

    Trial trial;
    if (!lost()) stop_between(a, store, d, cap);
    if (lost()) return std::nullopt;
    trial.paused = store.now_ms();
    lab::wait_until([&] { return saw(store, StoreEvent::Kind::holds, "B"); }, cap,
                    "the second holder's grant");
    lab::wait_until([&] { return store.now_ms() >= trial.paused + 2.0 * ttl_ms; }, cap,
                    "twice the ttl");
    trial.resumed = store.now_ms();
    a.resume();
    lab::wait_until([&] { return saw(store, StoreEvent::Kind::lost, "A", trial.resumed); }, cap,
                    "the first holder to be told that its lease is lost");
    const double told = store.now_ms();
    const auto next_lost = [&] { return saw(store, StoreEvent::Kind::lost, "B"); };
    lab::wait_until([&] { return writes(store, "B", told) >= 5 || next_lost(); }, cap,
                    "further writes");
    if (next_lost()) return std::nullopt;
    trial.ended = store.now_ms();
    trial.events = store.events();
    return trial;
}

/// The first trial of each deployment, drawn in the report: one row per span and per write.
void add_timeline(Bench& bench, const Deployment& d, const Trial& trial) {
    const auto span = [&](const char* metric, const char* who, double from, double to) {
        Row row = row_of(id, d);
        row.metric = metric;
        row.unit = "ms";
        row.note = who;
        bench.add(std::move(row), Spread{from, from, to});
    };
    span("timeline: stopped", "A", trial.paused, trial.resumed);
    for (const char* who : {"A", "B"}) {
        double from = -1, to = trial.ended;
        for (const StoreEvent& e : trial.events) {
            if (e.who != who) continue;
            if (e.kind == StoreEvent::Kind::holds) from = e.at_ms;
            if (e.kind == StoreEvent::Kind::lost) to = e.at_ms;
        }
        if (from >= 0) span("timeline: believes", who, from, to);
    }
    for (const StoreEvent& e : trial.events) {
        if (e.kind != StoreEvent::Kind::write) continue;
        const char* what = !e.stale           ? "timeline: write"
                           : e.fence_accepted ? "timeline: stale write, not stopped"
                                              : "timeline: stale write, refused by the fence";
        span(what, e.who.c_str(), e.at_ms, e.at_ms);
    }
}

struct Sum {
    double stale = 0, fence_accepted = 0, fence_refused = 0, said_invalid = 0, good_refused = 0;
    std::vector<double> without_holder, overlap;
};

void add_up(Sum& sum, const Trial& trial) {
    double b_holds = 0, a_lost = 0;
    for (const StoreEvent& e : trial.events) {
        if (e.kind == StoreEvent::Kind::holds && e.who == "B") b_holds = e.at_ms;
        if (e.kind == StoreEvent::Kind::lost && e.who == "A") a_lost = e.at_ms;
        if (e.kind == StoreEvent::Kind::holds && e.token != 0)
            sum.good_refused += e.fence_accepted ? 0 : 1;
        if (e.kind != StoreEvent::Kind::write) continue;
        if (!e.stale) {
            sum.good_refused += e.fence_accepted ? 0 : 1;
            continue;
        }
        sum.stale += 1;
        (e.fence_accepted ? sum.fence_accepted : sum.fence_refused) += 1;
        if (!e.valid) sum.said_invalid += 1;
    }
    sum.without_holder.push_back(b_holds - trial.paused);
    sum.overlap.push_back(a_lost - trial.resumed);
}

void report(Bench& bench, const Deployment& d, const Sum& sum, bool fenced, int ttl_ms) {
    Row row = row_of(id, d, ttl_ms);
    row.n = sum.overlap.size();
    row.unit = "in " + std::to_string(row.n) + " runs";
    const auto count = [&](const char* metric, double value) {
        row.metric = metric;
        bench.add_value(row, value);
    };
    count("stale writes accepted by a store without a fence", sum.stale);
    count("stale writes of a holder whose lease said that it is over", sum.said_invalid);
    if (fenced) {
        count("stale writes refused by a fenced store", sum.fence_refused);
        if (sum.fence_accepted > 0) row.status = Status::violated;
        count("stale writes accepted by a fenced store", sum.fence_accepted);
        row.status = sum.good_refused > 0 ? Status::violated : Status::ok;
        count("rightful writes refused by a fenced store", sum.good_refused);
        row.status = Status::ok;
    } else {
        row.note = "this mode gives no token: nothing for a store to check";
    }
    row.unit = "ms";
    row.metric = "time until the next holder";
    bench.add(row, spread_of(sum.without_holder));
    row.metric = "time until the first holder was told, after it went on";
    bench.add(row, spread_of(sum.overlap));
}

struct Played {
    Sum sum;
    std::optional<Trial> first;
    bool fenced = false;
};

Played play(const Bench& bench, const Deployment& d, int ttl_ms) {
    Played played;
    played.fenced = bench.open(d).capabilities().has(Capability::fencing);
    const int wanted = bench.options.pick(2, 3, 15);
    int number = 0, done = 0;
    while (done < wanted && !bench.stopped()) {
        const auto trial = run_trial(bench, d, ttl_ms, number++);
        if (!trial && number < 3 * wanted) continue;
        if (!trial) throw SelfCheck("the machine is too busy for a lease to be renewed in time");
        if (done++ == 0) played.first = trial;
        add_up(played.sum, *trial);
    }
    return played;
}

void run(Bench& bench) {
    const auto ttl_ms = static_cast<int>(
        roomy_ttl(bench, milliseconds(bench.options.pick(600, 1000, 1000))).count());
    const auto deployments = across_processes(bench.site);  // in one everybody would be stopped
    std::vector<Played> played(deployments.size());
    std::vector<std::function<void()>> jobs;
    for (std::size_t i = 0; i < deployments.size(); ++i)
        jobs.emplace_back([&, i] { played[i] = play(bench, deployments[i], ttl_ms); });
    side_by_side(jobs);  // each mostly waits for its ttl
    for (std::size_t i = 0; i < deployments.size(); ++i) {
        if (!played[i].first) continue;
        add_timeline(bench, deployments[i], *played[i].first);
        report(bench, deployments[i], played[i].sum, played[i].fenced, ttl_ms);
    }
}

}  // namespace

Scenario c12_pause() {
    return {
        id, "the holder is stopped (SIGSTOP) for twice its ttl, then goes on",
        "Holder A looks whether its lease is lost, works for 10 ms and writes, again and again; it "
        "is stopped for 2 x ttl, B is granted and writes, A goes on. A write of A after B's grant "
        "is stale. Every write goes to two stores; one checks the fencing token, and meets a new "
        "holder's with what it does first. All backends at once.",
        false, [](const Options&, const Site&) {
            return std::vector<Step>{{"holders stopped for twice their ttl, all backends", run}};
        }};
}

}  // namespace holdfast::bench
