// What this server is, and what follows for its locks: `holdfast doctor`, probe and `require`.
#include <algorithm>
#include <boost/algorithm/string/erase.hpp>

#include "holdfast/spi/common_checks.hpp"
#include "questions.hpp"

namespace holdfast::mysql {
namespace {

using Found = std::optional<spi::Judgement>;

bool on(std::string_view value) {
    return value == "ON" || value == "1";
}

Found judge_flush(const spi::Facts& f) {
    const std::string words = "innodb_flush_log_at_trx_commit is " +
                              std::string(f.text("innodb_flush_log_at_trx_commit"));
    return f.text("innodb_flush_log_at_trx_commit") == "1" ? spi::sound(words) : spi::unsafe(words);
}

/// With a binary log InnoDB leaves it to the log which transactions survive a crash.
Found judge_binary_log(const spi::Facts& f) {
    if (!on(f.text("log_bin"))) return spi::sound("no binary log");
    const std::string words =
        "log_bin is on, and sync_binlog is " + std::string(f.text("sync_binlog"));
    return f.text("sync_binlog") == "1" ? spi::sound(words) : spi::unsafe(words);
}

Found judge_doublewrite(const spi::Facts& f) {
    const std::string value(f.text("innodb_doublewrite"));
    if (value.empty()) return {};
    const bool whole = on(value) || value == "DETECT_AND_RECOVER";
    return whole ? spi::sound() : spi::unsafe("innodb_doublewrite is " + value);
}

Found judge_replicas(const spi::Facts& f) {
    const auto n = f.number("replicas");
    if (!n)
        return on(f.text("log_bin"))
                   ? spi::unknown("this user may not see the replicas (GRANT PROCESS)")
                   : spi::sound("no binary log, and so no replicas");
    if (*n == 0) return spi::sound("no replicas");
    return spi::unsafe(std::to_string(*n) + (*n == 1 ? " replica follows" : " replicas follow"));
}

Found judge_galera(const spi::Facts& f) {
    if (!f.text("group_replication_group_name").empty())
        return spi::unsafe("it is a member of a replication group");
    return on(f.text("wsrep_on")) ? spi::unsafe("wsrep_on is on") : spi::sound();
}

Found judge_rights(const spi::Facts& f) {
    const auto missing = f.text("missing_rights");
    if (missing.empty()) return spi::sound();
    return spi::slow("this user lacks " + std::string(missing) + " on holdfast_lease");
}

Found judge_doubled(const spi::Facts& f) {
    const auto n = f.number("doubled").value_or(0);
    return n == 0 ? spi::sound()
                  : spi::unsafe(std::to_string(n) +
                                (n == 1 ? " name has several rows" : " names have several rows"));
}

Found judge_connections(const spi::Facts& f) {
    const auto most = f.number("max_connections"), now = f.number("connections");
    if (!most || !now) return {};
    const std::string words =
        std::to_string(*now) + " of max_connections = " + std::to_string(*most) + " are in use";
    // A client takes two, and up to eight for blocking calls.
    return *most - *now < 10 ? spi::slow(words) : spi::sound(words);
}

Found judge_idle_timeout(const spi::Facts& f) {
    const auto seconds = f.number("wait_timeout");
    if (!seconds) return {};
    const std::string words = "wait_timeout is " + std::to_string(*seconds) + " s";
    return *seconds < 60 ? spi::slow(words) : spi::sound(words);
}

Found judge_tokens(const spi::Facts& f) {
    // A grant returns eight times as much in one number.
    constexpr long long most = 1'000'000'000'000'000'000;
    const auto last = f.number("last_token");
    if (!last) return {};
    const std::string words = "the last token is " + std::to_string(*last);
    return *last > most ? spi::unsafe(words) : spi::sound(words);
}

constexpr std::string_view forgets = "a crash of the server's machine forgets grants";
constexpr std::string_view moves =
    "after a switch to one that lacked the last commits a lock can be held twice";

constexpr spi::Check checks[] = {
    {"mysql.flush", forgets, "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in its file",
     judge_flush},
    {"mysql.binary_log", forgets, "SET GLOBAL sync_binlog = 1, and in its file", judge_binary_log},
    {"mysql.doublewrite", "a crash of the server's machine can tear a page of the table",
     "innodb_doublewrite = ON, unless the disk writes pages as a whole", judge_doublewrite},
    {"mysql.galera", "its nodes can lose commits, and grant a name twice while they disagree",
     "use one server that does not replicate, or check the token at the store", judge_galera},
    {"mysql.replicas", moves,
     "do not promote them, or check the token at the store; semi-synchronous replication falls "
     "back to none",
     judge_replicas},
    {"mysql.primary_key", "a name that has two rows is granted twice",
     "stop every client, delete the rows that are doubled, and ALTER TABLE holdfast_lease ADD "
     "PRIMARY KEY (name, slot)",
     judge_doubled},
    {"mysql.clock", spi::clock_consequence, spi::clock_remedy, spi::judge_clock},
    {"mysql.tokens", "they end at 2^60, and then no lock is granted",
     "find out which program wrote that token into holdfast_lease", judge_tokens},
    {"mysql.rights",
     "new names are refused without INSERT, all without SELECT and UPDATE; without DELETE the "
     "table keeps every name",
     "GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO the user", judge_rights},
    {"mysql.connections", "the next clients are refused", "raise max_connections",
     judge_connections},
    {"mysql.idle_timeout", "idle connections are closed, and the next request connects anew",
     "raise wait_timeout", judge_idle_timeout},
    {"mysql.round_trip", spi::round_trip_consequence, spi::round_trip_remedy,
     spi::judge_round_trip},
};

/// Whether what stands after ON means the table. A `%` may mean any database.
bool covers(std::string target, const std::string& database) {
    for (const char* mark : {"`", "\\"})
        boost::erase_all(target, mark);
    return target == "*.*" || target == database + ".*" || target == database + ".holdfast_lease" ||
           target.find('%') != target.npos;
}

/// Which of the four rights no grant gives, by the texts of SHOW GRANTS. Those of roles that are
/// not active are not in it.
std::string missing_rights(const Result& grants, const std::string& database) {
    std::string given = ", ";
    for (const auto& row : grants.rows) {
        const std::string_view text = row[0];
        const auto on = text.find(" ON "), to = text.find(" TO ", on);
        if (!text.starts_with("GRANT ") || to == text.npos) continue;
        if (!covers(std::string(text.substr(on + 4, to - on - 4)), database)) continue;
        given.append(text.substr(6, on - 6)).append(", ");
    }
    std::string missing;
    const bool all = given.find(", ALL PRIVILEGES, ") != given.npos;
    for (const std::string right : {"SELECT", "INSERT", "UPDATE", "DELETE"})
        if (!all && given.find(", " + right + ", ") == given.npos)
            missing += (missing.empty() ? "" : ", ") + right;
    return missing;
}

bool sees_others(const Result& grants) {
    return std::any_of(grants.rows.begin(), grants.rows.end(), [](const auto& row) {
        const std::string_view text = row[0];
        const auto on = text.find(" ON *.* TO ");
        if (!text.starts_with("GRANT ") || on == text.npos) return false;
        const std::string given = ", " + std::string(text.substr(6, on - 6)) + ", ";
        return given.find(", PROCESS, ") != given.npos ||
               given.find(", ALL PRIVILEGES, ") != given.npos;
    });
}

}  // namespace

std::vector<spi::Check> all_checks() {
    return {std::begin(checks), std::end(checks)};
}

spi::Answer<Examination> Questions::examine(Connection& c, boot_clock::time_point deadline) {
    // A fresh look: settings change.
    c.close();
    if (auto failed = c.open(deadline)) return failed;
    spi::Facts facts;
    const auto before = std::chrono::system_clock::now();
    const auto sent = boot_clock::now();
    Said said = c.run(Packet(Sql::counts), deadline);
    if (said.failed) return said.failed;
    spi::note_round_trip(facts, boot_clock::now() - sent, c.shared().options.ttl);
    spi::note_clock(facts, said.results[0].number(0, 0), before, std::chrono::system_clock::now());
    if (!said.results[0].text(0, 1).empty()) facts.set("last_token", said.results[0].text(0, 1));
    facts.set("doubled", said.results[0].text(0, 2));
    Packet more(Sql::variables);
    more.add(Sql::connections);
    more.add(Sql::grants);
    said = c.run(more, deadline);
    if (said.failed) return said.failed;
    for (const auto& row : said.results[0].rows)
        facts.set(row[0], row[1]);
    if (!said.results[1].rows.empty()) facts.set("connections", said.results[1].text(0, 1));
    facts.set("missing_rights", missing_rights(said.results[2], c.shared().options.database));
    // Without the right, it shows the user's own connections only.
    if (sees_others(said.results[2])) {
        said = c.run(Packet(Sql::replicas), deadline);
        if (said.failed) return said.failed;
        facts.set("replicas", said.results[0].text(0, 0));
    }
    Examination found;
    spi::judge(checks, facts, found.findings);
    found.capabilities = promises();
    const bool durable =
        spi::all_sound(found.findings, {"mysql.flush", "mysql.binary_log", "mysql.doublewrite"});
    found.capabilities.set(Capability::survives_server_crash, durable);
    if (!durable ||
        !spi::all_sound(found.findings, {"mysql.replicas", "mysql.galera", "mysql.primary_key"}))
        found.capabilities.safety = SafetyClass::d;
    return found;
}

}  // namespace holdfast::mysql
