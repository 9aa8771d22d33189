// Descendants by way of /proc, and signals by way of pidfds.
#include "process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "unique_fd.hpp"

// glibc 2.36 declares these without extern "C".
extern "C" {
#include <sys/pidfd.h>
}

namespace holdfast::cli {
namespace {

std::optional<Process> look(pid_t pid) {
    const UniqueFd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    char text[1024];
    const ssize_t n = ::read(fd.get(), text, sizeof text - 1);
    if (n <= 0) return {};
    text[n] = '\0';
    // The command's name may contain anything, so the fields are counted from its last parenthesis.
    const char* rest = std::strrchr(text, ')');
    if (!rest) return {};
    Process p;
    p.pid = pid;
    int parent = 0, group = 0;
    if (std::sscanf(
            rest + 1,
            " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
            &p.state, &parent, &group, &p.started) != 4)
        return {};
    p.parent = parent;
    p.group = group;
    return p;
}

}  // namespace

std::vector<Process> processes() {
    std::vector<Process> all;
    DIR* dir = ::opendir("/proc");
    if (!dir) return all;
    while (const dirent* entry = ::readdir(dir)) {
        char* end = nullptr;
        const long pid = std::strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end != '\0') continue;
        if (auto p = look(static_cast<pid_t>(pid))) all.push_back(*p);
    }
    ::closedir(dir);
    return all;
}

std::vector<Process> descendants(pid_t root) {
    const std::vector<Process> all = processes();
    std::vector<Process> found;
    std::set<pid_t> family{root};
    for (bool grew = true; grew;) {
        grew = false;
        for (const Process& p : all) {
            if (!family.contains(p.parent) || !family.insert(p.pid).second) continue;
            grew = true;
            if (p.state != 'Z' && p.state != 'X') found.push_back(p);
        }
    }
    return found;
}

void send_signal(const Process& process, int number) {
    const UniqueFd handle(::pidfd_open(process.pid, 0));
    if (!handle) return;
    const auto now = look(process.pid);
    if (!now || now->started != process.started) return;
    ::pidfd_send_signal(handle.get(), number, nullptr, 0);
}

}  // namespace holdfast::cli
