// The loop of `run` while the command runs.
#include "guarded_command.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "duration.hpp"
#include "exit_code.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

milliseconds left_until(boot_clock::time_point t) {
    return std::chrono::duration_cast<milliseconds>(t - boot_clock::now());
}

}  // namespace

GuardedCommand::GuardedCommand(const RunOptions& options, const Timing& times, Lease& lease,
                               DeadlineFile& file, Guardian& guardian, Signals& signals,
                               StatusFd& status)
    : options_(options),
      times_(times),
      lease_(lease),
      file_(file),
      guardian_(guardian),
      signals_(signals),
      status_(status) {}

CommandEnd GuardedCommand::run(const std::vector<std::string>& environment) {
    const std::stop_callback on_loss(lease_.lost(), [this] { lost_bell_.ring(); });
    follow_lease();
    if (until_ == boot_clock::time_point{}) {
        say_lost("The command was not started.");
        return {exit_lost, Outcome::done};
    }
    const bool foreground = terminal_.hand_over_at_start();
    guardian_.go(environment, foreground);
    running_ = true;
    if (foreground) terminal_.handed_over();
    while (running_)
        step(true);
    const bool died = wait_status_ && WIFSIGNALED(*wait_status_);
    terminal_.take_back(died);
    if (!lost_ && !failed_ && !guardian_died_) hold_on();
    return verdict();
}

void GuardedCommand::step(bool guarding) {
    std::array<pollfd, 3> fds{{{guarding ? guardian_.fd() : -1, POLLIN, 0},
                               {signals_.fd(), POLLIN, 0},
                               {lost_ ? -1 : lost_bell_.fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(times_.tick.count()));
    follow_lease();
    // What the guardian saw comes first: a command that ended in time ended under the lock.
    while (running_ && fds[0].revents != 0) {
        running_ = on_report();
        ::poll(fds.data(), 1, 0);
    }
    if (fds[2].revents != 0) on_lost();
    if (fds[1].revents != 0) on_signals();
}

/// Publishes the deadline after each renewal. Late by at most one tick, which errs on the safe
/// side.
void GuardedCommand::follow_lease() {
    if (lost_ || !lease_.valid()) return;
    boot_clock::time_point until = lease_.valid_until();
    if (options_.max_hold != forever) until = std::min(until, since_ + options_.max_hold);
    if (until > until_) {
        const bool first = until_ == boot_clock::time_point{};
        until_ = until;
        file_.set_until(until);
        if (!first) status_.write("renewed", {{"left_ms", left_until(until).count()}});
    }
    const bool at_risk = lease_.state() == LeaseState::at_risk;
    if (at_risk && !at_risk_) {
        status_.write("at_risk", {{"left_ms", left_until(until_).count()}});
        detail(fmt::format("a renewal of {} was not answered; {} left", in_quotes(options_.name),
                           spoken(left_until(until_))));
    }
    at_risk_ = at_risk;
}

void GuardedCommand::on_signals() {
    while (const auto number = signals_.next())
        on_signal(*number);
}

void GuardedCommand::on_signal(int number) {
    if (!running_) {
        impatient_ = impatient_ || ends_things(number);
        if (number == SIGTSTP) Terminal::stop_self();
        return;
    }
    if (ends_things(number) && number != SIGHUP) {
        // Whoever wants the end does not want --min-hold after it, nor knows that the command ended
        // a moment ago.
        impatient_ = true;
        const auto now = boot_clock::now();
        const bool again =
            last_end_signal_ != boot_clock::time_point{} && now - last_end_signal_ < times_.grace;
        last_end_signal_ = now;
        if (again) {
            guardian_.kill();
            return;
        }
    }
    guardian_.send_signal(number);
}

/// False when the guardian has nothing more to say.
bool GuardedCommand::on_report() {
    const auto report = guardian_.receive();
    if (!report) {
        guardian_died_ = true;
        complain("the guardian process was killed: stopping the command");
        guardian_.kill_without();
        return false;
    }
    switch (report->kind) {
        case Report::started:
            detail(fmt::format("started the command as process {}", report->number));
            return true;
        case Report::failed:
            failed_ = report->number;
            complain(fmt::format("{} cannot be executed: {}", in_quotes(options_.path),
                                 std::strerror(report->number)));
            return false;
        case Report::stopped:
            on_stopped(report->number);
            return true;
        case Report::exited: {
            wait_status_ = report->number;
            boost::json::object facts;
            if (WIFSIGNALED(report->number))
                facts["signal"] = WTERMSIG(report->number);
            else
                facts["code"] = WEXITSTATUS(report->number);
            status_.write("child_exit", std::move(facts));
            return true;
        }
        case Report::ending:
            on_ending(static_cast<End>(report->number), milliseconds(report->left_ms));
            return true;
        case Report::gone:
            return false;
    }
    return true;
}

void GuardedCommand::on_stopped(int number) {
    const bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
    if (wants_terminal && !terminal_.given() && terminal_.ours()) {
        terminal_.give(guardian_.command());
        guardian_.send_signal(SIGCONT);
        return;
    }
    // kill -STOP is meant for the command alone.
    if (number != SIGTSTP && !wants_terminal) return;
    const bool had_terminal = terminal_.given();
    terminal_.take_back(true);
    Terminal::stop_self();
    if (had_terminal || wants_terminal) terminal_.give(guardian_.command());
    guardian_.send_signal(SIGCONT);
}

void GuardedCommand::on_ending(End why, milliseconds left) {
    switch (why) {
        case End::deadline: {
            lost_ = lost_running_ = true;
            // A renewal that came just after the guardian had looked is not what it judged by.
            until_ = std::min(until_, boot_clock::now() + left + times_.margin);
            file_.set_over();
            say_lost(fmt::format("Sent SIGTERM to the command; SIGKILL in {}.", spoken(left)));
            break;
        }
        case End::leftovers:
            note(
                "the command has ended and left processes behind: stopping them before the lock "
                "is released");
            break;
        case End::asked:
        case End::orphaned:
            break;
    }
}

void GuardedCommand::on_lost() {
    lost_bell_.clear();
    lost_ = true;
    file_.set_over();
    if (!running_) return say_lost("The command had ended.");
    lost_running_ = true;
    const milliseconds left =
        std::clamp(left_until(until_ - times_.margin), milliseconds::zero(), times_.grace);
    guardian_.stop();
    say_lost(fmt::format("Sent SIGTERM to the command; SIGKILL in {}.", spoken(left)));
}

void GuardedCommand::say_lost(std::string_view then) {
    if (said_lost_) return;
    said_lost_ = true;
    const std::string why = why_lost();
    status_.write("lost", {{"reason", why}});
    complain(fmt::format("LOST lock {}: {}. {}", in_quotes(options_.name), why, then));
}

std::string GuardedCommand::why_lost() const {
    const error_code reason = lease_.lost_reason();
    if (reason == errc::revoked) return "an operator broke it";
    const auto held = std::chrono::duration_cast<milliseconds>(boot_clock::now() - since_);
    if (options_.max_hold != forever && held + times_.grace + times_.margin >= options_.max_hold)
        return fmt::format("--max-hold {} is over", spoken(options_.max_hold));
    if (reason && reason != errc::lost) return reason.message();
    if (until_ == boot_clock::time_point{}) return "it ran out as soon as it was granted";
    const milliseconds silent = times_.ttl - left_until(until_);
    return fmt::format("no renewal confirmed for {} (ttl {})", spoken(silent), spoken(times_.ttl));
}

/// --min-hold: a job that is shorter than the clocks' difference would run twice.
void GuardedCommand::hold_on() {
    const auto end = since_ + options_.min_hold;
    if (boot_clock::now() < end) detail(fmt::format("holding on for {}", spoken(left_until(end))));
    while (!lost_ && !impatient_ && boot_clock::now() < end)
        step(false);
}

CommandEnd GuardedCommand::verdict() const {
    if (failed_) {
        const bool missing = *failed_ == ENOENT || *failed_ == ENOTDIR;
        return {missing ? exit_not_found : exit_not_executable, Outcome::done};
    }
    if (guardian_died_ || !wait_status_) return {exit_internal, Outcome::abandoned};
    const bool success = WIFEXITED(*wait_status_) && WEXITSTATUS(*wait_status_) == 0;
    // Lost later, in min_hold: the work was done under the lock.
    if (lost_running_) return {exit_lost, Outcome::abandoned};
    const int code =
        WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
    return {code, success ? Outcome::done : Outcome::abandoned};
}

}  // namespace holdfast::cli
