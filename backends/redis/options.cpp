#include "options.hpp"

#include "../resp/server.hpp"
#include "../tls/options.hpp"
#include "holdfast/spi/identity.hpp"

namespace holdfast::redis {
Options::Options(const spi::Settings& s)
    : ttl(s.duration("ttl")),
      prefix(s.text("namespace")),
      plain(s.text("mode") == "plain"),
      queue(!plain && s.text("wait") != "poll"),
      replicas(s.integer("min_replicas_ack")),
      confirm_handover(s.given("handover") && s.text("handover") == "confirmed") {}

const std::vector<spi::OptionSpec>& option_table() {
    using spi::OptionType;
    static const std::vector<spi::OptionSpec> table = tls::with_options({
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
        {.name = "handover",
         .type = OptionType::choice,
         .fallback = "direct",
         .meaning =
             "direct: the message that a release publishes is the next waiter's grant. "
             "confirmed: the waiter confirms it with one more request; for servers where other "
             "users may PUBLISH.",
         .choices = "direct|confirmed",
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
    });
    return table;
}
[[maybe_unused]] const auto& option_table_at_load = option_table();

void check(const spi::Settings& s, Diagnostics& d) {
    if (!resp::database_of(s.path))
        d.add(s.display(), "The path must be the number of a database.",
              "Write for example redis://host:6379/2, or leave the path out for database 0.");
    if (s.text("mode") == "plain" && s.given("wait") && s.text("wait") == "queue")
        d.add(s.display(), "wait=queue does not go with mode=plain, which has no queue.",
              "Leave out mode=plain, or leave out wait.");
    if (s.given("handover") && (s.text("mode") == "plain" || s.text("wait") == "poll"))
        d.add(s.display(), "handover has no effect without a queue.",
              "Leave it out, or leave out mode=plain and wait=poll.");
    tls::check(s, "redis", "rediss", d);
    resp::check_client_name(s, d);
    spi::check_credentials(s, false, d);
}

std::string identity(const spi::Settings& s) {
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
