// The guardian's loop: orders from holdfast, deaths of processes, and the deadline.
#include "guardian_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "message.hpp"
#include "process_tree.hpp"

namespace holdfast::cli {
namespace {

using time_point = boot_clock::time_point;
using std::chrono::nanoseconds;

constexpr milliseconds look_again{10};

class Loop {
public:
    Loop(const GuardianPlan& plan, DeadlineFile& deadline, UniqueFd socket)
        : plan_(plan), deadline_(deadline), socket_(std::move(socket)) {
        sigset_t only;
        ::sigemptyset(&only);
        ::sigaddset(&only, SIGCHLD);
        deaths_.reset(::signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK));
        timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    }

    /// Returns when nothing is left to guard.
    void run() {
        if (!deaths_ || !timer_) return;
        while (phase_ != Phase::done) {
            arm();
            std::array<pollfd, 3> fds{{{socket_ ? socket_.get() : -1, POLLIN, 0},
                                       {deaths_.get(), POLLIN, 0},
                                       {timer_.get(), POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
            if (fds[0].revents != 0) on_socket();
            if (fds[1].revents != 0) on_deaths();
            on_time();
        }
        // What holdfast leaves in a crash goes, too.
        while (socket_) {
            pollfd end{socket_.get(), POLLIN, 0};
            ::poll(&end, 1, -1);
            char ignored = 0;
            const ssize_t n = ::recv(socket_.get(), &ignored, sizeof ignored, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) socket_.reset();
        }
        deadline_.remove();
    }

private:
    enum class Phase { idle, running, terminating, killing, done };

    // --- holdfast

    void on_socket() {
        std::array<char, largest_order> buffer;
        const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        Order order{};
        if (n < static_cast<ssize_t>(sizeof order)) return on_orphaned();
        std::memcpy(&order, buffer.data(), sizeof order);
        switch (order.kind) {
            case Order::go:
                return start(
                    {buffer.data() + sizeof order, static_cast<std::size_t>(n) - sizeof order},
                    order.number != 0);
            case Order::signal:
                if (!reaped_ && command_ > 0) ::kill(-command_, order.number);
                return;
            case Order::stop:
                return end(End::asked, plan_.grace);
            case Order::kill:
                end(End::asked, milliseconds::zero());
                kill_at_ = boot_clock::now();
                return;
        }
    }

    void on_orphaned() {
        socket_.reset();
        deadline_.set_over();
        if (phase_ == Phase::idle) {
            phase_ = Phase::done;
            return;
        }
        if (phase_ == Phase::running)
            complain(
                "holdfast itself was killed: stopping the command, since nobody renews its lock");
        end(End::orphaned, plan_.grace);
    }

    void start(std::string_view block, bool foreground) {
        std::vector<std::string> environment;
        while (!block.empty()) {
            const std::size_t n = std::min(block.find('\0'), block.size());
            environment.emplace_back(block.substr(0, n));
            block.remove_prefix(std::min(n + 1, block.size()));
        }
        const pid_t child = start_command(plan_, environment, foreground);
        if (child < 0) {
            send({Report::failed, -child, 0});
            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
            }
            phase_ = Phase::done;
            return;
        }
        command_ = child;
        phase_ = Phase::running;
        // Whoever reads our standard output must see its end when the command has ended.
        const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        ::dup2(null.get(), STDIN_FILENO);
        ::dup2(null.get(), STDOUT_FILENO);
        send({Report::started, child, 0});
    }

    void send(Report report) {
        if (socket_) ::send(socket_.get(), &report, sizeof report, MSG_NOSIGNAL);
    }

    // --- processes

    void on_deaths() {
        signalfd_siginfo ignored;
        while (::read(deaths_.get(), &ignored, sizeof ignored) > 0) {
        }
        int status = 0;
        pid_t pid = 0;
        while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
            if (pid != command_) continue;
            if (WIFSTOPPED(status)) {
                send({Report::stopped, WSTOPSIG(status), 0});
                continue;
            }
            reaped_ = true;
            send({Report::exited, status, 0});
            if (phase_ == Phase::running) {
                only_group_ = true;
                if (targets().empty())
                    finish();
                else
                    end(End::leftovers, plan_.grace);
            }
        }
    }

    /// What has to go: everything, but after a normal end of the command only what is left in its
    /// group; a daemon that made its own session was meant to stay.
    std::vector<Process> targets() const {
        std::vector<Process> all = descendants(::getpid());
        if (only_group_)
            std::erase_if(all, [this](const Process& p) { return p.group != command_; });
        return all;
    }

    void signal_all(int number) {
        // The group in one step: nobody in it can fork away. Then those who left it.
        const std::vector<Process> all = targets();
        const bool group_lives =
            !reaped_ || std::any_of(all.begin(), all.end(),
                                    [this](const Process& p) { return p.group == command_; });
        if (group_lives && command_ > 0) ::kill(-command_, number);
        for (const Process& p : all) {
            if (p.group != command_) send_signal(p, number);
        }
    }

    // --- time

    void end(End why, milliseconds grace) {
        if (phase_ == Phase::idle) {
            phase_ = Phase::done;
            return;
        }
        if (why != End::leftovers) only_group_ = false;
        const time_point now = boot_clock::now();
        const time_point kill_at = std::min(now + grace, last_moment());
        if (phase_ == Phase::running) {
            phase_ = Phase::terminating;
            kill_at_ = kill_at;
            signal_all(SIGTERM);
            signal_all(SIGCONT);  // a stopped process could not act on it
            const auto left = std::chrono::duration_cast<milliseconds>(kill_at_ - now).count();
            send({Report::ending, static_cast<std::int32_t>(why), std::max<std::int64_t>(left, 0)});
        } else if (phase_ == Phase::terminating) {
            kill_at_ = std::min(kill_at_, kill_at);
        }
    }

    time_point last_moment() const { return deadline_.until() - plan_.margin; }

    void on_time() {
        const time_point now = boot_clock::now();
        if (phase_ == Phase::running && now >= last_moment() - plan_.grace)
            end(End::deadline, plan_.grace);
        if (phase_ != Phase::terminating && phase_ != Phase::killing) return;
        if (targets().empty() && (reaped_ || !child_waits())) return finish();
        if (phase_ == Phase::terminating && (now >= kill_at_ || now >= last_moment()))
            phase_ = Phase::killing;
        if (phase_ == Phase::killing) signal_all(SIGKILL);
    }

    /// True while the command itself is dead and not reaped: its status must be sent first.
    bool child_waits() {
        on_deaths();
        return !reaped_;
    }

    void finish() {
        send({Report::gone, 0, 0});
        phase_ = Phase::done;
    }

    void arm() {
        time_point at{};
        const time_point now = boot_clock::now();
        switch (phase_) {
            case Phase::running:
                at = last_moment() - plan_.grace;
                break;
            case Phase::terminating:
            case Phase::killing:
                at = now + look_again;
                break;
            case Phase::idle:
            case Phase::done:
                break;
        }
        itimerspec when{};
        if (at != time_point{}) {
            const auto ns = std::max<std::int64_t>(at.time_since_epoch().count(), 1);
            when.it_value = {static_cast<time_t>(ns / 1'000'000'000),
                             static_cast<long>(ns % 1'000'000'000)};
        }
        ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    }

    const GuardianPlan& plan_;
    DeadlineFile& deadline_;
    UniqueFd socket_, deaths_, timer_;
    Phase phase_ = Phase::idle;
    pid_t command_ = 0;
    bool reaped_ = false;
    bool only_group_ = false;
    time_point kill_at_{};
};

}  // namespace

void guardian_main(const GuardianPlan& plan, DeadlineFile& deadline, UniqueFd socket) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    std::signal(SIGCHLD, SIG_DFL);
    ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, "holdfast-guard");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (const int fd : plan.close_fds)
        ::close(fd);
    Loop(plan, deadline, std::move(socket)).run();
    ::_exit(0);
}

}  // namespace holdfast::cli
