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
#include <deque>

#include "message.hpp"
#include "process_tree.hpp"

namespace holdfast::cli {
namespace {

using time_point = boot_clock::time_point;
using std::chrono::nanoseconds;

constexpr milliseconds look_for_descendants{10};

class Loop {
public:
    Loop(const GuardianPlan& plan, DeadlineFile& deadline, UniqueFd socket)
        : plan_(plan), deadline_(deadline), socket_(std::move(socket)) {
        sigset_t only;
        ::sigemptyset(&only);
        ::sigaddset(&only, SIGCHLD);
        deaths_.reset(::signalfd(-1, &only, SFD_CLOEXEC | SFD_NONBLOCK));
        timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
        null_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    }

    /// Returns when nothing is left to guard; false when it cannot go on.
    bool run() {
        if (!deaths_ || !timer_ || !null_) return false;
        while (phase_ != Phase::done) {
            arm();
            const short events = reports_.empty() ? POLLIN : POLLIN | POLLOUT;
            std::array<pollfd, 3> fds{{{socket_ ? socket_.get() : -1, events, 0},
                                       {deaths_.get(), POLLIN, 0},
                                       {timer_.get(), POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return false;
            if ((fds[0].revents & ~POLLOUT) != 0) on_socket();
            send_reports();
            if (fds[1].revents != 0) on_deaths();
            on_time();
            flush_messages();
        }
        finish_messages();
        // What holdfast leaves in a crash goes, too.
        while (socket_) {
            pollfd end{socket_.get(),
                       static_cast<short>(reports_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
            ::poll(&end, 1, -1);
            send_reports();
            char ignored = 0;
            const ssize_t n = ::recv(socket_.get(), &ignored, sizeof ignored, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) socket_.reset();
        }
        deadline_.remove();
        return true;
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
                "holdfast itself was killed: stopping the command, because its lock is no longer "
                "renewed");
        end(End::orphaned, plan_.grace);
    }

    void start(std::string_view block, bool foreground) {
        std::vector<std::string> environment;
        while (!block.empty()) {
            const std::size_t n = std::min(block.find('\0'), block.size());
            environment.emplace_back(block.substr(0, n));
            block.remove_prefix(std::min(n + 1, block.size()));
        }
        // It may have been stopped since it was told to.
        if (boot_clock::now() >= last_moment() - plan_.grace) {
            send({Report::ending, static_cast<std::int32_t>(End::deadline), 0});
            return finish();
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
        // The reader of our standard output must see its end when the command has ended.
        ::dup2(null_.get(), STDIN_FILENO);
        ::dup2(null_.get(), STDOUT_FILENO);
        send({Report::started, child, 0});
    }

    void send(Report report) {
        reports_.push_back(report);
        send_reports();
    }

    /// Never waits: holdfast may be stopped.
    void send_reports() {
        while (socket_ && !reports_.empty()) {
            const Report& first = reports_.front();
            if (::send(socket_.get(), &first, sizeof first, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
                (errno == EAGAIN || errno == EINTR))
                return;
            reports_.pop_front();
        }
    }

    // --- processes

    void on_deaths() {
        signalfd_siginfo ignored;
        while (::read(deaths_.get(), &ignored, sizeof ignored) > 0) {
        }
        int status = 0;
        pid_t pid = 0;
        bool ended = false;
        while ((pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
            if (pid != command_) continue;
            if (WIFSTOPPED(status)) {
                send({Report::stopped, WSTOPSIG(status), 0});
                continue;
            }
            reaped_ = ended = true;
            send({Report::exited, status, 0});
        }
        if (!ended || phase_ != Phase::running) return;
        only_group_ = true;
        if (nothing_is_left())
            finish();
        else
            end(End::leftovers, plan_.grace);
    }

    /// What has to go: everything, but after a normal end of the command only what is left in its
    /// group; a daemon that made its own session was meant to stay.
    std::vector<Process> targets() const {
        std::vector<Process> all = descendants(::getpid());
        if (only_group_)
            std::erase_if(all, [this](const Process& p) { return p.group != command_; });
        return all;
    }

    /// Processes that fork and end at once may hide from a look at /proc, and those of other users
    /// (hidepid), but not from the kernel.
    bool nothing_is_left() const {
        for (int look = 0; look < Refusals::looks; ++look) {
            if (!targets().empty()) return false;
            if (!only_group_) return !has_children();
            if (::kill(-command_, 0) != 0) return errno == ESRCH;
        }
        return true;  // zombies, of a daemon that was meant to stay
    }

    void signal_targets(int number) {
        const std::vector<Process> all = targets();
        const std::vector<Process> refused = signal_all(all, command_, !reaped_, number);
        look_again_ = refused.size() == all.size() && !all.empty()
                          ? milliseconds(Refusals::look_again_ms)
                          : look_for_descendants;
        if (number != SIGKILL) return;
        refusals_.tell(refused);
        in_vain_ = all.empty() ? in_vain_ + 1 : 0;
        if (in_vain_ < Refusals::looks) return;
        if (in_vain_ == Refusals::looks) send({Report::unseen, 0, 0});
        refusals_.tell_unseen();
        look_again_ = milliseconds(Refusals::look_again_ms);
    }

    // --- time

    void end(End why, milliseconds grace) {
        if (phase_ == Phase::idle) {
            phase_ = Phase::done;
            return;
        }
        if (why != End::leftovers) only_group_ = false;
        const time_point now = boot_clock::now();
        if (phase_ == Phase::running) {
            phase_ = Phase::terminating;
            kill_at_ = now + grace;
            signal_targets(SIGTERM);
            signal_targets(SIGCONT);  // a stopped process could not act on it
            const auto left = std::chrono::duration_cast<milliseconds>(kill_due() - now).count();
            send({Report::ending, static_cast<std::int32_t>(why), std::max<std::int64_t>(left, 0)});
        } else if (phase_ == Phase::terminating) {
            kill_at_ = std::min(kill_at_, now + grace);
        }
    }

    time_point last_moment() const { return deadline_.until() - plan_.margin; }
    time_point kill_due() const { return std::min(kill_at_, last_moment()); }

    void on_time() {
        const time_point now = boot_clock::now();
        if (phase_ == Phase::running && now >= last_moment() - plan_.grace)
            end(End::deadline, plan_.grace);
        if (phase_ != Phase::terminating && phase_ != Phase::killing) return;
        on_deaths();
        if (nothing_is_left()) return finish();
        if (phase_ == Phase::terminating && now >= kill_due()) phase_ = Phase::killing;
        if (phase_ == Phase::killing) signal_targets(SIGKILL);
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
                at = phase_ == Phase::killing ? now + look_again_ : now + look_for_descendants;
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
    UniqueFd null_;  ///< opened before anything is started, which needs it
    Refusals refusals_;
    milliseconds look_again_ = look_for_descendants;
    int in_vain_ = 0;             ///< looks that found nothing to kill
    std::deque<Report> reports_;  ///< not sent yet
    Phase phase_ = Phase::idle;
    pid_t command_ = 0;
    bool reaped_ = false;
    bool only_group_ = false;
    time_point kill_at_{};
};

}  // namespace

void guardian_main(const GuardianPlan& plan, DeadlineFile& deadline, UniqueFd socket,
                   pid_t parent) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    std::signal(SIGCHLD, SIG_DFL);
    ::setpgid(0, 0);
    // When holdfast is killed: a guardian that is stopped goes on, and sees that its socket ends.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    if (::getppid() != parent) {
        deadline.remove();
        ::_exit(0);
    }
    ::prctl(PR_SET_NAME, "holdfast-guard");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (const int fd : plan.close_fds)
        ::close(fd);
    ::_exit(Loop(plan, deadline, std::move(socket)).run() ? 0 : 1);
}

}  // namespace holdfast::cli
