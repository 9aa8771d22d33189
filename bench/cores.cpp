#include "cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::bench {

namespace {

namespace fs = std::filesystem;

std::optional<cpu_set_t> taken;  // the cores before one of them was chosen

std::optional<pid_t> number(const fs::path& entry) {
    const std::string text = entry.filename().string();
    pid_t n = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return n;
}

/// The processes or threads in a folder of /proc.
std::vector<pid_t> numbers(const fs::path& folder) {
    std::vector<pid_t> all;
    std::error_code gone;
    for (fs::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone))
        if (const auto n = number(at->path())) all.push_back(*n);
    return all;
}

pid_t parent_of(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    pid_t parent = 0;
    for (std::string word; status >> word;)
        if (word == "PPid:" && status >> parent) break;
    return parent;
}

/// This process, and all that descend from it.
std::vector<pid_t> ours() {
    std::multimap<pid_t, pid_t> children;
    for (const pid_t process : numbers("/proc"))
        children.emplace(parent_of(process), process);
    std::vector<pid_t> all{getpid()};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [from, to] = children.equal_range(all[i]);
        std::for_each(from, to, [&](const auto& child) { all.push_back(child.second); });
    }
    return all;
}

}  // namespace

int pin_to_one_core() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
    int last = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) last = cpu;
    if (last < 0) return -1;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return -1;
    taken = allowed;
    return last;
}

void use_all_cores() {
    if (!taken) return;
    for (const pid_t process : ours())
        for (const pid_t thread : numbers("/proc/" + std::to_string(process) + "/task"))
            sched_setaffinity(thread, sizeof *taken, &*taken);
    taken.reset();
}

}  // namespace holdfast::bench
