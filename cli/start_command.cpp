// From the guardian to the running command: group, terminal, signals, then exec, in that order.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "guardian_process.hpp"

extern char** environ;

namespace holdfast::cli {
namespace {

std::string_view name_of(std::string_view entry) {
    return entry.substr(0, entry.find('='));
}

/// The environment with `changes` over it; an entry without '=' removes the variable.
std::vector<std::string> merged(const std::vector<std::string>& changes) {
    std::vector<std::string> all;
    for (char** e = environ; *e; ++e) {
        const std::string_view name = name_of(*e);
        bool replaced = false;
        for (const std::string& c : changes)
            replaced = replaced || name_of(c) == name;
        if (!replaced) all.emplace_back(*e);
    }
    for (const std::string& c : changes) {
        if (c.find('=') != std::string::npos) all.push_back(c);
    }
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> p;
    p.reserve(strings.size() + 1);
    for (std::string& s : strings)
        p.push_back(s.data());
    p.push_back(nullptr);
    return p;
}

[[noreturn]] void report_and_exit(int to, int error) {
    [[maybe_unused]] const ssize_t n = ::write(to, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

pid_t start_command(const GuardianPlan& plan, const std::vector<std::string>& environment,
                    bool foreground) {
    std::vector<std::string> words = plan.argv, variables = merged(environment);
    const std::vector<char*> argv = pointers(words), envp = pointers(variables);
    // A script without "#!" is run by the shell, as execvp does.
    std::vector<std::string> shell_words = plan.argv;
    shell_words.front() = plan.path;
    shell_words.insert(shell_words.begin(), "/bin/sh");
    const std::vector<char*> shell_argv = pointers(shell_words);

    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return -errno;
    const UniqueFd in(failure[0]);
    UniqueFd out(failure[1]);
    const pid_t guardian = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return -errno;
    if (child == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != guardian) ::_exit(127);
        // Every signal is blocked here, SIGTTOU too, so this does not stop a background group.
        if (foreground) ::tcsetpgrp(STDIN_FILENO, ::getpid());
        ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
        ::execve(plan.path.c_str(), argv.data(), envp.data());
        if (errno == ENOEXEC) ::execve("/bin/sh", shell_argv.data(), envp.data());
        report_and_exit(out.get(), errno);
    }
    ::setpgid(child, child);
    out.reset();
    int error = 0;
    ssize_t n = 0;
    while ((n = ::read(in.get(), &error, sizeof error)) < 0 && errno == EINTR) {
    }
    return n == static_cast<ssize_t>(sizeof error) ? -error : child;
}

}  // namespace holdfast::cli
