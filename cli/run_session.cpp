// From the guardian's start to the release: what happens before and after the command runs.
#include "run_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "duration.hpp"
#include "exit_code.hpp"
#include "guarded_command.hpp"
#include "holder_text.hpp"
#include "message.hpp"
#include "wait_for_lock.hpp"

namespace holdfast::cli {
namespace {

int not_acquired(const WaitResult& waited, const Client& client, const RunOptions& o,
                 StatusFd& status, std::string_view consequence) {
    const error_code ec = waited.lease.error();
    status.write("not_acquired", {{"reason", ec.message()}});
    if (ec != errc::contended && ec != errc::timed_out) {
        complain(ec, waited.diagnostics, consequence);
        return exit_code(ec);
    }
    if (!voice().quiet) {
        const auto seen = client.inspect(o.name);
        std::string text = in_quotes(o.name) + " is ";
        text += seen && !seen->holders.empty() ? described(*seen) : "held by another client";
        if (ec == errc::timed_out) text += fmt::format("\nGave up after {}.", spoken(o.wait));
        text += fmt::format("\nTo wait for it:  holdfast run -w 60 {} -- ...",
                            in_shell(o.name, "NAME"));
        note(text);
    }
    return o.conflict_exit;
}

std::vector<std::string> environment(const RunOptions& o, const ResolvedBackend& resolved,
                                     const Lease& lease, const Timing& times,
                                     const DeadlineFile& file) {
    std::vector<std::string> e{
        "HOLDFAST_LOCK=" + o.name,
        "HOLDFAST_OWNER=" + std::string(lease.owner_id()),
        "HOLDFAST_BACKEND=" + resolved.settings.scheme,
        fmt::format("HOLDFAST_TTL_MS={}", times.ttl.count()),
        "HOLDFAST_DEADLINE_FILE=" + file.path(),
        "HOLDFAST_PREVIOUS=" + std::string(to_string(lease.previous_holder()))};
    const FencingToken token = lease.fencing_token();
    e.push_back(token ? fmt::format("HOLDFAST_TOKEN={}", token.value) : "HOLDFAST_TOKEN");
    return e;
}

void tell_acquired(const Lease& lease, StatusFd& status) {
    const PreviousHolder previous = lease.previous_holder();
    boost::json::object facts{{"owner", lease.owner_id()}, {"previous", to_string(previous)}};
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

void let_go(Lease& lease, Outcome outcome, StatusFd& status) {
    const LeaseState before = lease.state();
    const ReleaseResult answer = lease.release(outcome);
    status.write("released", {{"result", to_string(answer)},
                              {"outcome", outcome == Outcome::done ? "done" : "abandoned"}});
    if (answer == ReleaseResult::unreachable && before != LeaseState::lost)
        warn(fmt::format("the server did not answer the release: it frees {} within {}",
                         in_quotes(lease.name()),
                         spoken(std::chrono::duration_cast<milliseconds>(lease.valid_until() -
                                                                         boot_clock::now()))));
}

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
        status.finish();
        finish_messages();
    }
};

}  // namespace

RunEnd run_session(const RunOptions& o, const Timing& times, const ResolvedBackend& resolved,
                   const Globals& g, std::string_view consequence) {
    Signals signals;
    messages_never_wait();
    const auto shared_status = std::make_shared<StatusFd>(o.status_fd, o.name);
    StatusFd& status = *shared_status;
    const LastWords last_words{status};
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
    std::optional<DeadlineFile> made;
    try {
        made.emplace();
    } catch (const std::runtime_error& e) {
        complain(fmt::format("{}\n{}", e.what(), consequence));
        return {exit_internal};
    }
    DeadlineFile& file = *made;
    const Removal removal{file};
    std::optional<Client> client;
    // Outlives the guardian, also when an exception ends this: no release before the command's end.
    Lease lease;
    Guardian guardian(plan, file);  // forks: before the client starts its threads

    int exit = 0;
    client = open_client(g, exit, consequence, [shared_status, name = o.name](const Event& e) {
        // The others are reported in their place.
        if (e.kind != Event::Kind::in_doubt) return;
        shared_status->write("in_doubt");
        detail(fmt::format("the server did not answer about {}; resolving the request",
                           in_quotes(name)));
    });
    if (!client) return {exit};
    LockOptions options;
    options.ttl = o.ttl;
    options.max_hold = o.max_hold;
    Diagnostics why;
    auto lock = client->make_lock(o.name, options, &why);
    if (!lock) {
        complain(lock.error(), why, consequence);
        return {exit_code(lock.error())};
    }

    WaitResult waited = wait_for_lock(*client, **lock, o.wait, o.label, signals, guardian, status);
    if (waited.lease) lease = std::move(*waited.lease);
    if (waited.signal != 0 || waited.guardian_died) {
        // Nothing was done under it, so nothing is half done.
        lease.release(Outcome::done);
        if (waited.guardian_died) {
            status.write("not_acquired", {{"reason", "guardian"}});
            complain(
                fmt::format("the guardian process was killed during the wait\n{}", consequence));
            return {exit_internal};
        }
        status.write("not_acquired", {{"reason", "signal"}, {"signal", waited.signal}});
        const bool interrupted = waited.signal == SIGINT || waited.signal == SIGQUIT;
        return {128 + waited.signal, interrupted ? waited.signal : 0};
    }
    if (!waited.lease) return {not_acquired(waited, *client, o, status, consequence)};

    tell_acquired(lease, status);
    file.set_token(lease.fencing_token());
    GuardedCommand command(o, times, lease, file, guardian, signals, status);
    const CommandEnd end = command.run(environment(o, resolved, lease, times, file));
    let_go(lease, end.outcome, status);
    return {end.exit, end.interrupted, end.job};
}

}  // namespace holdfast::cli
