#include "measure/cpu.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast::bench {

double own_cpu_ms() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return 1e3 * static_cast<double>(used.tv_sec) + 1e-6 * static_cast<double>(used.tv_nsec);
}

double cpu_ms_of(const std::vector<pid_t>& processes) {
    double sum = 0;
    for (const pid_t pid : processes) {
        // In nanoseconds by thread; the figure of a whole process comes in steps of 10 ms.
        std::error_code gone;
        const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
        for (const auto& thread : std::filesystem::directory_iterator(threads, gone)) {
            double ns = 0;
            if (std::ifstream(thread.path() / "schedstat") >> ns) sum += 1e-6 * ns;
        }
    }
    return sum;
}

}  // namespace holdfast::bench
