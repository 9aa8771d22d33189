#include "processes/cycles.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "measure/alone.hpp"
#include "measure/cpu.hpp"
#include "measure/in_flight.hpp"

namespace holdfast::bench {

namespace {

double switches() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_nvcsw + used.ru_nivcsw);
}

}  // namespace

int cycles_main(const CyclesOptions& o) {
    const Deployment d{"cycles", "default", o.url, {}, {}, {}};
    std::function<void(std::size_t)> run;
    if (o.in_flight == 0) {
        run = [cycle = alone(d, "bench/cycles").work](std::size_t count) {
            while (count-- > 0)
                cycle();
        };
    } else {
        const auto all = std::make_shared<InFlight>(d, o.in_flight, "bench/cycles");
        run = [all](std::size_t count) { all->run_cycles(count); };
    }
    run(std::max<std::size_t>(o.count / 20, 1));  // connected, and what is made once is made
    const double cpu = own_cpu_ms(), switched = switches();
    const auto start = Clock::now();
    run(o.count);
    const double us = 1e6 * seconds_since(start), n = static_cast<double>(o.count);
    fmt::print(
        "{} cycles: {:.2f} us each, {:.2f} us of this process' processor time, {:.2f} "
        "switches of its threads\n",
        o.count, us / n, 1e3 * (own_cpu_ms() - cpu) / n, (switches() - switched) / n);
    return 0;
}

}  // namespace holdfast::bench
