// Folder, processes and files of the demonstrations.
#include "demo_stage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "unique_fd.hpp"

extern char** environ;

namespace holdfast::cli {

TempFolder::TempFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base && *base == '/' ? base : "/tmp") + "/holdfast-demo-XXXXXX";
    if (!::mkdtemp(path_.data()))
        throw std::system_error(errno, std::generic_category(),
                                "cannot create a temporary directory");
}

TempFolder::~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

pid_t Workers::start(const DemoJob& job) {
    std::vector<std::string> words{"holdfast",
                                   "__demo",
                                   job.role,
                                   job.name,
                                   job.file,
                                   job.second_file,
                                   std::to_string(job.count),
                                   std::to_string(job.crowd),
                                   job.locked ? "1" : "0",
                                   std::to_string(job.seed)};
    std::vector<std::string> variables{"HOLDFAST_DEMO_TARGET=" + target_,
                                       "HOLDFAST_DEMO_CONFIG=" + config_};
    for (char** e = environ; *e; ++e)
        variables.emplace_back(*e);
    const auto pointers = [](std::vector<std::string>& strings) {
        std::vector<char*> p;
        p.reserve(strings.size() + 1);
        for (std::string& s : strings)
            p.push_back(s.data());
        p.push_back(nullptr);
        return p;
    };
    const std::vector<char*> argv = pointers(words), envp = pointers(variables);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), envp.data());
    if (error != 0)
        throw std::system_error(error, std::generic_category(), "cannot start a worker");
    running_.push_back(pid);
    return pid;
}

bool Workers::join() {
    bool good = true;
    for (const pid_t pid : running_) {
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    running_.clear();
    return good;
}

bool Workers::busy() const {
    return std::any_of(running_.begin(), running_.end(), [](pid_t pid) {
        siginfo_t info{};
        const int options = WEXITED | WNOHANG | WNOWAIT;
        return ::waitid(P_PID, static_cast<id_t>(pid), &info, options) == 0 && info.si_pid == 0;
    });
}

void Workers::kill(pid_t pid) {
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::erase(running_, pid);
}

Workers::~Workers() {
    for (const pid_t pid : running_)
        ::kill(pid, SIGKILL);
    join();
}

long read_number(const std::string& path) {
    std::ifstream in(path);
    long n = 0;
    in >> n;
    return n;
}

// One write of one width: writers without a lock may overwrite one another, but never mix digits.
void write_number(const std::string& path, long n) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string text = fmt::format("{:>19}\n", n);
    [[maybe_unused]] const ssize_t written = ::write(fd.get(), text.data(), text.size());
}

void append_line(const std::string& path, const std::string& line) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string text = line + '\n';
    [[maybe_unused]] const ssize_t n = ::write(fd.get(), text.data(), text.size());
}

std::vector<std::string> read_lines(const std::string& path) {
    std::ifstream in(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

bool wait_for_lines(const std::string& path, std::size_t lines, milliseconds cap,
                    const std::function<void()>& meanwhile) {
    const auto end = boot_clock::now() + cap;
    while (read_lines(path).size() < lines) {
        if (boot_clock::now() > end) return false;
        if (meanwhile) meanwhile();
        std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
}

bool fenced_write(const std::string& path, std::uint64_t token, const std::string& value) {
    const UniqueFd gate(::open((path + ".gate").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ::flock(gate.get(), LOCK_EX);
    std::uint64_t highest = 0;
    std::ifstream(path) >> highest;
    if (token == 0 || token < highest) return false;
    std::ofstream(path) << token << ' ' << value << '\n';
    return true;
}

std::string fenced_read(const std::string& path) {
    const auto lines = read_lines(path);
    return lines.empty() ? std::string() : lines.front();
}

}  // namespace holdfast::cli
