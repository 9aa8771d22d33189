// From the guardian's start to the release: what happens before and after the command runs.
#include "run_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "duration.hpp"
#include "exit_code.hpp"
#include "failure.hpp"
#include "guarded_command.hpp"
#include "holder_text.hpp"
#include "holdfast/log.hpp"
#include "message.hpp"
#include "metrics_file.hpp"
#include "wait_for_lock.hpp"

namespace holdfast::cli {
namespace {

/// For a semaphore that others use with another number of permits; else nothing.
std::string same_size(const Client& client, const RunOptions& o, const std::string& name) {
    if (o.lock.kind != Kind::semaphore) return {};
    const auto seen = client.inspect(name);
    if (!seen || seen->kind != Kind::semaphore || seen->limit == o.lock.limit) return {};
    return fmt::format("Others use it with --of {}: give the same number.\n", seen->limit);
}

int not_acquired(const WaitResult& waited, const Client& client, const RunOptions& o,
                 StatusFd& status, std::string_view consequence) {
    const error_code ec = waited.set.error();
    const std::string& name = o.names[std::min(waited.failed, o.names.size() - 1)];
    status.write("not_acquired", {{"reason", ec.message()}});
    if (ec != errc::contended && ec != errc::timed_out) {
        const std::string advice = ec == errc::kind_mismatch ? same_size(client, o, name) : "";
        complain(ec, waited.diagnostics, advice + std::string(consequence));
        return exit_code(ec);
    }
    if (!voice().quiet) {
        const auto seen = client.inspect(name);
        std::string text = in_quotes(name) + " is ";
        text += seen && !is_free(*seen) ? described(*seen) : "held by another client";
        if (ec == errc::timed_out) text += fmt::format("\nGave up after {}.", spoken(o.wait));
        text += fmt::format("\nTo wait for it:  holdfast {} -w 60 {} -- ...", o.subcommand,
                            in_shell(name, "NAME"));
        note(text);
    }
    return o.conflict_exit;
}

/// The worst of the parts': what the command has to reckon with.
PreviousHolder previous_of(const LeaseSet& set) {
    constexpr PreviousHolder worst_first[] = {PreviousHolder::crashed, PreviousHolder::abandoned,
                                              PreviousHolder::unknown, PreviousHolder::released};
    for (const PreviousHolder p : worst_first)
        for (std::size_t i = 0; i < set.size(); ++i)
            if (set[i].previous_holder() == p) return p;
    return PreviousHolder::none;
}

/// A word for each lock, in the order of the names.
template <class Word>
std::string words(const LeaseSet& set, Word word) {
    std::string text;
    for (std::size_t i = 0; i < set.size(); ++i)
        text += (i > 0 ? " " : "") + word(set[i]);
    return text;
}

std::vector<std::string> environment(const RunOptions& o, const ResolvedBackend& resolved,
                                     const LeaseSet& set, const Timing& times,
                                     const DeadlineFile& file) {
    bool tokens = true;
    for (std::size_t i = 0; i < set.size(); ++i)
        tokens = tokens && set[i].fencing_token();
    return {
        "HOLDFAST_LOCK=" + fmt::format("{}", fmt::join(o.names, "\n")),
        "HOLDFAST_OWNER=" + words(set, [](const Lease& l) { return std::string(l.owner_id()); }),
        "HOLDFAST_BACKEND=" + resolved.settings.scheme,
        fmt::format("HOLDFAST_TTL_MS={}", times.ttl.count()),
        "HOLDFAST_DEADLINE_FILE=" + file.path(),
        "HOLDFAST_PREVIOUS=" + std::string(to_string(previous_of(set))),
        tokens
            ? "HOLDFAST_TOKEN=" +
                  words(set, [](const Lease& l) { return std::to_string(l.fencing_token().value); })
            : std::string("HOLDFAST_TOKEN")};
}

void tell_acquired(const Lease& lease, StatusFd& status) {
    const PreviousHolder previous = lease.previous_holder();
    boost::json::object facts{{"owner", lease.owner_id()}, {"previous", to_string(previous)}};
    facts["name"] = clean_utf8(lease.name());
    if (lease.fencing_token()) facts["token"] = lease.fencing_token().value;
    status.write("acquired", std::move(facts));
    const std::string name = in_quotes(lease.name());
    if (previous == PreviousHolder::crashed)
        warn(fmt::format("the previous holder of {} crashed: its work may be incomplete", name));
    else if (previous == PreviousHolder::abandoned)
        warn(fmt::format("the previous holder of {} abandoned it: its work may be incomplete",
                         name));
    detail(fmt::format("holding {}, token {}", name, lease.fencing_token().value));
}

void let_go(LeaseSet& set, const RunOptions& o, Outcome outcome, StatusFd& status) {
    const LeaseState before = set.state();
    auto until = boot_clock::now();  // until when the server keeps the last of them by itself
    for (std::size_t i = 0; i < set.size(); ++i)
        until = std::max(until, set[i].valid_until());
    const ReleaseResult answer = set.release(outcome);
    RequestError error;
    for (std::size_t i = 0; i < set.size() && !error.code; ++i)
        error = set[i].last_error();
    const bool failed = answer == ReleaseResult::unreachable && error.code;
    boost::json::object facts{{"result", to_string(answer)}, {"outcome", to_string(outcome)}};
    if (failed) facts["error"] = clean_utf8(in_words(error));
    status.write("released", std::move(facts));
    if (answer != ReleaseResult::unreachable || before == LeaseState::lost) return;
    // A refusal's reason is an event of its own, which may come before or after.
    const bool refused = failed && error.code != errc::unavailable && error.code != errc::in_doubt;
    const bool reason = failed && !refused && !error.text.empty();
    warn(fmt::format("the server did not {} the release{}: it frees {} within {}",
                     failed && !is_silence(error.code) ? "execute" : "answer",
                     reason ? " (" + in_words(error) + ")" : "", in_quotes(o.names),
                     spoken(std::chrono::duration_cast<milliseconds>(until - boot_clock::now()))));
}

/// One Lock for each name; complains and returns nothing on error, with the exit code in `exit`.
std::vector<std::unique_ptr<Lock>> make_locks(const Client& client, const RunOptions& o, int& exit,
                                              std::string_view consequence) {
    LockOptions options = o.lock;
    // Other clients' readers do not count a mutex everywhere (Curator's read-write lock). Where
    // there are no readers a mutex is as exclusive.
    if (o.exclusive && client.capabilities().has(Capability::shared))
        options.kind = Kind::shared_mutex;
    options.ttl = o.ttl;
    // Of several the first is held before the last: the command's own deadline ends all of them.
    if (o.names.size() == 1) options.max_hold = o.max_hold;
    std::vector<std::unique_ptr<Lock>> locks;
    for (const std::string& name : o.names) {
        Diagnostics why;
        auto lock = client.make_lock(name, options, &why);
        if (!lock) {
            complain(lock.error(), why, consequence);
            exit = exit_code(lock.error());
            return {};
        }
        locks.push_back(std::move(*lock));
    }
    return locks;
}

/// What the library reports and nothing else here says. On a thread of the library's.
class Reporter {
public:
    explicit Reporter(std::shared_ptr<StatusFd> status) : status_(std::move(status)) {}

    void operator()(const Event& e) {
        try {
            report(e);
        } catch (const std::bad_alloc&) {  // nothing can be said then
        }
    }

private:
    void report(const Event& e) {
        boost::json::object facts{{"name", clean_utf8(e.name)}};
        switch (e.kind) {
            case Event::Kind::in_doubt:
                status_->write("in_doubt", std::move(facts));
                return detail(log_line(e));
            case Event::Kind::unreachable: {
                // Reported again and again while it lasts.
                if (!unanswered_.insert(e.name).second) return;
                const std::string why = in_words(RequestError{e.reason, e.text});
                if (e.reason || !e.text.empty()) facts["error"] = clean_utf8(why);
                status_->write("unreachable", std::move(facts));
                return warn(
                    fmt::format("no answer from the server while waiting for {} ({}): waiting "
                                "on",
                                in_quotes(e.name), why));
            }
            case Event::Kind::reachable:
                if (unanswered_.erase(e.name) == 0) return;
                status_->write("reachable", std::move(facts));
                return note(
                    fmt::format("the server answers again: waiting for {}", in_quotes(e.name)));
            case Event::Kind::moved:
                status_->write("moved", {{"servers", clean_utf8(e.text)}});
                return detail(log_line(e));
            default:
                return;  // reported in their place
        }
    }

    std::shared_ptr<StatusFd> status_;
    std::set<std::string> unanswered_;  ///< names whose silence was said
};

/// Removes the deadline file whatever happens.
struct Removal {
    DeadlineFile& file;
    ~Removal() {
        file.set_over();
        file.remove();
    }
};

/// What was said and not read yet, after everything else has ended.
struct LastWords {
    StatusFd& status;
    ~LastWords() {
        try {
            status.finish();
            finish_messages();
        } catch (const std::exception&) {
            // No memory for them: the exit code says the rest.
        }
    }
};

GuardianPlan make_plan(const RunOptions& o, const Timing& times, const Signals& signals,
                       const StatusFd& status) {
    GuardianPlan plan;
    plan.path = o.path;
    plan.argv = o.command;
    plan.grace = times.grace;
    plan.margin = times.margin;
    plan.mask = signals.original();
    plan.close_fds.push_back(signals.fd());
    if (o.status_fd > STDERR_FILENO) {
        plan.close_fds.push_back(o.status_fd);
        ::fcntl(o.status_fd, F_SETFD, FD_CLOEXEC);
    }
    if (status.own() >= 0) plan.close_fds.push_back(status.own());
    return plan;
}

/// Nothing was done under the locks, so nothing is half done. Returns how the command ends.
RunEnd wait_was_ended(const WaitResult& waited, LeaseSet& set, StatusFd& status,
                      std::string_view consequence) {
    set.release(Outcome::done);
    if (waited.guardian_died) {
        status.write("not_acquired", {{"reason", "guardian"}});
        complain(fmt::format("the guardian process was killed during the wait\n{}", consequence));
        return {exit_internal};
    }
    status.write("not_acquired", {{"reason", "signal"}, {"signal", waited.signal}});
    const bool interrupted = waited.signal == SIGINT || waited.signal == SIGQUIT;
    return {128 + waited.signal, interrupted ? waited.signal : 0};
}

}  // namespace

RunEnd run_session(const RunOptions& o, const Timing& times, const ResolvedBackend& resolved,
                   const Globals& g, std::string_view consequence) {
    Signals signals;
    messages_never_wait();
    const auto shared_status = std::make_shared<StatusFd>(o.status_fd, o.names);
    StatusFd& status = *shared_status;
    const LastWords last_words{status};
    MetricsFile metrics(o.metrics, resolved.backend->name);
    if (const std::string fault = metrics.write({}); !fault.empty()) {
        complain(fmt::format("{}\n{}", fault, consequence));
        return {exit_config};
    }
    const GuardianPlan plan = make_plan(o, times, signals, status);
    std::optional<DeadlineFile> made;
    try {
        made.emplace();
    } catch (const std::exception& e) {
        return {failed(e, consequence)};
    }
    DeadlineFile& file = *made;
    const Removal removal{file};
    std::optional<Client> client;
    // Outlives the guardian, also when an exception ends this: no release before the command's end.
    LeaseSet set;
    Guardian guardian(plan, file);  // forks: before the client starts its threads

    int exit = 0;
    client = open_client(g, exit, consequence, Reporter(shared_status));
    if (!client) return {exit};
    if (!client->capabilities().has(Capability::cross_process))
        warn(fmt::format(
            "{} excludes nobody: its locks exist in this process only\nUse --local for the "
            "processes of this user, or a server.",
            client->backend()));
    const MetricsUpdates updates(metrics, *client);
    const auto locks = make_locks(*client, o, exit, consequence);
    if (locks.empty()) return {exit};

    const milliseconds least = times.grace + times.margin + times.ttl / 3;
    WaitResult waited = wait_for_locks(*client, locks, o, least, signals, guardian, status);
    if (waited.set) set = std::move(*waited.set);
    if (waited.signal != 0 || waited.guardian_died)
        return wait_was_ended(waited, set, status, consequence);
    if (!waited.set) return {not_acquired(waited, *client, o, status, consequence)};

    for (std::size_t i = 0; i < set.size(); ++i)
        tell_acquired(set[i], status);
    if (set.size() == 1) file.set_token(set[0].fencing_token());
    GuardedCommand command(o, times, set, file, guardian, signals, status);
    const CommandEnd end = command.run(environment(o, resolved, set, times, file));
    let_go(set, o, end.outcome, status);
    return {end.exit, end.interrupted, end.job};
}

}  // namespace holdfast::cli
