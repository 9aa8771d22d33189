#include "connection.hpp"

#include <charconv>
#include <thread>
#include <utility>

namespace holdfast::mysql {
namespace {

/// How long a statement waits for a row that others have locked. A server waits for whole seconds
/// or not at all, and leases of other rows wait behind it.
constexpr milliseconds lock_patience{100}, lock_pause{2};

constexpr std::string_view owner_does_it =
    "; let its owner run what `holdfast schema mysql` prints, and GRANT SELECT, INSERT, UPDATE, "
    "DELETE ON holdfast_lease TO this user";

/// For want of a right.
bool is_denied(unsigned number) noexcept {
    return number == 1142 || number == 1143 || number == 1044;
}

/// Whether "10.11.6-MariaDB-log" and the like are older than this backend supports.
bool old(std::string_view version) {
    int major = 0, minor = 0;
    const auto [dot, ec] = std::from_chars(version.data(), version.data() + version.size(), major);
    if (ec != std::errc()) return true;
    if (dot != version.data() + version.size())
        std::from_chars(dot + 1, version.data() + version.size(), minor);
    const bool mariadb = version.find("MariaDB") != version.npos;
    return mariadb ? major < 10 || (major == 10 && minor < 5) : major < 8;
}

}  // namespace

Connection::Connection(std::shared_ptr<Shared> shared, Resolve resolve)
    : sql::ServerConnection(*shared, resolve), shared_(std::move(shared)) {}

bool Connection::spoken_to() const noexcept {
    // Under TLS nobody can tell from outside what there is to read.
    return !session_->tls() && guard().unread();
}

spi::Failure Connection::no_spare() const {
    const Options& o = shared_->options;
    const auto here = shared_->hosts.here();
    if (!o.verifies_name() || !o.tls_to(here ? here->address : std::string())) return {};
    // Which nothing can bound.
    return {make(Error::too_many), "callers' threads make no look-up"};
}

spi::Failure Connection::connect_to(const spi::Endpoint&, const std::string& address,
                                    sql::Server::Opening& opening, const Limits& limits) {
    auto connected_one = Session::connect(*shared_, address, limits.silence);
    if (!connected_one) return std::move(connected_one).error();
    opening.answer();
    session_.emplace(std::move(*connected_one));
    session_id_ = session_->id();
    guard().watch(session_->socket());
    return {};
}

Said Connection::once(const Packet& packet, boot_clock::time_point deadline) {
    Said said;
    exchange_until(deadline, said, [&] {
        Refusal why;
        const auto prepare = one_message_each() ? Session::Prepare::no : Session::Prepare::yes;
        if (session_->run(packet, prepare, said.results, why)) return;
        said.number = why.number;
        said.failed = {make(why.number == 0 ? Error::strange_answer : from_number(why.number)),
                       why.words};
        said.nothing_done = rolled_back(why.number);
    });
    if (!said.failed) return said;
    if (said.number == 1205)
        said.failed.detail +=
            "; another transaction has locked the row: information_schema.INNODB_TRX shows it";
    if (said.number == 1142) said.failed.detail += owner_does_it;
    // A session keeps the rights that it began with, and what was sent and not run may have left a
    // transaction open.
    if (is_denied(said.number) || packet.statements.size() > 1) close();
    return said;
}

spi::Failure Connection::judge_table(const Result& facts, const std::string& key) {
    // While somebody makes it, or alters it, the comment is an error's words.
    if (facts.text(0, 1) == "BASE TABLE")
        return {make(Error::timed_out), "another session makes or alters the table"};
    if (auto failed = table_format.judge(errors(), facts.text(0, 0))) return failed;
    if (facts.text(0, 1) != "InnoDB")
        return {make(Error::foreign_table), "its engine is " + facts.text(0, 1) +
                                                ": ALTER TABLE holdfast_lease ENGINE = InnoDB"};
    if (key != "name,slot")
        return {make(Error::no_key), "ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)"};
    return {};
}

spi::Failure Connection::create(boot_clock::time_point deadline) {
    Said said = once(Packet(Sql::create), deadline);
    if (said.number == 1142 || said.number == 1044)
        return {make(Error::no_table), said.failed.detail + std::string(owner_does_it)};
    return said.failed;
}

spi::Failure Connection::judge_server(const Result& hello) const {
    const auto settings = [](const char* words) {
        return spi::Failure(make(Error::strange_settings), words);
    };
    if (old(hello.text(0, 1)))
        return {make(Error::too_old),
                "MariaDB 10.5, MySQL 8.0 or newer; it is " + hello.text(0, 1)};
    if (hello.number(0, 0) != static_cast<std::int64_t>(session_id_))
        return settings(
            "a proxy shares its connections among clients: connect to the server itself, or let "
            "the proxy keep a connection for each client");
    if (hello.text(0, 2) != "1")
        return settings(
            "it runs with --sysdate-is-now, so a statement that waited acts on an old time");
    if (hello.number(0, 6) != 0)
        return settings(
            "binlog_format is STATEMENT, which cannot log these statements: set it to MIXED or "
            "ROW");
    if (hello.text(0, 3) != "0")
        return {make(Error::read_only), "read_only is on: connect to the primary"};
    shared_->heard_clock(hello.number(0, 4));
    if (const std::string& forgets = hello.text(0, 5); !forgets.empty())
        shared_->heard_warning(forgets + ": a crash of the server's machine forgets grants");
    return {};
}

spi::Failure Connection::introduce(boot_clock::time_point deadline) {
    Packet first(Sql::settings);
    // Last what reads the clock: it is as old as the answer then.
    for (const Sql s :
         {Sql::isolation, Sql::table_facts, Sql::table_key, Sql::hello, Sql::real_time})
        first.add(s);
    for (bool made = false;;) {
        const Said said = once(first, deadline);
        if (said.failed) return said.failed;
        const Result &facts = said.results[2], &key = said.results[3], &hello = said.results[4];
        if (hello.rows.size() != 1 || facts.rows.size() > 1 || key.rows.size() != 1)
            return make(Error::strange_answer);
        if (auto failed = judge_server(hello)) return failed;
        const bool there = !facts.rows.empty();
        if (!there && made) return {make(Error::no_table), "the table was made and is not there"};
        const auto failed = there ? judge_table(facts, key.text(0, 0)) : create(deadline);
        if (failed.why == make(Error::timed_out) && boot_clock::now() < deadline) {
            std::this_thread::sleep_for(lock_pause);
            continue;
        }
        if (failed || there) return failed;
        made = true;
    }
}

Said Connection::run(const Packet& packet, boot_clock::time_point deadline, bool twice) {
    const auto patience = std::min(deadline, boot_clock::now() + lock_patience);
    for (bool dropped = false, broken = false;;) {
        Said said;
        said.failed = open(deadline);
        if (said.failed) return said;
        said = once(packet, deadline);
        if (overtaken(said)) said.results.clear();
        // It takes no writes any more: the host's name may lead to another server by now.
        if (said.failed.why == make(Error::read_only)) close();
        if (!said.failed || boot_clock::now() >= deadline) return said;
        // Dropped since we looked: what is there now, or is made, has to be judged. Or there are
        // rights now that the session does not know of.
        if ((said.number == 1146 || is_denied(said.number)) && !std::exchange(dropped, true)) {
            close();
            continue;
        }
        // Ended by the server since it was last used.
        if (twice && said.failed.why == make(Error::closed) && !std::exchange(broken, true))
            continue;
        // Each of several is tried by itself.
        if (said.number == 1205 && packet.statements.size() == 1 && boot_clock::now() < patience) {
            std::this_thread::sleep_for(lock_pause);
            continue;
        }
        if (packet.statements.size() > 1 || !worth_repeating(said.number)) return said;
    }
}

}  // namespace holdfast::mysql
