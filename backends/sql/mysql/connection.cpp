#include "connection.hpp"

#include <charconv>
#include <new>
#include <thread>
#include <utility>

#include "holdfast/spi/net/connect_time.hpp"

namespace holdfast::mysql {
namespace {

// A server may have ended a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};
/// How long a statement waits for a row that others have locked. A server waits for whole seconds
/// or not at all, and leases of other rows wait behind it.
constexpr milliseconds lock_patience{100}, lock_pause{2};
/// How long callers' threads do not connect after the server had no connection left.
constexpr std::chrono::seconds crowded_for{10};

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
    : shared_(std::move(shared)),
      resolve_(resolve),
      guard_(shared_->watchdog, resolve == Resolve::no) {}

Connection::~Connection() {
    close();
}

void Connection::close() noexcept {
    guard_.watch(-1);
    session_.reset();
}

spi::Failure Connection::connect(sql::Server::Opening& opening, boot_clock::time_point deadline,
                                 std::optional<boot_clock::time_point> look_up) {
    std::vector<std::string> where(1);  // the Unix socket
    if (shared_->options.socket.empty()) {
        auto found = shared_->addresses(shared_->options.host, look_up);
        if (!found) return std::move(found).error();
        where = std::move(*found);
    }
    spi::Failure last(make(Error::unresolved));
    for (std::size_t i = 0; i < where.size(); ++i) {
        // Each address gets its share of the time, so that a dead one does not take all of it.
        const auto now = boot_clock::now();
        const auto share = (deadline - now) / static_cast<std::int64_t>(where.size() - i);
        auto connected = Session::connect(*shared_, where[i], now + share);
        if (connected) {
            opening.answer();
            shared_->reach(where[i]);
            session_.emplace(std::move(*connected));
            guard_.watch(session_->socket());
            return {};
        }
        last = std::move(connected).error();
    }
    return last;
}

spi::Failure Connection::open(boot_clock::time_point deadline) {
    const auto now = boot_clock::now();
    if (session_ && now - used_ > idle_unchecked && session_->stale(guard_.socket())) close();
    used_ = now;
    if (session_) return {};
    const bool spare = resolve_ == Resolve::no;
    if (spare && now < shared_->crowded_until())
        return {make(Error::too_many), "the server has no connection to spare"};
    // That looks a name up, which nothing can bound.
    const Options& o = shared_->options;
    if (spare && o.verifies_name() && o.tls_to(shared_->reached()))
        return {make(Error::too_many), "callers' threads make no look-up"};
    sql::Server::Opening opening(*shared_);
    // A caller's own thread has no time beyond its caller's.
    const auto until = spare ? deadline : spi::net::connect_until(deadline);
    const auto look_up = spare ? std::optional<boot_clock::time_point>() : deadline;
    spi::Failure failed = connect(opening, until, look_up);
    if (failed.why == make(Error::too_many)) {
        // The engine's connections matter more than those that save callers a thread switch.
        shared_->crowd(now + crowded_for);
        if (!spare) shared_->watchdog->end_spares();
    }
    try {
        if (!failed) failed = introduce(until);
    } catch (const std::bad_alloc&) {  // says nothing about the server
        close();
        throw;
    } catch (const std::exception& e) {  // a number that is none, for instance
        failed = {make(Error::strange_answer), e.what()};
    }
    if (failed) close();
    const bool unanswered = !failed || failed.why == make(Error::no_answer);
    if (unanswered && opening.answered() && boot_clock::now() >= deadline)
        failed.why = make(Error::connecting);
    return failed;
}

Said Connection::once(const Packet& packet, boot_clock::time_point deadline) {
    Said said;
    if (!guard_.begin(deadline)) {
        guard_.end();
        said.failed = make_error_code(errc::closed);
        return said;
    }
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    Refusal why;
    // Whatever is sent at the end must be one message.
    const auto prepare = shared_->ending() ? Session::Prepare::no : Session::Prepare::yes;
    const bool well = session_->run(packet, prepare, said.results, why);
    const bool overdue = guard_.end();
    if (well) {
        if (overdue) close();  // answered just in time, but the socket is gone
        return said;
    }
    said.number = why.number;
    said.failed = {make(why.number == 0 ? Error::strange_answer : from_number(why.number)),
                   why.words};
    said.nothing_done = rolled_back(why.number);
    if (overdue) {
        said.failed = make(Error::no_answer);
        said.nothing_done = false;
    }
    if (said.number == 1205)
        said.failed.detail +=
            "; another transaction has locked the row: information_schema.INNODB_TRX shows it";
    if (said.number == 1142) said.failed.detail += owner_does_it;
    // A session keeps the rights that it began with, and what was sent and not run may have left a
    // transaction open.
    if (!said.nothing_done || is_denied(said.number) || packet.statements.size() > 1) close();
    return said;
}

spi::Failure Connection::judge_table(const Result& facts, const std::string& key) {
    // While somebody makes it, or alters it, the comment is an error's words.
    if (facts.text(0, 1) == "BASE TABLE")
        return {make(Error::timed_out), "another session makes or alters the table"};
    const std::string_view comment = facts.text(0, 0), before = comment_before_format;
    if (!comment.starts_with(before))
        return {make(Error::foreign_table),
                "its comment is not \"" + table_comment() + "\": see `holdfast schema mysql`"};
    const auto format =
        std::strtol(std::string(comment.substr(before.size())).c_str(), nullptr, 10);
    if (format > table_format) return make(Error::newer_format);
    if (format < table_format)
        return {make(Error::older_format),
                "when nothing is held any more, drop it: it is made again"};
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
    if (hello.number(0, 0) != static_cast<std::int64_t>(session_->id()))
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
