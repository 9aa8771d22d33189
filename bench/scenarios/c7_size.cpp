// C7: how much there is to each backend: lines of code, and requests for one operation.
#include "lines_of_code.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C7";

void lines(Bench& bench) {
    for (const CodeSize& size : code_sizes) {
        Row row;
        row.scenario = id;
        row.backend = size.backend;
        row.variant = "default";
        row.metric = "lines of code";
        row.n = static_cast<std::uint64_t>(size.files);
        row.note = "neither empty nor a comment, of n files";
        if (row.backend == "redlock")
            row.note += "; redis' connection, which it uses, is not in it";
        if (row.backend == "sqlite" || row.backend == "postgresql" || row.backend == "mysql")
            row.note += "; with what the three share";
        bench.add_value(std::move(row), size.lines);
    }
}

void requests(Bench& bench) {
    constexpr int cycles = 50;
    for (const Deployment& d : bench.site.deployments()) {
        const auto client = bench.open(d);
        const auto lock = bench.lock(client, d, "bench/size");
        std::uint64_t before = 0;
        for (int i = 0; i <= cycles; ++i) {
            auto lease = lock->acquire();
            if (!lease) check(lease.error(), "acquire");
            if (lease->release() != ReleaseResult::released)
                throw SelfCheck("a release was not answered");
            if (i == 0) before = client.stats().requests;  // the first one connects
        }
        Row row = row_of(id, d);
        row.metric = "requests per acquire + release";
        row.n = cycles;
        row.note = "of a free name, by the client's own count";
        bench.add_value(std::move(row),
                        static_cast<double>(client.stats().requests - before) / cycles);
    }
}

}  // namespace

Scenario c7_size() {
    return {
        id, "lines of code of each backend, and its requests for one operation",
        "Lines that are neither empty nor a comment are counted in the folder of each backend "
        "when the bench is built; what is the same for all (waiting, renewal, configuration) is "
        "in core and not counted. Requests: one caller, a free name, again and again.",
        false, [](const Options&, const Site&) {
            return std::vector<Step>{{"lines of code of each backend", lines},
                                     {"requests per operation, all backends", requests}};
        }};
}

}  // namespace holdfast::bench
