// What this server is, and what follows for its locks: `holdfast doctor`, probe and `require`.
#include "holdfast/spi/common_checks.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "questions.hpp"

namespace holdfast::postgresql {
namespace {

using Found = std::optional<spi::Judgement>;

Found judge_setting(const spi::Facts& f, const char* name) {
    const std::string words = std::string(name) + " is " + std::string(f.text(name));
    return f.text(name) == "on" ? spi::sound(words) : spi::unsafe(words);
}

Found judge_fsync(const spi::Facts& f) {
    return judge_setting(f, "fsync");
}

Found judge_full_page_writes(const spi::Facts& f) {
    return judge_setting(f, "full_page_writes");
}

Found judge_table(const spi::Facts& f) {
    return f.text("persistence") == "p" ? spi::sound() : spi::unsafe("the table is UNLOGGED");
}

Found judge_primary_key(const spi::Facts& f) {
    std::string words;
    if (f.text("has_key") == "f") words = "no unique index on (name, slot)";
    if (const auto n = f.number("doubled").value_or(0); n > 0)
        words += (words.empty() ? "" : ", and ") + std::to_string(n) +
                 (n == 1 ? " name has several rows" : " names have several rows");
    return words.empty() ? spi::sound() : spi::unsafe(words);
}

Found judge_subscription(const spi::Facts& f) {
    return f.text("subscribed") == "t"
               ? spi::unsafe("a logical subscription of this database writes into the table")
               : spi::sound();
}

/// Without the first three no name, or no new one, is granted; deletions only keep it small.
Found judge_rights(const spi::Facts& f) {
    const auto missing = f.text("missing_rights");
    if (missing.empty()) return spi::sound();
    return spi::slow("this role lacks " + std::string(missing) + " on holdfast_lease");
}

Found judge_standbys(const spi::Facts& f) {
    const auto n = f.number("standbys").value_or(0);
    if (n == 0) return spi::sound("no standbys");
    const auto how = f.text("some_asynchronous");
    const bool named = !f.text("standby_names").empty();
    const auto synchronous = f.number("synchronous").value_or(0);
    if (f.text("promotes") == "synchronous" && named && synchronous > 0)
        return spi::sound(std::to_string(n) +
                          (n == 1 ? " standby follows, " : " standbys follow, ") +
                          std::to_string(synchronous) +
                          " of them synchronous; that no other one is promoted is believed, "
                          "because promotes=synchronous says so");
    const bool waits = named && (how == "f" || (how.empty() && n == 1));
    const std::string words =
        std::to_string(n) + (n == 1 ? " standby follows" : " standbys follow");
    return waits ? spi::sound(words + ", and each commit waits")
                 : spi::unsafe(words + ", and a commit does not wait for all");
}

Found judge_missing_standby(const spi::Facts& f) {
    if (f.text("standby_names").empty()) return {};
    const std::string words =
        "synchronous_standby_names is " + std::string(f.text("standby_names"));
    // A role that may not know how they follow cannot tell.
    if (f.number("standbys").value_or(0) > 0 && f.text("some_asynchronous").empty())
        return spi::unknown(
            words +
            ", and this role has no permission to see the state of standbys (GRANT pg_monitor)");
    return f.number("synchronous").value_or(0) == 0
               ? spi::slow(words + ", and no standby is synchronous")
               : spi::sound(words);
}

Found judge_pooler(const spi::Facts& f) {
    if (f.has("listen")) return {};
    return f.text("pooled") == "1" ? spi::slow("behind a connection pooler") : spi::sound();
}

Found judge_listen(const spi::Facts& f) {
    if (!f.has("listen")) return {};
    return f.text("listen").empty() ? spi::sound("a notification arrived over listen")
                                    : spi::slow("listen: " + std::string(f.text("listen")));
}

/// Of a host of the URL, beside the one that serves.
Found judge_cluster(const spi::Facts& f) {
    if (!f.has("cluster") || !f.has("cluster_of_primary")) return {};
    return f.text("cluster") == f.text("cluster_of_primary")
               ? spi::sound()
               : spi::unsafe("its system identifier is " + std::string(f.text("cluster")) +
                             ", and that of the primary " +
                             std::string(f.text("cluster_of_primary")));
}

Found judge_primaries(const spi::Facts& f) {
    if (!f.has("recovering")) return {};
    if (f.text("recovering") == "t") return spi::sound("a standby");
    if (f.text("read_only") == "on") return spi::sound("it takes no writes");
    std::string words = "it takes writes as well";
    if (f.has("timeline") && f.has("timeline_of_primary"))
        words += ", on timeline " + std::string(f.text("timeline")) + " beside " +
                 std::string(f.text("timeline_of_primary"));
    return spi::unsafe(words);
}

Found judge_host(const spi::Facts& f) {
    if (f.has("silent")) return spi::slow(std::string(f.text("silent")));
    return f.has("recovering") ? spi::sound() : Found();
}

Found judge_connections(const spi::Facts& f) {
    const auto most = f.number("max_connections"), now = f.number("connections");
    if (!most || !now) return {};
    const std::string words =
        std::to_string(*now) + " of max_connections = " + std::to_string(*most) + " are in use";
    // A client takes three, and up to eight for blocking calls.
    return *most - *now < 11 ? spi::slow(words) : spi::sound(words);
}

Found judge_statement_timeout(const spi::Facts& f) {
    const auto ms = f.number("statement_timeout");
    if (!ms) return {};
    const std::string words = "statement_timeout is " + std::to_string(*ms) + " ms";
    return *ms > 0 && *ms < 1000 ? spi::slow(words) : spi::sound(words);
}

Found judge_idle_timeout(const spi::Facts& f) {
    const auto ms = f.number("idle_timeout");
    if (!ms) return {};
    const std::string words = "idle_session_timeout is " + std::to_string(*ms) + " ms";
    return *ms > 0 && *ms < 60'000 ? spi::slow(words) : spi::sound(words);
}

Found judge_autovacuum(const spi::Facts& f) {
    return f.text("autovacuum") == "on" ? spi::sound() : spi::slow("autovacuum is off");
}

Found judge_dead_rows(const spi::Facts& f) {
    const auto dead = f.number("dead_rows");
    if (!dead) return {};
    const std::string words = std::to_string(*dead) + " dead rows in holdfast_lease";
    return *dead > 100'000 ? spi::slow(words) : spi::sound(words);
}

Found judge_transaction_age(const spi::Facts& f) {
    const auto age = f.number("transaction_age");
    if (!age) return {};
    const std::string words =
        "the oldest transaction is " + std::to_string(*age / 1'000'000) + " million old";
    return *age > 1'500'000'000 ? spi::slow(words) : spi::sound(words);
}

Found judge_tokens(const spi::Facts& f) {
    constexpr long long most = 9'000'000'000'000'000'000;
    const auto last = f.number("last_token");
    if (!last) return {};
    const std::string words = "the last token is " + std::to_string(*last);
    return *last > most ? spi::unsafe(words) : spi::sound(words);
}

constexpr std::string_view forgets = "a crash of the server's machine forgets grants";

constexpr spi::Check checks[] = {
    {"postgresql.fsync", forgets, "fsync = on, and reload", judge_fsync},
    {"postgresql.full_page_writes", forgets, "full_page_writes = on, and reload",
     judge_full_page_writes},
    {"postgresql.table", forgets, "ALTER TABLE holdfast_lease SET LOGGED", judge_table},
    {"postgresql.primary_key", "a name that has two rows is granted twice",
     "stop every client, delete the rows that are doubled, and ALTER TABLE holdfast_lease ADD "
     "PRIMARY KEY (name, slot)",
     judge_primary_key},
    {"postgresql.subscription",
     "a row that arrives replaces a held one, and the lock can be held twice",
     "take holdfast_lease out of the publication, or use a schema that is not replicated",
     judge_subscription},
    {"postgresql.standbys",
     "after a switch to one that lacked the last commits a lock can be held twice",
     "name every standby in synchronous_standby_names; or set promotes=synchronous, where none but "
     "a synchronous one is ever promoted; or check the token at the store",
     judge_standbys},
    {"postgresql.clock", spi::clock_consequence, spi::clock_remedy, spi::judge_clock},
    {"postgresql.tokens", "they end at 2^63, and then no lock is granted",
     "find out who wrote that token into holdfast_lease", judge_tokens},
    {"postgresql.synchronous_standby", "each grant waits for a standby that is not there",
     "start the standby, or take it out of synchronous_standby_names", judge_missing_standby},
    {"postgresql.rights",
     "new names are refused without INSERT, all without SELECT and UPDATE; without DELETE the "
     "table keeps every name",
     "GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO the role", judge_rights},
    {"postgresql.pooler", "waiters are not notified of releases, and look once a second",
     "name the server itself in listen, beside the pooler in the URL", judge_pooler},
    {"postgresql.listen", "waiters are not notified of releases, and look once a second",
     "listen=HOST:PORT of the server that the pooler leads to", judge_listen},
    {"postgresql.connections", "the next clients are refused", "raise max_connections",
     judge_connections},
    {"postgresql.statement_timeout", "a grant that waits for the disk is cancelled",
     "ALTER ROLE the role SET statement_timeout = 0", judge_statement_timeout},
    {"postgresql.idle_timeout",
     "connections of waiters are closed, and the next request connects anew",
     "ALTER ROLE the role SET idle_session_timeout = 0", judge_idle_timeout},
    {"postgresql.autovacuum", "holdfast_lease grows with every grant, and each one gets slower",
     "autovacuum = on, and reload", judge_autovacuum},
    {"postgresql.dead_rows", "each grant reads through them",
     "VACUUM holdfast_lease; look for a transaction that is open for long", judge_dead_rows},
    {"postgresql.transaction_age", "at 2000 million the server stops accepting writes",
     "VACUUM (FREEZE) the database", judge_transaction_age},
    {"postgresql.round_trip", spi::round_trip_consequence, spi::round_trip_remedy,
     spi::judge_round_trip},
};

/// Of the other hosts of the URL, each by itself.
constexpr spi::Check checks_of_a_host[] = {
    {"postgresql.cluster", "clients that reach it are granted what others hold",
     "name the hosts of one cluster in the URL", judge_cluster},
    {"postgresql.primaries", "each of two primaries grants by itself, and a lock can be held twice",
     "stop it at once, and make it a standby of the other one (pg_rewind)", judge_primaries},
    {"postgresql.host", "if it is promoted, this client cannot follow",
     "start it, or correct the URL", judge_host},
};

/// A fact of the answer to hello.
void note(spi::Facts& facts, const char* name, const pqxx::row& hello, int column) {
    const auto field = hello[static_cast<pqxx::row::size_type>(column)];
    if (!field.is_null()) facts.set(name, field.c_str());
}

/// The other hosts of the URL: each may be promoted, or should not be there.
void look_at_hosts(Connection& c, boot_clock::time_point deadline, std::vector<Finding>& findings) {
    const sql::Hosts& hosts = c.shared().hosts;
    const auto here = hosts.here();
    if (hosts.size() == 1 || !here) return;
    std::vector<spi::Facts> all(hosts.size());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        spi::Facts& facts = all[i];
        facts.where = spi::text_of(hosts[i]);
        const auto now = boot_clock::now();
        const auto share = (deadline - now) / static_cast<std::int64_t>(hosts.size() - i);
        const Said said = c.look_at(i, now + share);
        if (said.failed) {
            facts.set("silent", said.failed.text());
            continue;
        }
        note(facts, "recovering", said.rows[0], 1);
        note(facts, "read_only", said.rows[0], 2);
        if (const auto timeline = timeline_of(said.rows[0]))
            facts.set("timeline", std::int64_t{*timeline});
        note(facts, "cluster", said.rows[0], 11);
    }
    const spi::Facts primary = all[here->host];
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == here->host) continue;
        spi::Facts& facts = all[i];
        for (const char* fact : {"cluster", "timeline"})
            if (primary.has(fact))
                facts.set(std::string(fact) + "_of_primary", std::string(primary.text(fact)));
        spi::judge(checks_of_a_host, facts, findings);
    }
}

}  // namespace

std::vector<spi::Check> all_checks() {
    std::vector<spi::Check> all(std::begin(checks), std::end(checks));
    all.insert(all.end(), std::begin(checks_of_a_host), std::end(checks_of_a_host));
    return all;
}

spi::Answer<Examination> Questions::examine(Connection& c, boot_clock::time_point deadline) {
    // A fresh look: settings and poolers change.
    c.close();
    if (auto failed = c.open(deadline)) return failed;
    const auto before = std::chrono::system_clock::now();
    const auto sent = boot_clock::now();
    Said said = c.run_text(c.shared().statements.facts(), deadline, {-1, true});
    if (said.failed) return said.failed;
    spi::Facts facts;
    spi::note_round_trip(facts, boot_clock::now() - sent, c.shared().options.ttl);
    const auto after = std::chrono::system_clock::now();
    for (const auto& field : said.rows[0])
        if (!field.is_null()) facts.set(field.name(), field.c_str());
    if (const auto us = facts.number("time_us")) spi::note_clock(facts, *us, before, after);
    facts.set("pooled", c.pooled() ? 1 : 0);
    if (c.shared().options.promotes_synchronous) facts.set("promotes", "synchronous");
    if (c.shared().direct) {
        Connection past(c.shared().direct, Connection::Resolve::yes);
        auto failed = past.listen(deadline);
        if (!failed) failed = past.hears(c, deadline);
        facts.set("listen", failed ? failed.text() : std::string());
    }
    // Only a write proves the right to write.
    said = c.run(Sql::stand, {"{}", "{}", c.shared().me, "{}"}, deadline);
    if (said.failed) return said.failed;
    Examination found;
    spi::judge(checks, facts, found.findings);
    look_at_hosts(c, deadline, found.findings);
    found.capabilities = promises();
    if (!spi::all_sound(found.findings, {"postgresql.pooler", "postgresql.listen"}))
        found.capabilities.set(Capability::notified, false);
    if (!spi::all_sound(found.findings, {"postgresql.primary_key", "postgresql.subscription",
                                         "postgresql.cluster", "postgresql.primaries"}))
        found.capabilities.safety = SafetyClass::d;
    const bool durable = spi::all_sound(
        found.findings, {"postgresql.fsync", "postgresql.full_page_writes", "postgresql.table"});
    found.capabilities.set(Capability::survives_server_crash, durable);
    if (!durable || !spi::all_sound(found.findings, {"postgresql.standbys"}))
        found.capabilities.safety = SafetyClass::d;
    return found;
}

}  // namespace holdfast::postgresql
