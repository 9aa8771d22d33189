// The program is started behind a gate: a shell that waits for one line and then becomes the
// program. The gate opens once the reaper knows the process group; if we die before that, it never
// opens and the shell ends. So there is no moment at which a crash could leave the program behind.
#include "holdfast/lab/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "holdfast/lab/error.hpp"
#include "proc_table.hpp"
#include "reaper.hpp"
#include "spawn.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr const char* gate = R"(read -r go <&3 || exit 125; exec 3<&-; exec "$@")";

class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

std::string quoted(const std::string& word) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || std::strchr("-_./:=,+@%", c) != nullptr;
    });
    if (plain) {
        return word;
    }
    std::string result = "'";
    for (const char c : word) {
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return result + "'";
}

bool all_stopped(const std::vector<pid_t>& family) {
    return std::all_of(family.begin(), family.end(), [](pid_t pid) {
        const auto states = detail::thread_states(pid);
        return states.find_first_not_of("TZX") == std::string::npos ||
               detail::waits_for_stopped_child(pid);
    });
}

bool all_ended(const std::vector<pid_t>& family) {
    return std::all_of(family.begin(), family.end(), [](pid_t pid) {
        return detail::thread_states(pid).find_first_not_of("ZX") == std::string::npos;
    });
}

bool any_stopped(const std::vector<pid_t>& family) {
    return std::any_of(family.begin(), family.end(), [](pid_t pid) {
        return detail::thread_states(pid).find('T') != std::string::npos;
    });
}

}  // namespace

class Process::Impl {
public:
    explicit Impl(ProcessOptions options) : options_(std::move(options)), owner_(::getpid()) {
        start();
    }

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    ~Impl() {
        if (owner_ != ::getpid()) {
            return;
        }
        try {
            kill();
        } catch (const LabError&) {
            // Not gone in time: the reaper still knows the group and is the last resort.
        }
    }

    pid_t pid() const { return pid_; }
    const ProcessOptions& options() const { return options_; }

    bool alive() {
        const std::lock_guard guard(mutex_);
        return !collect();
    }

    ProcessState state() {
        const std::lock_guard guard(mutex_);
        if (collect()) {
            return ProcessState::exited;
        }
        return all_stopped(detail::family_of(pid_)) ? ProcessState::stopped : ProcessState::running;
    }

    std::vector<pid_t> family() {
        const std::lock_guard guard(mutex_);
        return collect() ? std::vector<pid_t>() : detail::family_of(pid_);
    }

    void signal(int number) {
        const std::lock_guard guard(mutex_);
        if (!collect()) {
            ::kill(pid_, number);
        }
    }

    void kill() {
        std::vector<pid_t> family;
        {
            const std::lock_guard guard(mutex_);
            if (collect()) {
                return;
            }
            // Stopped first, so that the family cannot grow between the look and the blow.
            ::kill(-pid_, SIGSTOP);
            family = detail::family_of(pid_);
            send_all(family, SIGKILL);
            ::kill(-pid_, SIGKILL);
        }
        // A dying worker must not write into a directory that the caller is about to reuse.
        wait_until([&] { return !alive() && all_ended(family); }, default_cap,
                   "end of " + options_.argv[0]);
    }

    void change(int number, bool want_stopped, std::chrono::nanoseconds cap) {
        const auto done = [&] {
            const std::lock_guard guard(mutex_);
            if (collect()) {
                throw LabError(options_.argv[0] + " has ended and cannot be paused or resumed");
            }
            const auto family = detail::family_of(pid_);
            if (want_stopped ? all_stopped(family) : !any_stopped(family)) {
                return true;
            }
            // Sent again at each look: a process forked meanwhile has not had the signal.
            ::kill(-pid_, number);
            send_all(family, number);
            return false;
        };
        wait_until(done, cap,
                   options_.argv[0] + (want_stopped ? " is stopped" : " is running again"));
    }

    ExitStatus terminate(std::chrono::nanoseconds cap) {
        {
            const std::lock_guard guard(mutex_);
            if (!collect()) {
                ::kill(pid_, SIGTERM);
                send_all(detail::family_of(pid_), SIGCONT);
            }
        }
        if (!reached([&] { return !alive(); }, cap)) {
            kill();
        }
        const std::lock_guard guard(mutex_);
        return *status_;
    }

    std::optional<ExitStatus> wait(std::chrono::nanoseconds cap) {
        if (!reached([&] { return !alive(); }, cap)) {
            return std::nullopt;
        }
        const std::lock_guard guard(mutex_);
        return status_;
    }

private:
    void start() {
        const auto program = detail::find_program(options_.argv.at(0));
        if (program.empty()) {
            throw LabError(
                fmt::format("{} is not installed{}", options_.argv[0],
                            options_.package.empty()
                                ? std::string()
                                : fmt::format(": install the Debian package {0} (apt install {0})",
                                              options_.package)));
        }
        const std::string log = options_.log.empty() ? "/dev/null" : options_.log.string();
        const Descriptor output(
            ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        if (output.get() < 0) {
            throw LabError("cannot open the log file " + log);
        }
        int ends[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            throw LabError("cannot make the gate for " + options_.argv[0]);
        }
        const Descriptor ours(ends[0]);
        {
            const Descriptor theirs(ends[1]);
            detail::SpawnRequest request;
            request.argv = {"/bin/sh", "-c", gate, "holdfast-lab-gate", program};
            request.argv.insert(request.argv.end(), options_.argv.begin() + 1, options_.argv.end());
            request.environment = options_.environment;
            request.directory = options_.directory.string();
            request.descriptors = {{output.get(), 1}, {output.get(), 2}, {theirs.get(), 3}};
            pid_ = detail::spawn(request);
        }
        try {
            pin();
            slot_ = detail::Reaper::instance().watch_group(pid_);
        } catch (...) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            throw;
        }
        if (::send(ours.get(), "\n", 1, MSG_NOSIGNAL) != 1) {
            kill();
            throw LabError("cannot start " + options_.argv[0]);
        }
    }

    void pin() {
        if (options_.cpus.empty()) {
            return;
        }
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int cpu : options_.cpus) {
            CPU_SET(static_cast<std::size_t>(cpu), &set);
        }
        if (::sched_setaffinity(pid_, sizeof set, &set) != 0) {
            throw LabError(fmt::format("cannot run {} on the processors asked for: {}",
                                       options_.argv[0], std::strerror(errno)));
        }
    }

    static void send_all(const std::vector<pid_t>& family, int number) {
        for (const pid_t pid : family) {
            ::kill(pid, number);
        }
    }

    // Whether the program has ended. Its leftovers are killed while its zombie still holds the
    // number, so that the group cannot be somebody else's by then.
    bool collect() {
        if (status_) {
            return true;
        }
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != pid_) {
            return false;
        }
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        status_ = ExitStatus{info.si_code != CLD_EXITED, info.si_status};
        detail::Reaper::instance().forget(slot_);
        return true;
    }

    std::mutex mutex_;
    const ProcessOptions options_;
    const pid_t owner_;
    pid_t pid_ = -1;
    std::uint64_t slot_ = 0;
    std::optional<ExitStatus> status_;
};

Process::Process(ProcessOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&&) noexcept = default;
Process::~Process() = default;

pid_t Process::pid() const noexcept {
    return impl_->pid();
}
bool Process::alive() {
    return impl_->alive();
}
ProcessState Process::state() {
    return impl_->state();
}
std::vector<pid_t> Process::family() {
    return impl_->family();
}
void Process::signal(int signal) {
    impl_->signal(signal);
}
void Process::kill() {
    impl_->kill();
}
ExitStatus Process::terminate(std::chrono::nanoseconds cap) {
    return impl_->terminate(cap);
}
void Process::pause(std::chrono::nanoseconds cap) {
    impl_->change(SIGSTOP, true, cap);
}
void Process::resume(std::chrono::nanoseconds cap) {
    impl_->change(SIGCONT, false, cap);
}
std::optional<ExitStatus> Process::wait(std::chrono::nanoseconds cap) {
    return impl_->wait(cap);
}

std::string Process::log_tail(std::size_t lines) const {
    return detail::last_lines(impl_->options().log, lines);
}

std::string Process::command_line() const {
    std::string line;
    for (const auto& word : impl_->options().argv) {
        line += (line.empty() ? "" : " ") + quoted(word);
    }
    return line;
}

}  // namespace holdfast::lab
