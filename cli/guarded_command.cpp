// The loop of `run` while the command runs.
#include "guarded_command.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

#include "duration.hpp"
#include "exit_code.hpp"
#include "holder_text.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

constexpr milliseconds look_again{10};

milliseconds left_until(boot_clock::time_point t) {
    return std::chrono::duration_cast<milliseconds>(t - boot_clock::now());
}

}  // namespace

GuardedCommand::GuardedCommand(const RunOptions& options, const Timing& times, LeaseSet& set,
                               DeadlineFile& file, Guardian& guardian, Signals& signals,
                               StatusFd& status)
    : options_(options),
      times_(times),
      set_(set),
      file_(file),
      guardian_(guardian),
      signals_(signals),
      status_(status) {}

CommandEnd GuardedCommand::run(const std::vector<std::string>& environment) {
    const std::stop_callback on_loss(set_.lost(), [this] { lost_bell_.ring(); });
    const auto ring = [this] { asked_bell_.ring(); };
    std::list<std::stop_callback<decltype(ring)>> on_request;
    for (std::size_t i = 0; i < set_.size(); ++i)
        on_request.emplace_back(set_[i].release_requested(), ring);
    follow_lease();
    if (until_ == boot_clock::time_point{}) {
        say_lost("The command was not started.");
        return {exit_lost, Outcome::done, 0, false};
    }
    const bool foreground = terminal_.hand_over_at_start();
    running_ = guardian_.go(environment, foreground);
    if (!running_) {
        complain("the guardian process was killed: the command was not started");
        return {exit_internal, Outcome::done, 0, false};
    }
    if (foreground) terminal_.handed_over();
    while (running_)
        step(true);
    say_ended("The command was stopped.");
    const bool died = wait_status_ && WIFSIGNALED(*wait_status_);
    had_terminal_ = terminal_.given();
    terminal_.take_back(died);
    impatient_ = impatient_ || interrupted_by() != 0;
    if (!lost_ && !failed_ && !guardian_died_) hold_on();
    return verdict();
}

void GuardedCommand::step(bool guarding) {
    std::array<pollfd, 4> fds{{{guarding ? guardian_.fd() : -1, POLLIN, 0},
                               {signals_.fd(), POLLIN, 0},
                               {lost_ ? -1 : lost_bell_.fd(), POLLIN, 0},
                               {asked_bell_.fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), patience());
    follow_lease();
    status_.flush();
    flush_messages();
    // What the guardian saw comes first: a command that ended in time ended under the lock.
    while (running_ && fds[0].revents != 0) {
        running_ = on_report();
        ::poll(fds.data(), 1, 0);
    }
    if (fds[2].revents != 0) on_lost();
    if (fds[3].revents != 0) on_asked();
    if (fds[1].revents != 0) on_signals();
    if (running_) oversee();
}

boot_clock::time_point GuardedCommand::stop_due() const {
    return std::min(stop_at_, until_ - times_.margin - times_.grace);
}

boot_clock::time_point GuardedCommand::kill_due() const {
    return std::min(kill_at_, until_ - times_.margin);
}

/// How long the loop may sleep: a tick, but never past what oversee() has to do.
int GuardedCommand::patience() const {
    if (!running_) return static_cast<int>(times_.tick.count());
    const auto due = std::max(look_at_, ending_ ? kill_due() : stop_due() + times_.grace / 2);
    const auto left = std::chrono::ceil<milliseconds>(due - boot_clock::now());
    const auto sleep = left > milliseconds::zero() ? left : look_again;
    return static_cast<int>(std::min(sleep, times_.tick).count());
}

/// The deadline is the guardian's to keep, but it may be stopped, or starved, as holdfast may be:
/// then holdfast does the same, SIGTERM half a grace late and SIGKILL in time.
void GuardedCommand::oversee() {
    const auto now = boot_clock::now();
    if (!ending_ && now >= stop_due() + times_.grace / 2) {
        ending_ = true;
        if (now >= until_ - times_.margin - times_.grace) lose();
        guardian_.signal_without(SIGTERM, false);
        guardian_.signal_without(SIGCONT, false);
        say_ended(fmt::format(
            "The guardian process does not answer: sent SIGTERM without it; SIGKILL in {}.",
            spoken(std::max(left_until(kill_due()), milliseconds::zero()))));
    }
    if (now < kill_due() || now < look_at_) return;
    if (unseen_) {
        // It answers, and waits for what neither of us can end.
        look_at_ = now + milliseconds(Refusals::look_again_ms);
        return;
    }
    const Guardian::Left left = guardian_.signal_without(SIGKILL, !guardian_ends_);
    if (left != Guardian::Left::nothing) say_ended("Sent SIGKILL to the command.");
    if (left == Guardian::Left::refused) {
        look_at_ = now + milliseconds(Refusals::look_again_ms);
    } else if (left == Guardian::Left::nothing &&
               now >= kill_due() + std::max(times_.margin, milliseconds(Refusals::looks_take_ms))) {
        // Nothing is to be seen any more, and it does not say so.
        std::string text = "killed the guardian process, which did not answer";
        if (guardian_.kill_without()) text += "; all processes of the command have ended";
        complain(text);
        guardian_died_ = true;
        running_ = false;
    }
}

/// Publishes the deadline after each renewal. Late by at most one tick, which errs on the safe
/// side.
void GuardedCommand::follow_lease() {
    if (lost_ || !set_.valid()) return;
    boot_clock::time_point until = set_.valid_until();
    if (options_.max_hold != forever) until = std::min(until, since_ + options_.max_hold);
    // Earlier than before where the server has set a shorter lease than it was asked for.
    if (until != until_) {
        const bool first = until_ == boot_clock::time_point{}, sooner = until < until_;
        until_ = until;
        file_.set_until(until);
        if (sooner) guardian_.send_signal(0);  // it sleeps until the later one
        if (!first && !sooner) status_.write("renewed", {{"left_ms", left_until(until).count()}});
    }
    const bool at_risk = set_.state() == LeaseState::at_risk;
    if (at_risk && !at_risk_) {
        const RequestError e = last_error();
        boost::json::object facts{{"left_ms", left_until(until_).count()}};
        if (e.code) facts["error"] = clean_utf8(in_words(e));
        status_.write("at_risk", std::move(facts));
        const bool refused = e.code && !is_silence(e.code);
        const std::string text = fmt::format(
            "{} a renewal of {}{}; {} left",
            refused ? "the server refused" : "the server did not answer", in_quotes(options_.names),
            e.code ? ": " + in_words(e) : "", spoken(left_until(until_)));
        if (refused)
            warn(text);
        else
            detail(text);
    }
    if (!at_risk && at_risk_) {
        status_.write("recovered", {{"left_ms", left_until(until_).count()}});
        detail(fmt::format("the server answers renewals of {} again", in_quotes(options_.names)));
    }
    at_risk_ = at_risk;
}

void GuardedCommand::on_signals() {
    while (const auto number = signals_.next())
        on_signal(*number);
}

void GuardedCommand::on_signal(int number) {
    passed_on_.insert(number);
    if (!running_) {
        impatient_ = impatient_ || ends_things(number);
        if (number == SIGTSTP) Terminal::stop_self();
        return;
    }
    if (ends_things(number) && number != SIGHUP) {
        // A user that asks for the end does not want --min-hold after it, nor knows that the
        // command ended a moment ago.
        impatient_ = true;
        const auto now = boot_clock::now();
        const bool again =
            last_end_signal_ != boot_clock::time_point{} && now - last_end_signal_ < times_.grace;
        last_end_signal_ = now;
        if (again) {
            guardian_.kill();
            ending_ = true;
            kill_at_ = std::min(kill_at_, now + times_.margin);
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
            complain(
                fmt::format("{} cannot be executed: {}\nThe lock was acquired and "
                            "released; nothing ran.",
                            in_quotes(options_.path), std::strerror(report->number)));
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
        case Report::unseen:
            unseen_ = true;
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
    ending_ = guardian_ends_ = true;
    switch (why) {
        case End::deadline:
            // A renewal that came just after the guardian had looked is not what it judged by.
            until_ = std::min(until_, boot_clock::now() + left + times_.margin);
            lose();
            not_started_ = guardian_.command() == 0;
            break;
        case End::leftovers:
            note(
                "the command has ended and left processes: stopping them before releasing the "
                "lock");
            break;
        case End::asked:
        case End::orphaned:
            break;
    }
    if (not_started_) return say_ended("The command was not started.");
    say_ended(fmt::format("Sent SIGTERM to the command; SIGKILL in {}.", spoken(left)));
}

void GuardedCommand::on_lost() {
    lost_bell_.clear();
    if (!running_) {
        lose();
        return say_lost("The command had ended.");
    }
    const bool first = !lost_running_;
    lose();
    if (!first) return;
    const auto now = boot_clock::now();
    stop_at_ = std::min(stop_at_, now);
    kill_at_ = std::min(kill_at_, now + times_.grace);
    guardian_.stop();
}

/// Somebody asks for a lock: it is the command's to decide.
void GuardedCommand::on_asked() {
    asked_bell_.clear();
    status_.write("asked");
    note(fmt::format("another client requested the release of {}", in_quotes(options_.names)));
    if (options_.on_ask != 0 && running_ && !ending_) guardian_.send_signal(options_.on_ask);
}

/// From now on the lock is not ours, whatever a renewal may still say.
void GuardedCommand::lose() {
    lost_ = true;
    lost_running_ = lost_running_ || running_;
    file_.set_over();
}

/// Says of a lost lock what has been done about it, once that is so.
void GuardedCommand::say_ended(std::string_view then) {
    if (lost_running_) say_lost(then);
}

void GuardedCommand::say_lost(std::string_view then) {
    if (said_lost_) return;
    said_lost_ = true;
    const std::string why = why_lost();
    status_.write("lost", {{"reason", why}});
    complain(fmt::format("LOST lock {}: {}. {}", name_lost(), why, then));
}

std::string GuardedCommand::name_lost() const {
    for (std::size_t i = 0; i < set_.size(); ++i)
        if (set_[i].lost_reason()) return in_quotes(options_.names[i]);
    return in_quotes(options_.names);
}

std::string GuardedCommand::why_lost() const {
    const error_code reason = set_.lost_reason();
    if (reason == errc::revoked) return "an operator broke it";
    const auto held = std::chrono::duration_cast<milliseconds>(boot_clock::now() - since_);
    if (options_.max_hold != forever && held + times_.grace + times_.margin >= options_.max_hold)
        return fmt::format("--max-hold is {}", spoken(options_.max_hold));
    const RequestError e = last_error();
    // The server itself has said that the lease is gone.
    if (e.code == errc::lost || e.code == errc::revoked)
        return reason.message() + (e.text.empty() ? "" : ": " + e.text);
    if (reason && reason != errc::lost) return reason.message();
    if (until_ == boot_clock::time_point{}) return "the lease had ended before the grant arrived";
    const milliseconds silent = times_.ttl - left_until(until_);
    return fmt::format("no renewal confirmed for {} (ttl {}){}", spoken(silent), spoken(times_.ttl),
                       e.code ? ": " + in_words(e) : "");
}

RequestError GuardedCommand::last_error() const {
    for (std::size_t i = 0; i < set_.size(); ++i)
        if (RequestError e = set_[i].last_error(); e.code) return e;
    return {};
}

/// --min-hold: a job that is shorter than the clocks' difference would run twice.
void GuardedCommand::hold_on() {
    const auto end = since_ + options_.min_hold;
    if (boot_clock::now() < end)
        detail(fmt::format("--min-hold: holding the lock for another {}", spoken(left_until(end))));
    while (!lost_ && !impatient_ && boot_clock::now() < end)
        step(false);
}

int GuardedCommand::interrupted_by() const {
    if (!wait_status_ || !WIFSIGNALED(*wait_status_)) return 0;
    const int number = WTERMSIG(*wait_status_);
    return number == SIGINT || number == SIGQUIT ? number : 0;
}

CommandEnd GuardedCommand::verdict() const {
    if (failed_) {
        const bool missing = *failed_ == ENOENT || *failed_ == ENOTDIR;
        return {missing ? exit_not_found : exit_not_executable, Outcome::done, 0, false};
    }
    // A loss after the command's end, in min_hold, is none: the work was done under the lock.
    if (lost_running_)
        return {exit_lost, not_started_ ? Outcome::done : Outcome::abandoned, 0, false};
    if (guardian_died_ || !wait_status_) return {exit_internal, Outcome::abandoned, 0, false};
    const bool success = WIFEXITED(*wait_status_) && WEXITSTATUS(*wait_status_) == 0;
    const int code =
        WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
    const int interrupted = interrupted_by();
    return {code, success ? Outcome::done : Outcome::abandoned, interrupted,
            had_terminal_ && !passed_on_.contains(interrupted)};
}

}  // namespace holdfast::cli
