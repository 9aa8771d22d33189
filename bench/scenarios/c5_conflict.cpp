// C5: one lock is taken, and many want it: fail at once, wait, defer, or sleep and try again.
#include "measure/callers.hpp"
#include "measure/cpu.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"
#include "variants/documents.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C5";

struct Way {
    Deployment deployment;  ///< its variant says what the caller does
    Conflict how = Conflict::waits;
    bool holdfast = true;
    std::size_t callers = 0;
};

/// The processes of the deployment's server; empty where there is none, or more than one.
std::vector<pid_t> server_of(Site& site, const std::string& backend) {
    if (backend == "redis") return site.redis()->process().family();
    if (backend == "postgresql") return site.postgresql()->process().family();
    if (backend == "mysql") return site.mysql()->process().family();
    if (backend == "zookeeper") return site.zookeeper()->process().family();
    if (backend == "etcd") return site.etcd()->process().family();
    return {};
}

/// Whether articles' locks for it are among the variants.
bool documents_have(std::string_view backend) {
    return backend != "sqlite" && backend != "etcd";
}

void report(Bench& bench, const Way& way, const CallersResult& seen, double server_cpu_ms) {
    Row row = row_of(id, way.deployment, static_cast<double>(way.callers));
    row.n = seen.grants;
    const auto add = [&](const char* metric, const char* unit, double value,
                         const char* note = "") {
        row.metric = metric;
        row.unit = unit;
        row.note = note;
        bench.add_value(row, value);
    };
    const double grants = static_cast<double>(seen.grants);
    add("requests per grant", "", static_cast<double>(seen.requests) / grants,
        "by the clients' own count, refused attempts and releases included");
    add("time to grant p50", "ms", seen.to_grant.quantile_us(0.5) / 1e3);
    add("time to grant p99", "ms", seen.to_grant.quantile_us(0.99) / 1e3);
    add("time to grant, longest", "ms", seen.longest_ms, "of those who still wait too");
    add("guarded jobs per second", "1/s", grants / seen.seconds, "1 ms each, under the lock");
    add("other jobs per second", "1/s", static_cast<double>(seen.other_jobs) / seen.seconds,
        "5 ms each, without a lock, all callers together");
    if (way.how == Conflict::fails)
        add("asked in vain", "", double(seen.refused) / (double(seen.refused) + grants),
            "share of the questions: refused at once, the guarded job is left undone");
    add("CPU of the clients per grant", "us", 1e3 * seen.client_cpu_ms / grants,
        "all callers, other jobs included");
    if (server_cpu_ms >= 0)
        add("CPU of the server per grant", "us", 1e3 * server_cpu_ms / grants,
            "by the scheduler's count");
    if (way.holdfast && seen.two_at_once > 0) row.status = Status::violated;
    add("granted while another was inside", "", static_cast<double>(seen.two_at_once));
}

void run(Bench& bench, const Way& way) {
    Callers callers(way.deployment, way.callers, way.how, "bench-conflict");
    callers.run_for(bench.options.pick(0.1, 0.1, 1.0));  // until everybody is in line
    const auto server = server_of(bench.site, way.deployment.backend);
    const double before = cpu_ms_of(server);
    const auto seen = callers.run_for(bench.options.pick(0.4, 0.6, 5.0));
    const double server_ms = server.empty() ? -1 : cpu_ms_of(server) - before;
    callers.end();
    if (seen.grants == 0) throw SelfCheck("nobody was granted the lock");
    report(bench, way, seen, server_ms);
}

std::vector<Way> ways(const Options& options, const Site& site) {
    std::vector<Way> all;
    const auto add = [&](Deployment d, const char* words, Conflict how, std::size_t callers,
                         bool holdfast = true) {
        d.variant = words;
        all.push_back({std::move(d), how, holdfast, callers});
    };
    const auto answers = [&](const Deployment& d, std::size_t callers) {
        add(d, "fails at once", Conflict::fails, callers);
        add(d, "waits", Conflict::waits, callers);
        add(d, "defers", Conflict::defers, callers);
    };
    const auto sleeps = [&](const Deployment& d, const std::string& pause, std::size_t callers) {
        const auto words = "doc: sleeps " + pause.substr(0, pause.find("ms")) + " ms";
        add(variant_of(d.backend, words, doc_url(d.open) + "pause=" + pause), words.c_str(),
            Conflict::waits, callers, false);
    };
    const bool quick = options.effort == Effort::quick;
    if (const auto* redis = site.find("redis"))
        for (const std::size_t callers : {std::size_t{2}, std::size_t{20}}) {
            if (quick && callers < 20) continue;
            answers(*redis, callers);
            sleeps(*redis, "5ms", callers);
            sleeps(*redis, "50ms", callers);
        }
    for (const char* backend : {"postgresql", "mysql", "zookeeper", "etcd", "sqlite"}) {
        const auto* d = site.find(backend);
        if (d == nullptr || quick) continue;
        answers(*d, 20);
        if (documents_have(backend)) sleeps(*d, "50ms", 20);
    }
    return all;
}

std::vector<Step> plan(const Options& options, const Site& site) {
    std::vector<Step> steps;
    for (const Way& way : ways(options, site))
        steps.push_back({way.deployment.label() + " conflict n=" + std::to_string(way.callers),
                         [way](Bench& bench) { run(bench, way); }});
    return steps;
}

}  // namespace

Scenario c5_conflict() {
    return {id, "a lock that is taken: fail at once, wait, defer, or sleep and try again",
            "2 and 20 callers with a client each want one lock for jobs of 1 ms, and have jobs of "
            "5 ms that need none, which are a wait for a timer, as for a disk. After each "
            "of those one asks for the lock; one that fails leaves that job undone, one that waits "
            "or sleeps does nothing else until the grant, one that defers does other jobs. The "
            "documents' client sleeps between two tries.",
            false, plan};
}

}  // namespace holdfast::bench
