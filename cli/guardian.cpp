// holdfast's side of the guardian.
#include "guardian.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>

#include "guardian_process.hpp"

// glibc 2.36 declares these without extern "C".
extern "C" {
#include <sys/pidfd.h>
}

namespace holdfast::cli {
namespace {

constexpr milliseconds short_pause{5};

/// Never waits: a stopped guardian must not stop holdfast. False when it could not be sent.
bool send_order(int fd, Order order, const std::vector<std::string>& strings = {}) {
    std::string message(sizeof order, '\0');
    std::memcpy(message.data(), &order, sizeof order);
    for (const std::string& s : strings) {
        message += s;
        message += '\0';
    }
    if (message.size() > largest_order)
        throw std::system_error(E2BIG, std::generic_category(), "the command's environment");
    return ::send(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/// What a shell started and then left to us by `exec holdfast`.
std::vector<Process> children_so_far() {
    return has_children() ? descendants(::getpid()) : std::vector<Process>();
}

bool same(const Process& a, const Process& b) {
    return a.pid == b.pid && a.started == b.started;
}

/// True unless the environment that it was executed with says otherwise.
bool may_be_of_this_run(pid_t pid, const std::string& deadline_file) {
    std::ifstream in(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    if (!in) return true;
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    return in.bad() || all.find("HOLDFAST_DEADLINE_FILE=" + deadline_file) != std::string::npos;
}

}  // namespace

Guardian::Guardian(const GuardianPlan& plan, DeadlineFile& deadline)
    : plan_(plan), deadline_(deadline), inherited_(children_so_far()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::system_error(errno, std::generic_category(), "cannot create a socket pair");
    socket_.reset(ends[0]);
    UniqueFd theirs(ends[1]);
    // If the guardian is killed, what it guarded is adopted here, and found.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t self = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
    if (pid_ == 0) {
        socket_.reset();
        guardian_main(plan, deadline, std::move(theirs), self);
    }
    handle_.reset(::pidfd_open(pid_, 0));
}

Guardian::~Guardian() {
    socket_.reset();
    const auto now = boot_clock::now();
    if (going_) {
        const auto end = std::min(now + plan_.grace, deadline_.until() - plan_.margin);
        if (!ends_by(end) || !ended_well()) kill_for_certain();
    } else if (!ends_by(now + plan_.margin)) {
        kill_guardian();
    }
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

/// Memory that is missing for a moment must leave nothing of the command running.
void Guardian::kill_for_certain() noexcept {
    constexpr int attempts = 100;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        try {
            kill_without();
            return;
        } catch (const std::exception&) {
            std::this_thread::sleep_for(short_pause);
        }
    }
    if (command_ > 0) ::kill(-command_, SIGKILL);
}

bool Guardian::ends_by(boot_clock::time_point end) const {
    pollfd ended{handle_.get(), POLLIN, 0};
    while (true) {
        siginfo_t info{};
        const int gone =
            ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
        if (gone != 0 || info.si_pid != 0) return true;
        auto left = std::chrono::ceil<milliseconds>(end - std::min(end, boot_clock::now()));
        if (left == milliseconds::zero()) return false;
        if (!handle_) left = std::min(left, short_pause);
        ::poll(&ended, 1, static_cast<int>(left.count()));
    }
}

bool Guardian::ended_well() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_code == CLD_EXITED && info.si_status == 0;
}

void Guardian::kill_guardian() {
    if (handle_)
        ::pidfd_send_signal(handle_.get(), SIGKILL, nullptr, 0);
    else if (!ends_by(boot_clock::now()))
        ::kill(pid_, SIGKILL);
}

bool Guardian::go(const std::vector<std::string>& environment, bool foreground) {
    going_ = send_order(socket_.get(), {Order::go, foreground ? 1 : 0}, environment);
    return going_;
}

void Guardian::send_signal(int number) {
    send_order(socket_.get(), {Order::signal, number});
}
void Guardian::stop() {
    send_order(socket_.get(), {Order::stop, 0});
}
void Guardian::kill() {
    send_order(socket_.get(), {Order::kill, 0});
}

std::optional<Report> Guardian::receive() {
    Report report{};
    ssize_t n = 0;
    while ((n = ::recv(socket_.get(), &report, sizeof report, 0)) < 0 && errno == EINTR) {
    }
    if (n != static_cast<ssize_t>(sizeof report)) return {};
    if (report.kind == Report::started) command_ = report.number;
    if (report.kind == Report::failed || report.kind == Report::gone) going_ = false;
    return report;
}

/// Below the guardian, and what was adopted here if it is dead.
std::vector<Process> Guardian::family() const {
    std::vector<Process> found;
    std::set<pid_t> others;
    for (const Process& p : descendants(::getpid())) {
        const bool inherited = others.contains(p.parent) ||
                               std::any_of(inherited_.begin(), inherited_.end(),
                                           [&p](const Process& i) { return same(i, p); }) ||
                               // An orphan of theirs becomes our child, too.
                               (!inherited_.empty() && p.parent == ::getpid() && p.pid != pid_ &&
                                p.pid != command_ && !may_be_of_this_run(p.pid, deadline_.path()));
        if (inherited)
            others.insert(p.pid);
        else if (p.pid != pid_)
            found.push_back(p);
    }
    return found;
}

Guardian::Left Guardian::signal_without(int number, bool complain) {
    const std::vector<Process> left = family();
    const std::vector<Process> refused = signal_all(left, command_, false, number);
    if (complain) refusals_.tell(refused);
    if (left.empty()) return Left::nothing;
    return refused.size() == left.size() ? Left::refused : Left::some;
}

bool Guardian::kill_without() {
    kill_guardian();
    ends_by(boot_clock::now() + plan_.grace);
    Left left = Left::some;
    int in_vain = 0;
    while (in_vain < Refusals::looks) {
        left = signal_without(SIGKILL, true);
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (left == Left::refused || (left == Left::nothing && !has_children())) break;
        in_vain = left == Left::nothing ? in_vain + 1 : 0;
        std::this_thread::sleep_for(short_pause);
    }
    going_ = false;
    // Children from before our exec may be all that there is.
    const bool unseen = in_vain == Refusals::looks && inherited_.empty();
    if (unseen) refusals_.tell_unseen();
    return left == Left::nothing && !unseen;
}

}  // namespace holdfast::cli
