// `holdfast run` and `holdfast elect`: their options, and what is checked before anything is asked
// of the server.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "command_path.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "message.hpp"
#include "option_values.hpp"
#include "run_options.hpp"
#include "run_session.hpp"
#include "signals.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

/// The options as they were typed.
struct Typed {
    std::string subcommand;          ///< "run" or "elect"
    std::vector<std::string> names;  ///< of run
    std::string election;
    std::string wait, ttl, min_hold, max_hold, grace, label, on_ask;
    bool nonblock = false;
    bool exclusive = false;
    bool shared = false;
    std::optional<long> permits, limit;
    int conflict_exit = exit_contended;
    int status_fd = -1;
    std::string metrics;
};

constexpr std::string_view footer =
    "Exit codes: the command's own; 128+n if signal n ended it;\n"
    "  64 wrong usage          75 not acquired (-E changes it)\n"
    "  65 invalid lock name    76 lock lost or revoked while the command ran\n"
    "  69 server unreachable   77 authentication or permission denied\n"
    "  70 internal error       78 wrong configuration\n"
    "  126, 127                the command cannot be executed, was not found\n"
    "The command sees HOLDFAST_LOCK, HOLDFAST_TOKEN, HOLDFAST_OWNER, HOLDFAST_BACKEND,\n"
    "HOLDFAST_TTL_MS, HOLDFAST_PREVIOUS and HOLDFAST_DEADLINE_FILE. A lock excludes only clients\n"
    "that acquire the same name at the same server.";

constexpr std::size_t longest_note = 128;
constexpr int most_names = 4096;

constexpr std::string_view elect_footer =
    "The command runs while this process leads; holdfast leader NAME shows VALUE meanwhile.\n"
    "Exit codes and environment as for run.";

/// Reads one duration; complains when it is none.
bool read(const Typed& t, std::string_view option, const std::string& text,
          std::optional<milliseconds>& out) {
    if (text.empty()) return true;
    out = parse_wait(text);
    if (out) return true;
    usage(fmt::format("{} takes a time such as 5, 0.5, 250ms, 10s or 1m, not {}", option,
                      in_quotes(text)),
          t.subcommand);
    return false;
}

/// By its name, as "TERM" or "SIGTERM"; 0 when there is none.
int signal_named(std::string_view text) {
    if (text.starts_with("SIG")) text.remove_prefix(3);
    for (int n = 1; n < NSIG; ++n) {
        const char* name = ::sigabbrev_np(n);
        if (name != nullptr && text == name) return n;
    }
    return 0;
}

/// Kind, mode and permits. What is wrong, or nothing.
std::string read_kind(const Typed& t, RunOptions& o) {
    if (t.shared && (t.permits || t.limit)) return "--shared and --permits exclude each other";
    if (t.exclusive && (t.permits || t.limit))
        return "--exclusive and --permits exclude each other";
    if (t.permits && !t.limit) return "--permits needs --of: how many permits there are in all";
    if (t.shared) {
        o.lock.kind = Kind::shared_mutex;
        o.mode = Mode::shared;
    }
    o.exclusive = t.exclusive;
    if (!t.limit) return {};
    const long permits = t.permits.value_or(1);
    if (permits > *t.limit)
        return fmt::format("--permits takes a decimal number from 1 to {}, as --of says", *t.limit);
    o.lock.kind = Kind::semaphore;
    o.lock.limit = static_cast<std::uint32_t>(*t.limit);
    o.permits = static_cast<std::uint32_t>(permits);
    return {};
}

/// Each once, in their order.
std::vector<std::string> without_repeats(const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& n : names)
        if (std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
    return out;
}

/// Why the command's environment cannot have these names; empty when it can.
std::string unfit_names(const RunOptions& o) {
    // HOLDFAST_LOCK, HOLDFAST_OWNER (random id, host, process, label) and HOLDFAST_TOKEN.
    constexpr std::size_t room = 96 * 1024, owner_and_token = 22 + 64 + 10 + 20 + 8;
    std::size_t bytes = 0;
    for (const std::string& name : o.names) {
        if (o.names.size() > 1 && name.find('\n') != std::string::npos)
            return fmt::format(
                "{} has a line break: it cannot be one of several names, which "
                "HOLDFAST_LOCK separates by line breaks",
                in_quotes(name));
        bytes += name.size() + owner_and_token + 3 * std::min(o.label.size(), longest_note);
    }
    return bytes <= room ? std::string()
                         : fmt::format(
                               "{} names are too many or too long for the command's "
                               "environment, which has room for {} KiB of them and their "
                               "owner ids",
                               o.names.size(), room / 1024);
}

std::optional<RunOptions> checked(const Typed& t, const Globals& g) {
    RunOptions o;
    o.subcommand = t.subcommand;
    o.names = t.subcommand == "elect" ? std::vector{t.election} : without_repeats(t.names);
    o.label = t.label;
    o.conflict_exit = t.conflict_exit;
    o.status_fd = t.status_fd;
    o.metrics = t.metrics;
    o.command = g.command;
    std::optional<milliseconds> wait, min_hold, max_hold;
    if (!read(t, "--wait", t.wait, wait) || !read(t, "--ttl", t.ttl, o.ttl) ||
        !read(t, "--min-hold", t.min_hold, min_hold) ||
        !read(t, "--max-hold", t.max_hold, max_hold) || !read(t, "--grace", t.grace, o.grace))
        return {};
    o.wait = t.nonblock ? milliseconds::zero() : wait.value_or(forever);
    o.min_hold = min_hold.value_or(o.min_hold);
    o.max_hold = max_hold.value_or(o.max_hold);
    const auto refuse = [&t](const std::string& why) {
        usage(why, t.subcommand);
        return std::nullopt;
    };
    if (const std::string why = unfit_names(o); !why.empty()) return refuse(why);
    if (o.command.empty())
        return refuse(
            fmt::format("missing command to run\nWrite it after --:  holdfast {} NAME -- COMMAND "
                        "[ARGUMENT...]",
                        t.subcommand));
    if (const std::string why = read_kind(t, o); !why.empty()) return refuse(why);
    if (!t.on_ask.empty() && (o.on_ask = signal_named(t.on_ask)) == 0)
        return refuse(fmt::format("--on-ask takes a signal such as TERM or USR1, not {}",
                                  in_quotes(t.on_ask)));
    if (t.subcommand == "elect" && t.label.size() > longest_note)
        return refuse("--value takes at most 128 bytes");
    if (o.ttl && (*o.ttl < milliseconds(100) || *o.ttl > std::chrono::hours(24)))
        return refuse("--ttl takes a time from 100ms to 24h");
    if (o.max_hold <= o.min_hold) return refuse("--max-hold must be longer than --min-hold");
    if (o.status_fd >= 0) {
        const int flags = ::fcntl(o.status_fd, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
            return refuse(fmt::format("--status-fd {} is not open for writing", o.status_fd));
    }
    return o;
}

/// HOLDFAST_LOCK has the names of the locks that this command runs under, a line each.
void warn_of_itself(const RunOptions& o) {
    const char* outer = std::getenv("HOLDFAST_LOCK");
    const char* owners = std::getenv("HOLDFAST_OWNER");
    if (!outer || o.wait != forever) return;
    // A single name may have line breaks itself; there are as many owner ids as names.
    const bool single = owners && !std::strchr(owners, ' ');
    const std::string lines = fmt::format("\n{}\n", outer);
    for (const std::string& name : o.names)
        if (single ? name == outer : lines.find("\n" + name + "\n") != std::string::npos)
            warn(
                fmt::format("this command already runs under {}: it {} wait for itself without end",
                            in_quotes(name), o.lock.kind == Kind::mutex ? "would" : "may"));
}

int run(const Typed& typed, const Globals& g) {
    auto options = checked(typed, g);
    if (!options) return exit_usage;
    const bool one = options->names.size() == 1;
    const std::string consequence = fmt::format(
        "{} {} {} NOT acquired; the command was not started.", one ? "The lock" : "The locks",
        in_quotes(options->names), one ? "was" : "were");
    const CommandPath command = find_command(options->command.front());
    if (command.exit != 0) {
        complain(command.why + '\n' + consequence);
        return command.exit;
    }
    options->path = command.path;
    int exit = 0;
    const auto resolved = choose_backend(g, exit, consequence);
    if (!resolved) return exit;
    std::string why;
    const milliseconds ttl = options->ttl.value_or(resolved->settings.duration("ttl"));
    const auto times = timing(*options, ttl, why);
    if (!times) return usage(why, typed.subcommand);
    warn_of_itself(*options);
    const RunEnd end = run_session(*options, *times, *resolved, g, consequence);
    if (end.interrupted != 0) die_of(end.interrupted, end.job);
    return end.exit;
}

}  // namespace

std::optional<Timing> timing(const RunOptions& o, milliseconds ttl, std::string& why) {
    Timing t{};
    t.ttl = ttl;
    t.margin = std::min({milliseconds(500), ttl / 20, o.max_hold / 20});
    t.tick = std::clamp(ttl / 20, milliseconds(5), milliseconds(500));
    t.grace = std::min({milliseconds(2000), ttl / 4, o.max_hold / 4});
    if (!o.grace) return t;
    t.grace = *o.grace;
    if (t.grace >= ttl / 2) {
        why = fmt::format(
            "--grace {} must be shorter than half the ttl ({}): a renewal needs the rest",
            spoken(t.grace), spoken(ttl));
        return {};
    }
    if (t.grace + t.margin >= o.max_hold) {
        why = "--max-hold must be longer than --grace: SIGTERM comes that long before its end";
        return {};
    }
    return t;
}

namespace {

/// What run and elect have alike.
std::shared_ptr<Typed> add_common(CLI::App* sub, Globals& g) {
    auto t = std::make_shared<Typed>();
    t->subcommand = sub->get_name();
    auto* n = sub->add_flag("-n,--nonblock,--nb", t->nonblock,
                            "Do not wait: exit 75 if the lock is held");
    sub->add_option("-w,--wait,--timeout", t->wait, "Wait at most this long: 5, 0.5, 30s, 1m")
        ->type_name("TIME")
        ->excludes(n);
    sub->add_option("-E,--conflict-exit-code", t->conflict_exit,
                    "Exit with this code instead of 75")
        ->type_name("CODE")
        ->transform(number(0, 255));
    sub->add_option("--ttl", t->ttl, "Time the server keeps an unrenewed lock (10s)")
        ->type_name("TIME");
    sub->add_option("--max-hold", t->max_hold,
                    "Hold it at most this long: stop the command, exit 76")
        ->type_name("TIME");
    sub->add_option("--grace", t->grace, "Time from SIGTERM to SIGKILL (2s or ttl/4)")
        ->type_name("TIME");
    sub->add_option("--on-ask", t->on_ask, "Send the command SIGNAL when a release is requested")
        ->type_name("SIGNAL");
    sub->add_option("--status-fd", t->status_fd, "Write one JSON line per event to FD")
        ->type_name("FD")
        ->transform(number(0, INT_MAX));
    sub->add_option("--metrics", t->metrics, "Keep this run's metrics in FILE, as OpenMetrics text")
        ->type_name("FILE");
    sub->callback([t, &g] { g.action = [t, &g] { return run(*t, g); }; });
    return t;
}

}  // namespace

void add_run(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("run", "Run a command while holding a lock, or several");
    const auto t = add_common(sub, g);
    // Not an open number of them: the parser would make two names of "[a,b]".
    sub->add_option("NAME", t->names, "The lock, or several: any text up to 512 bytes")
        ->option_text("TEXT ... REQUIRED")
        ->required()
        ->expected(most_names)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    auto* s = sub->add_flag("-s,--shared", t->shared, "Hold it beside other shared holders");
    sub->add_flag("-x,--exclusive,-e", t->exclusive,
                  "Hold it alone, and beside no shared holder of any client")
        ->excludes(s);
    sub->add_option("--permits", t->permits, "Hold K permits of a semaphore (1)")
        ->type_name("K")
        ->transform(number(1, 256));
    sub->add_option("--of", t->limit,
                    "The semaphore has N permits; all clients must use the same N")
        ->type_name("N")
        ->transform(number(1, 65'535));
    sub->add_option("--min-hold", t->min_hold, "Hold the lock at least this long")
        ->type_name("TIME");
    sub->add_option("--label", t->label, "Note that inspect shows")->type_name("TEXT");
    sub->footer(std::string(footer));
}

void add_elect(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("elect", "Run a command while leading an election");
    const auto t = add_common(sub, g);
    sub->add_option("NAME", t->election, "The election: any text up to 512 bytes")->required();
    sub->add_option("--value", t->label, "What leader shows, up to 128 bytes (the host's name)")
        ->type_name("TEXT");
    sub->footer(std::string(elect_footer));
}

}  // namespace holdfast::cli
