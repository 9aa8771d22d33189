#include "measure/trials.hpp"

#include <atomic>
#include <exception>
#include <thread>

#include "measure/patience.hpp"

namespace holdfast::bench {

namespace {

constexpr auto patience = std::chrono::duration_cast<milliseconds>(lab::default_cap);

Row row_of(const std::string& scenario, const Deployment& d, const std::string& metric,
           const std::string& note) {
    Row row = bench::row_of(scenario, d);
    row.metric = metric;
    row.note = note;
    return row;
}

}  // namespace

void add_tally(Bench& bench, const std::string& scenario, const Deployment& d,
               const std::string& metric, const Count& tally, bool promised,
               const std::string& note) {
    if (tally.runs == 0) return;
    Row row = row_of(scenario, d, metric, note);
    row.n = tally.runs;
    row.unit = "of " + std::to_string(tally.runs) + " runs";
    if (promised && tally.seen > 0) row.status = Status::violated;
    bench.add_value(row, static_cast<double>(tally.seen));
}

void add_times(Bench& bench, const std::string& scenario, const Deployment& d,
               const std::string& metric, const std::vector<double>& ms, const std::string& note) {
    if (ms.empty()) return;
    Row row = row_of(scenario, d, metric, note);
    row.unit = "ms";
    row.n = ms.size();
    bench.add(row, spread_of(ms));
}

Party::Party(const Bench& bench, const Deployment& d, const std::string& name,
             const LockOptions& how)
    : client(bench.open(d)), lock(bench.lock(client, d, name, how)) {}

Lease Party::ask(milliseconds wait) {
    Diagnostics words;
    Lease mine;
    const error_code why = until_answered(patience, [&](milliseconds) {
        words = {};
        auto lease = lock->acquire({.wait = wait, .diagnostics = &words});
        if (!lease) return lease.error();
        mine = std::move(*lease);
        return error_code();
    });
    if (why && why != errc::timed_out && why != errc::contended)
        throw SelfCheck(std::string(client.backend()) + ": acquire: " + why.message() + ": " +
                        words.text());
    return mine;
}

Lease Party::must(milliseconds wait) {
    Lease lease = ask(wait);
    if (lease.state() == LeaseState::empty)
        throw SelfCheck(std::string(client.backend()) + ": " + std::string(lock->name()) +
                        " was not granted within " + std::to_string(wait.count()) + " ms");
    return lease;
}

namespace {

lab::Process start_holder(const Bench& bench, const Store& store, const Deployment& d,
                          const std::string& name, milliseconds ttl,
                          const std::filesystem::path& history, const char* job) {
    WorkerOptions how;
    how.job = job;
    how.guard = "holdfast";
    how.store = store.address();
    how.url = d.open;
    how.name = name;
    how.ttl_ms = static_cast<int>(ttl.count());
    how.history = history.string();
    return start_worker(how, bench.site.folder() / "workers.log");
}

}  // namespace

HoldingProcess::HoldingProcess(const Bench& bench, const Deployment& d, const std::string& name,
                               milliseconds ttl, const std::filesystem::path& history,
                               const char* job)
    : store_(bench.site.folder() / (name + ".sock")),
      process_((store_.reset(0, 1), start_holder(bench, store_, d, name, ttl, history, job))) {}

void HoldingProcess::wait_held() {
    lab::wait_until([&] { return holds(); }, 3 * lab::default_cap,
                    "a holder: " + process_.log_tail(3));
}

void side_by_side(const std::vector<std::function<void()>>& jobs) {
    std::vector<std::exception_ptr> failed(jobs.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < jobs.size(); ++i)
            threads.emplace_back([&, i] {
                try {
                    jobs[i]();
                } catch (...) {
                    failed[i] = std::current_exception();
                }
            });
    }
    for (const auto& f : failed)
        if (f) std::rethrow_exception(f);
}

milliseconds roomy_ttl(const Bench& bench, milliseconds least) {
    constexpr int crowd = 6, share = 2;
    static std::atomic<unsigned> next{0};
    std::vector<std::function<void()>> jobs;
    const auto all = across_processes(bench.site);
    for (const Deployment& d : all)
        for (int i = 0; i < crowd; ++i)
            jobs.emplace_back([&bench, &d, name = "bench-ttl-" + std::to_string(++next)] {
                Party party(bench, d, name);
                Lease lease = party.must(patience);
                (void)lease.renew();
                lease.release();
            });
    const auto start = Clock::now();
    side_by_side(jobs);
    const auto needed = share * (Clock::now() - start);
    if (needed <= least) return least;
    return std::chrono::ceil<std::chrono::seconds>(needed);
}

Deployment variant_of(const std::string& backend, const std::string& variant,
                      const std::string& url) {
    Deployment d;
    d.backend = backend;
    d.variant = variant;
    d.open = url;
    return d;
}

Deployment leaves_after(Deployment d, milliseconds ttl) {
    if (d.backend == "etcd") d.open += "?ttl=" + std::to_string(ttl.count()) + "ms";
    return d;
}

std::vector<Deployment> across_processes(const Site& site) {
    std::vector<Deployment> chosen;
    for (const Deployment& d : site.deployments())
        if (!d.in_process && d.variant != "durable" && d.variant != "poll") chosen.push_back(d);
    return chosen;
}

}  // namespace holdfast::bench
