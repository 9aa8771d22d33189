// holdfast's side of the guardian.
#include "guardian.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "guardian_process.hpp"
#include "process_tree.hpp"

namespace holdfast::cli {
namespace {

void send_order(int fd, Order order, const std::vector<std::string>& strings = {}) {
    std::string message(sizeof order, '\0');
    std::memcpy(message.data(), &order, sizeof order);
    for (const std::string& s : strings) {
        message += s;
        message += '\0';
    }
    if (message.size() > largest_order)
        throw std::system_error(E2BIG, std::generic_category(), "the command's environment");
    ::send(fd, message.data(), message.size(), MSG_NOSIGNAL);
}

}  // namespace

Guardian::Guardian(const GuardianPlan& plan, DeadlineFile& deadline) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::system_error(errno, std::generic_category(), "cannot make a socket pair");
    socket_.reset(ends[0]);
    UniqueFd theirs(ends[1]);
    // If the guardian is killed, what it guarded is adopted here, and found.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
    if (pid_ == 0) {
        socket_.reset();
        guardian_main(plan, deadline, std::move(theirs));
    }
}

Guardian::~Guardian() {
    socket_.reset();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Guardian::go(const std::vector<std::string>& environment, bool foreground) {
    send_order(socket_.get(), {Order::go, foreground ? 1 : 0}, environment);
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
    return report;
}

void Guardian::kill_without() {
    if (command_ > 0) ::kill(-command_, SIGKILL);
    while (true) {
        const std::vector<Process> left = descendants(::getpid());
        if (left.empty()) return;
        for (const Process& p : left)
            cli::send_signal(p, SIGKILL);
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        std::this_thread::sleep_for(milliseconds(5));
    }
}

}  // namespace holdfast::cli
