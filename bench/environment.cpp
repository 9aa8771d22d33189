#include "environment.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <boost/version.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>

namespace holdfast::bench {

namespace {

std::string cpu_model() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::string now_utc() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min);
}

}  // namespace

std::map<std::string, std::string> environment(const Options& options, int pinned_to) {
    utsname kernel{};
    uname(&kernel);
    double load = 0;
    getloadavg(&load, 1);
    std::map<std::string, std::string> env;
    env["date"] = now_utc();
    env["processor"] = cpu_model();
    env["cores"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
    env["kernel"] = fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
    env["load at the start"] = fmt::format("{:.2f}", load);
#ifdef NDEBUG
    env["compiler"] = fmt::format("{} (optimised)", __VERSION__);
#else
    env["compiler"] = fmt::format("{} (with assertions)", __VERSION__);
#endif
    env["hiredis"] = fmt::format("{}.{}.{}", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    env["sqlite"] = sqlite3_libversion();
    env["boost"] = fmt::format("{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000);
    env["placement"] =
        options.placement == Placement::one
            ? (pinned_to >= 0
                   ? fmt::format("client and servers on core {}, on all where faults are made",
                                 pinned_to)
                   : std::string("pinning failed: wherever the kernel put them"))
            : std::string("spread: wherever the kernel put them");
    env["effort"] = options.pick("quick", "normal", "full");
    env["command"] = options.command_line;
    return env;
}

}  // namespace holdfast::bench
