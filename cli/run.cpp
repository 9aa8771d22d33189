// `holdfast run`: its options, and what is checked before anything is asked of the server.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "command_path.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "message.hpp"
#include "run_options.hpp"
#include "run_session.hpp"
#include "signals.hpp"
#include "usage_error.hpp"

namespace holdfast::cli {
namespace {

/// The options as they were typed.
struct Typed {
    std::string name, wait, ttl, min_hold, max_hold, grace, label;
    bool nonblock = false;
    bool exclusive = true;  ///< accepted and without effect
    int conflict_exit = exit_contended;
    int status_fd = -1;
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

/// Reads one duration; complains when it is none.
bool read(std::string_view option, const std::string& text, std::optional<milliseconds>& out) {
    if (text.empty()) return true;
    out = parse_wait(text);
    if (out) return true;
    usage(fmt::format("{} takes a time such as 5, 0.5, 250ms, 10s or 1m, not {}", option,
                      in_quotes(text)),
          "run");
    return false;
}

std::optional<RunOptions> checked(const Typed& t, const Globals& g) {
    RunOptions o;
    o.name = t.name;
    o.label = t.label;
    o.conflict_exit = t.conflict_exit;
    o.status_fd = t.status_fd;
    o.command = g.command;
    std::optional<milliseconds> wait, min_hold, max_hold;
    if (!read("--wait", t.wait, wait) || !read("--ttl", t.ttl, o.ttl) ||
        !read("--min-hold", t.min_hold, min_hold) || !read("--max-hold", t.max_hold, max_hold) ||
        !read("--grace", t.grace, o.grace))
        return {};
    o.wait = t.nonblock ? milliseconds::zero() : wait.value_or(forever);
    o.min_hold = min_hold.value_or(o.min_hold);
    o.max_hold = max_hold.value_or(o.max_hold);
    const auto refuse = [](std::string_view why) {
        usage(why, "run");
        return std::nullopt;
    };
    if (o.command.empty())
        return refuse("missing command to run\nUsage:  holdfast run NAME -- COMMAND [ARGUMENT...]");
    if (o.conflict_exit < 0 || o.conflict_exit > 255)
        return refuse("-E takes an exit code from 0 to 255");
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

int run(const Typed& typed, const Globals& g) {
    auto options = checked(typed, g);
    if (!options) return exit_usage;
    const std::string consequence = fmt::format(
        "The lock {} was NOT taken; the command was not started.", in_quotes(options->name));
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
    if (!times) return usage(why, "run");
    const char* outer = std::getenv("HOLDFAST_LOCK");
    if (outer && options->name == outer && options->wait == forever)
        warn(fmt::format("this command already runs under {}: it would wait for itself without end",
                         in_quotes(options->name)));
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

void add_run(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("run", "Run a command while holding a lock");
    auto t = std::make_shared<Typed>();
    sub->add_option("NAME", t->name, "The lock: any text up to 512 bytes")->required();
    auto* n = sub->add_flag("-n,--nonblock,--nb", t->nonblock,
                            "Do not wait: exit 75 if the lock is held");
    sub->add_option("-w,--wait,--timeout", t->wait, "Wait at most this long: 5, 0.5, 30s, 1m")
        ->type_name("TIME")
        ->excludes(n);
    sub->add_option("-E,--conflict-exit-code", t->conflict_exit,
                    "Exit with this code instead of 75")
        ->type_name("CODE");
    sub->add_option("--ttl", t->ttl, "Time the server keeps an unrenewed lock (10s)")
        ->type_name("TIME");
    sub->add_option("--min-hold", t->min_hold, "Hold the lock at least this long")
        ->type_name("TIME");
    sub->add_option("--max-hold", t->max_hold, "Hold it no longer: stop the command, exit 76")
        ->type_name("TIME");
    sub->add_option("--grace", t->grace, "Time from SIGTERM to SIGKILL (2s or ttl/4)")
        ->type_name("TIME");
    sub->add_option("--label", t->label, "Note that inspect shows")->type_name("TEXT");
    sub->add_option("--status-fd", t->status_fd, "Write one JSON line per event to FD")
        ->type_name("FD");
    sub->add_flag("-x,--exclusive,-e", t->exclusive, "For flock users; every lock is exclusive");
    sub->footer(std::string(footer));
    sub->callback([t, &g] { g.action = [t, &g] { return run(*t, g); }; });
}

}  // namespace holdfast::cli
