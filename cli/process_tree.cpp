// Descendants by way of /proc, and signals by way of pidfds.
#include "process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
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
    if (std::sscanf(rest + 1,
                    " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
                    &p.state, &parent, &group, &p.threads, &p.started) != 5)
        return {};
    p.parent = parent;
    p.group = group;
    return p;
}

/// Its first thread may have ended before the others.
bool lives(const Process& p) {
    return (p.state != 'Z' && p.state != 'X') || p.threads > 1;
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
            if (lives(p)) found.push_back(p);
        }
    }
    return found;
}

bool send_signal(const Process& process, int number) {
    const UniqueFd handle(::pidfd_open(process.pid, 0));
    if (!handle && errno == ESRCH) return true;
    const auto now = look(process.pid);
    if (now ? now->started != process.started : !handle) return true;
    // By its number where there is no handle: another process may have it by now, but hardly.
    const int failed = handle ? ::pidfd_send_signal(handle.get(), number, nullptr, 0)
                              : ::kill(process.pid, number);
    return failed == 0 || errno == ESRCH;
}

bool has_children() noexcept {
    siginfo_t ignored;
    return ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::vector<Process> signal_all(const std::vector<Process>& all, pid_t group, bool leader_waits,
                                int number) {
    const auto member = [group](const Process& p) { return p.group == group; };
    if (group > 0 && (leader_waits || std::any_of(all.begin(), all.end(), member)))
        ::kill(-group, number);
    std::vector<Process> refused;
    for (const Process& p : all) {
        // The group has the signal already: here it is only asked whether it could.
        if (!send_signal(p, member(p) ? 0 : number)) refused.push_back(p);
    }
    return refused;
}

}  // namespace holdfast::cli
