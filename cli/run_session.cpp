// From the guardian's start to the release: what happens before and after the command runs.
#include "run_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "duration.hpp"
#include "exit_code.hpp"
#include "guarded_command.hpp"
#include "holder_text.hpp"
#include "message.hpp"
#include "wait_for_lock.hpp"

namespace holdfast::cli {
namespace {

std::string name_mistake(const std::string& name, error_code ec) {
    if (name.empty()) return "The name of the lock is empty.";
    if (name.size() > 512)
        return fmt::format("The name of the lock is too long: it has {} bytes.", name.size());
    if (clean_utf8(name) != name) return "The name of the lock is not UTF-8.";
    return "This cannot be the name of a lock: " + ec.message() + ".";
}

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
        text += seen && !seen->holders.empty() ? described(*seen) : "held by another";
        if (ec == errc::timed_out) text += fmt::format("\nGave up after {}.", spoken(o.wait));
        text += fmt::format("\nWait for it:  holdfast run -w 60 {} -- ...", shown(o.name));
        note(text);
    }
    return o.conflict_exit;
}

std::vector<std::string> environment(const RunOptions& o, const Chosen& chosen, const Lease& lease,
                                     const Timing& times, const DeadlineFile& file) {
    std::vector<std::string> e{
        "HOLDFAST_LOCK=" + o.name,
        "HOLDFAST_OWNER=" + std::string(lease.owner_id()),
        "HOLDFAST_BACKEND=" + chosen.settings.scheme,
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
        warn(fmt::format("the previous holder of {} crashed: its work may be half done", name));
    else if (previous == PreviousHolder::abandoned)
        warn(fmt::format("the previous holder of {} gave up: its work may be half done", name));
    detail(fmt::format("holding {}, token {}", name, lease.fencing_token().value));
}

void let_go(Lease& lease, Outcome outcome, StatusFd& status) {
    const LeaseState before = lease.state();
    const ReleaseResult answer = lease.release(outcome);
    status.write("released", {{"result", to_string(answer)},
                              {"outcome", outcome == Outcome::done ? "done" : "abandoned"}});
    if (answer == ReleaseResult::unreachable && before != LeaseState::lost)
        warn(fmt::format("the server did not answer the release: {} frees itself within {}",
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

}  // namespace

int run_session(const RunOptions& o, const Timing& times, const Chosen& chosen, const Globals& g,
                std::string_view consequence) {
    Signals signals;
    StatusFd status(o.status_fd, o.name);
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
    DeadlineFile file;
    const Removal removal{file};
    Guardian guardian(plan, file);  // forks: before the client starts its threads

    int exit = 0;
    const auto client = open_client(g, exit, consequence);
    if (!client) return exit;
    LockOptions options;
    options.ttl = o.ttl;
    options.max_hold = o.max_hold;
    auto lock = client->lock(o.name, options);
    if (!lock) {
        Diagnostics why;
        why.add(client->url(), name_mistake(o.name, lock.error()),
                "A name is 1 to 512 bytes of UTF-8.");
        complain(lock.error(), why, consequence);
        return exit_code(lock.error());
    }

    WaitResult waited = wait_for_lock(*client, **lock, o.wait, o.label, signals, status);
    if (waited.signal != 0) {
        if (waited.lease) waited.lease->release(Outcome::done);
        status.write("not_acquired", {{"reason", "signal"}, {"signal", waited.signal}});
        return 128 + waited.signal;
    }
    if (!waited.lease) return not_acquired(waited, *client, o, status, consequence);

    Lease lease = std::move(*waited.lease);
    tell_acquired(lease, status);
    file.set_token(lease.fencing_token());
    GuardedCommand command(o, times, lease, file, guardian, signals, status);
    const CommandEnd end = command.run(environment(o, chosen, lease, times, file));
    let_go(lease, end.outcome, status);
    return end.exit;
}

}  // namespace holdfast::cli
