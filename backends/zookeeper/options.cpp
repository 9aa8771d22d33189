#include "options.hpp"

#include "holdfast/spi/identity.hpp"
#include "nodes.hpp"
#include "validity.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr std::string_view default_base = "/holdfast";

bool proper_path(std::string_view path) noexcept {
    if (path.empty()) return true;
    if (path.front() != '/' || path.size() > 512) return false;
    std::size_t begin = 1;
    while (begin <= path.size()) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view part = path.substr(begin, end - begin);
        if (part.empty() || part == "." || part == "..") return false;
        for (const char c : part)
            if (c <= ' ' || c > '~') return false;
        begin = end + 1;
    }
    return !path.starts_with("/zookeeper/") && path != "/zookeeper";
}

std::string_view without_end(std::string_view path) noexcept {
    while (path.size() > 1 && path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

}  // namespace

Options::Options(const spi::Settings& s)
    : hosts(s.hosts),
      base(without_end(s.path)),
      prefix(s.text("namespace")),
      user(s.user),
      password(s.password),
      ttl(s.duration("ttl")),
      tick(s.duration("tick_time")),
      creator_acl(s.text("acl") == "creator"),
      robust(s.flag("robust")),
      containers(s.text("parents") == "container"),
      latch(s.text("node") == "latch-"),
      display(s.display()) {
    if (base.empty()) base = default_base;
    if (base == "/") base.clear();
}

std::string parent_path(const Options& o, std::string_view name) {
    std::string full = o.prefix;
    full += name;
    return o.base + "/" + escape(full, o.base.empty());
}

std::string too_short(std::string_view what, milliseconds length, milliseconds tick) {
    if (length >= Validity::least_timeout(tick)) return {};
    return "A " + std::string(what) + " of " + spi::format_duration(length) +
           " is too short with tick_time=" + spi::format_duration(tick) +
           ": three heartbeats, half a tick_time apart, have to fit in, and leave time to stop.";
}

std::string too_short_remedy(milliseconds tick) {
    return "Set ttl to at least " + spi::format_duration(Validity::least_timeout(tick)) +
           ", or tick_time to the tickTime of the servers if that is less.";
}

const std::vector<spi::OptionSpec>& option_table() {
    using spi::OptionType;
    static const std::vector<spi::OptionSpec> table{
        {.name = "robust",
         .type = OptionType::boolean,
         .fallback = "no",
         .meaning = "Report the state of the previous holder (previous_holder). Costs one more "
                    "write per grant.",
         .identity = spi::Identity::apart},
        {.name = "acl",
         .type = OptionType::choice,
         .fallback = "open",
         .meaning =
             "Access to the nodes. open: every client. creator: only this user; requires a user "
             "and a password.",
         .choices = "open|creator",
         .identity = spi::Identity::apart},
        {.name = "auth",
         .type = OptionType::choice,
         .fallback = "digest",
         .meaning = "Authentication scheme. sasl is refused: Debian's client library has none.",
         .choices = "digest|sasl",
         .identity = spi::Identity::apart},
        {.name = "tls",
         .type = OptionType::boolean,
         .fallback = "no",
         .meaning = "yes is refused: Debian's client library has no TLS, and that of others waits "
                    "for a silent server without end.",
         .identity = spi::Identity::apart},
        {.name = "parents",
         .type = OptionType::choice,
         .fallback = "container",
         .meaning = "Parent node of each lock. container: the server removes it when it is empty. "
                    "persistent: it stays. Servers without container nodes always get "
                    "persistent ones.",
         .choices = "container|persistent",
         .identity = spi::Identity::apart},
        {.name = "node",
         .type = OptionType::choice,
         .fallback = "lock-",
         .meaning =
             "How the node of a mutex is called: as those of Curator's InterProcessMutex and "
             "LeaderSelector, or as those of its LeaderLatch, which counts no others.",
         .choices = "lock-|latch-",
         .identity = spi::Identity::part},
        {.name = "tick_time",
         .type = OptionType::duration,
         .fallback = "3s",
         .meaning = "tickTime of the servers (3s unless their configuration sets it). It must not "
                    "be less than theirs: exclusion depends on it. The ttl must be at least "
                    "three times tick_time.",
         .min = 10,
         .max = 60'000,
         .identity = spi::Identity::apart},
    };
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    if (s.flag("tls"))
        d.add("", "zookeeper:// has no TLS: the client library has none that can be relied on.",
              "Leave tls out and put a tunnel (stunnel for instance) between this host and the "
              "servers.");
    if (s.text("auth") == "sasl")
        d.add("", "zookeeper:// has no SASL: the client library has none.",
              "Use auth=digest with a user and password_file or password_env.");
    if (!proper_path(without_end(s.path)) && s.path != "/")
        d.add(
            "", "The path must be that of a node: /locks or /app/locks.",
            "Use printable characters without blanks, and not /zookeeper, which is the server's.");
    spi::check_credentials(s, true, d);
    if (s.user.find(':') != std::string::npos)
        d.add("", "A user's name cannot contain a colon: digest authentication ends it there.",
              "Choose another user.");
    if (s.text("acl") == "creator" && s.user.empty())
        d.add("", "acl=creator needs a user.",
              "Add a user and password_file or password_env, or leave acl out.");
    const milliseconds tick = s.duration("tick_time");
    if (std::string words = too_short("ttl", s.duration("ttl"), tick); !words.empty())
        d.add("", std::move(words), too_short_remedy(tick));
}

std::string identity(const spi::Settings& s) {
    // Only of a mutex a client with other nodes counts none.
    return spi::IdentityText()
        .hosts(s.hosts)
        .part("path", Options(s).base)
        .open("node", s.text("node"))
        .text();
}

Capabilities promises(const spi::Settings& s) {
    using enum Capability;
    const bool ensemble = s.hosts.size() >= 3;
    Capabilities c{ensemble ? SafetyClass::a : SafetyClass::b,
                   {fencing, fifo, notified, cross_process, cross_host, renewal, inspect, list,
                    break_lock, shared, semaphore, downgrade, lock_delay, release_request, watch,
                    survives_client_clock_jump, survives_server_crash}};
    c.set(survives_failover, ensemble);
    c.set(previous_holder, s.flag("robust"));
    return c;
}

}  // namespace holdfast::zookeeper
