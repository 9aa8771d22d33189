#include "options.hpp"

#include <algorithm>

#include "../tls/options.hpp"
#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "protocol/keys.hpp"

namespace holdfast::redis {
namespace {

/// What is asked of the Sentinels alone.
void check_sentinels(const spi::Settings& s, Diagnostics& d) {
    if (!primary_of(s.path))
        d.add(s.display(), "The path must be the name under which the Sentinels watch the primary.",
              "Write for example redis+sentinel://s1,s2,s3/mymaster, or .../mymaster/2 for "
              "database 2.");
    if (s.given("sentinel_tls") && s.scheme != "rediss+sentinel")
        d.add(s.display(), "sentinel_tls has no effect without TLS.",
              "Write rediss+sentinel://, or leave the option out.");
    const bool file = !s.text("sentinel_password_file").empty();
    const bool variable = !s.text("sentinel_password_env").empty();
    if (file && variable)
        d.add(s.display(), "sentinel_password_file and sentinel_password_env are both given.",
              "Give one of them.");
    if (!s.text("sentinel_user").empty() && !file && !variable)
        d.add(s.display(), "sentinel_user has no password.",
              "Add sentinel_password_file or sentinel_password_env, or leave sentinel_user out.");
}

}  // namespace

Options::Options(const spi::Settings& s)
    : ttl(s.duration("ttl")),
      prefix(s.text("namespace")),
      plain(s.text("mode") == "plain"),
      queue(!plain && s.text("wait") != "poll"),
      replicas(s.integer("min_replicas_ack")),
      confirm_handover(of_sentinels(s.scheme) || of_cluster(s.scheme) ||
                       (s.given("handover") && s.text("handover") == "confirmed")),
      sentinels(of_sentinels(s.scheme)),
      confirm(sentinels && s.flag("confirm")),
      cluster(of_cluster(s.scheme)) {}

bool of_sentinels(std::string_view scheme) noexcept {
    return scheme.ends_with("+sentinel");
}

bool of_cluster(std::string_view scheme) noexcept {
    return scheme.ends_with("+cluster");
}

milliseconds patience_with_answers(const spi::Settings& s) {
    return std::min(s.duration("request_timeout") / 2, milliseconds(500));
}

std::optional<PrimaryName> primary_of(std::string_view path) {
    if (path.starts_with('/')) path.remove_prefix(1);
    const auto slash = path.find('/');
    PrimaryName found{std::string(path.substr(0, slash)), 0};
    if (found.name.empty()) return std::nullopt;
    if (slash == path.npos) return found;
    const auto number = resp::database_of(path.substr(slash));
    if (!number) return std::nullopt;
    found.database = *number;
    return found;
}

resp::Target data_target(const spi::Settings& s) {
    resp::Target t(s, s.text("mode") != "plain");
    if (!of_sentinels(s.scheme)) return t;
    t.port = 0;
    // The servers may be where one of the Sentinels is.
    const auto away = [](const spi::Endpoint& e) { return !spi::on_this_machine(e.host); };
    if (const auto at = std::find_if(s.hosts.begin(), s.hosts.end(), away); at != s.hosts.end())
        t.host = at->host;
    if (const auto primary = primary_of(s.path)) t.database = primary->database;
    return t;
}

resp::Target sentinel_target(const spi::Settings& s, const spi::Endpoint& e) {
    resp::Target t;
    t.host = e.host;
    t.port = e.port;
    t.user = s.text("sentinel_user");
    t.password = s.named_password("sentinel_");
    const bool secure = s.scheme == resp::secure_scheme(s.scheme);
    t.tls.on = secure && s.flag("sentinel_tls");
    t.secure = secure ? "sentinel_tls=yes" : "rediss+sentinel://";
    t.clear = "sentinel_tls=no";
    t.display = "Sentinel " + spi::text_of(e);
    t.client_name = s.text("client_name");
    return t;
}

namespace {

using spi::OptionType;

/// Of every way to the server.
std::vector<spi::OptionSpec> with_options(std::vector<spi::OptionSpec> own) {
    std::vector<spi::OptionSpec> rows = {
        {.name = "mode",
         .type = OptionType::choice,
         .fallback = "fenced",
         .meaning =
             "fenced: fencing token, queue, state of the previous holder. plain: only SET NX PX "
             "and compare-and-delete, the well-known pattern.",
         .choices = "fenced|plain",
         .identity = spi::Identity::apart},
        {.name = "wait",
         .type = OptionType::choice,
         .fallback = "queue",
         .meaning = "queue: a release hands the lock to the first waiter. poll: waiters retry "
                    "periodically, which is fair to clients of other libraries on the same name.",
         .choices = "queue|poll",
         .identity = spi::Identity::apart},
        {.name = "min_replicas_ack",
         .type = OptionType::integer,
         .fallback = "0",
         .meaning =
             "A grant or renewal counts only after this many replicas have confirmed it (WAIT). "
             "This makes a double grant by failover less likely, not impossible, and costs one "
             "more round trip.",
         .min = 0,
         .max = 100,
         .identity = spi::Identity::apart},
        resp::client_name_option(),
    };
    rows.insert(rows.end(), own.begin(), own.end());
    return tls::with_options(std::move(rows));
}

}  // namespace

const std::vector<spi::OptionSpec>& option_table() {
    static const auto table = with_options({
        {.name = "handover",
         .type = OptionType::choice,
         .fallback = "direct",
         .meaning =
             "direct: the message that a release publishes is the next waiter's grant. "
             "confirmed: the waiter confirms it with one more request; for servers where other "
             "users may PUBLISH.",
         .choices = "direct|confirmed",
         .identity = spi::Identity::apart},
    });
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

const std::vector<spi::OptionSpec>& sentinel_option_table() {
    static const auto table = with_options({
        {.name = "confirm",
         .type = OptionType::boolean,
         .fallback = "yes",
         .meaning = "A grant or renewal counts only for the ttl from the last moment at "
                    "which a majority of the listed Sentinels was asked and has confirmed the "
                    "primary. No: a client that is cut off with a former primary goes on holding.",
         .identity = spi::Identity::apart},
        {.name = "sentinel_user",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "The user at the Sentinels; by default theirs. The user in the URL is the one "
                    "at the servers with the data.",
         .identity = spi::Identity::apart},
        {.name = "sentinel_password_file",
         .type = OptionType::path,
         .fallback = "",
         .meaning = "File whose first line is the password at the Sentinels. By default none: the "
                    "password of the servers with the data is another one.",
         .identity = spi::Identity::apart},
        {.name = "sentinel_password_env",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "Environment variable with the password at the Sentinels.",
         .identity = spi::Identity::apart},
        {.name = "sentinel_tls",
         .type = OptionType::boolean,
         .fallback = "yes",
         .meaning = "rediss+sentinel: also to the Sentinels. No: these are asked in clear.",
         .identity = spi::Identity::apart},
    });
    return table;
}
[[maybe_unused]] const auto& sentinel_option_table_at_load = sentinel_option_table();

const std::vector<spi::OptionSpec>& cluster_option_table() {
    static const auto table = with_options({});
    return table;
}
[[maybe_unused]] const auto& cluster_option_table_at_load = cluster_option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    const bool sentinels = of_sentinels(s.scheme), cluster = of_cluster(s.scheme);
    if (sentinels) check_sentinels(s, d);
    if (cluster && in_two_slots(s.text("namespace"), "name"))
        d.add(s.display(),
              "The namespace has a \"}\" without a {tag} before it, so the keys of a "
              "name would be in two slots.",
              "Write for example namespace={billing}: (one slot for all names), or leave the "
              "braces out.");
    if (!sentinels && !cluster && !resp::database_of(s.path))
        d.add(s.display(), "The path must be the number of a database.",
              "Write for example redis://host:6379/2, or leave the path out for database 0.");
    if (s.text("mode") == "plain" && s.given("wait") && s.text("wait") == "queue")
        d.add(s.display(), "wait=queue does not go with mode=plain, which has no queue.",
              "Leave out mode=plain, or leave out wait.");
    if (!sentinels && !cluster && s.given("handover") &&
        (s.text("mode") == "plain" || s.text("wait") == "poll"))
        d.add(s.display(), "handover has no effect without a queue.",
              "Leave it out, or leave out mode=plain and wait=poll.");
    tls::check(s, s.scheme, resp::secure_scheme(s.scheme), d);
    resp::check_client_name(s, d);
    spi::check_credentials(s, false, d);
}

std::string identity(const spi::Settings& s) {
    if (of_sentinels(s.scheme)) {
        // Sentinels of one list watch one set of servers. Those of another may watch the same, and
        // the server of a URL without Sentinels may be one of it: of two backends, but one lock.
        const auto primary = primary_of(s.path).value_or(PrimaryName{});
        return spi::IdentityText()
            .part("backend", "redis")
            .open("sentinels", spi::IdentityText().hosts(s.hosts).text())
            .part("primary", primary.name)
            .part("database", std::to_string(primary.database))
            .text();
    }
    // Any servers of a cluster lead to all of it, so lists that differ may be one.
    if (of_cluster(s.scheme))
        return spi::IdentityText()
            .part("backend", "redis")
            .open("cluster", spi::IdentityText().hosts(s.hosts).text())
            .part("database", "0")
            .text();
    // Modes and ways to wait share the keys of a name, and users the keys of a database.
    return spi::IdentityText()
        .hosts(s.hosts)
        .part("database", std::to_string(resp::database_of(s.path).value_or(0)))
        .text();
}

Capabilities promises(const spi::Settings& s) {
    using enum Capability;
    Capabilities c{SafetyClass::d,
                   {cross_process, cross_host, renewal, inspect, list, break_lock,
                    survives_client_clock_jump}};
    if (s.text("mode") == "plain") return c;
    c.set(fencing);
    c.set(previous_holder);
    for (const Capability of_kinds :
         {shared, semaphore, downgrade, lock_delay, min_hold, release_request})
        c.set(of_kinds);
    if (s.text("wait") == "poll") return c;
    c.set(fifo);
    c.set(notified);
    return c;
}

}  // namespace holdfast::redis
