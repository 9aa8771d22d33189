#include "connection.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "connect.hpp"
#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// libpqxx takes parameters as a pack: here as many as there are at most, and fewer.
template <std::size_t... At>
pqxx::result execute(pqxx::nontransaction& tx, bool prepared, const std::string& what,
                     const std::vector<std::string>& p, std::index_sequence<At...>) {
    if constexpr (sizeof...(At) > 1)
        if (p.size() < sizeof...(At))
            return execute(tx, prepared, what, p, std::make_index_sequence<sizeof...(At) - 1>());
    return prepared ? tx.exec_prepared(what, p[At]...) : tx.exec_params(what, p[At]...);
}
pqxx::result execute(pqxx::nontransaction& tx, bool prepared, const std::string& what,
                     const std::vector<std::string>& p) {
    constexpr std::size_t most = 15;
    return execute(tx, prepared, what, p, std::make_index_sequence<most>());
}
#pragma GCC diagnostic pop

std::string_view text_of(const pqxx::field& f) {
    return f.is_null() ? std::string_view() : std::string_view(f.c_str());
}

/// Two make the table at the same moment: then it is there.
bool made_by_another(std::string_view state) noexcept {
    return state == "23505" || state == "42P07" || state == "42710" || state == "XX000";
}

}  // namespace

Connection::Connection(std::shared_ptr<Shared> shared, Resolve resolve)
    : sql::ServerConnection(*shared, resolve), shared_(std::move(shared)) {}

void Connection::drop() noexcept {
    session_.reset();
    prepared_.fill(false);
    listening_ = false;
}

bool Connection::spoken_to() const noexcept {
    // An unasked-for error is the server's last word. Under TLS nobody can tell from outside.
    return PQsslInUse(session_->raw()) == 0 && guard().unread() == 'E';
}

spi::Failure Connection::connect_to(const spi::Endpoint& host, const std::string& address,
                                    sql::Server::Opening& opening, const Limits& limits) {
    auto connected_one =
        postgresql::connect(*shared_, host, address, opening, limits.silence, limits.end);
    if (!connected_one) return std::move(connected_one).error();
    guard().watch(PQsocket(connected_one->get()));
    server_process_ = PQbackendPID(connected_one->get());
    session_ = std::make_unique<Session>(std::move(*connected_one));
    return {};
}

template <class F>
Said Connection::guarded(boot_clock::time_point deadline, Shape shape, F&& statement) {
    Said said;
    state_.clear();
    const auto failed = [&](Error e, bool nothing_done, std::string words) {
        said.failed = {make(e), std::move(words)};
        said.nothing_done = nothing_done;
    };
    exchange_until(deadline, said, [&] {
        try {
            pqxx::nontransaction tx(*session_);
            said.rows = statement(tx);
            const auto columns = static_cast<int>(said.rows.columns());
            const bool as_asked = shape.columns < 0 || columns == shape.columns;
            if (!as_asked || (shape.one_row && said.rows.size() != 1))
                failed(Error::strange_answer, false,
                       std::to_string(columns) + " columns, " + std::to_string(said.rows.size()) +
                           " rows");
        } catch (const pqxx::broken_connection& e) {
            // What libpqxx says of it is about the encoding of a message that never came.
            const std::string_view said_last = PQerrorMessage(session_->raw());
            failed(Error::closed, false, words_of(said_last.empty() ? e.what() : said_last));
        } catch (const pqxx::failure& e) {
            // libpqxx leaves the SQLSTATE out of some of its classes; the message has it.
            state_ = state_in(e.what());
            failed(from_state(state_), rolled_back(state_), words_of(e.what()));
        } catch (const std::exception& e) {
            failed(Error::refused_statement, false, words_of(e.what()));
        }
    });
    if (state_ == "57014")
        said.failed.detail += "; see statement_timeout of this role and database";
    // Ours for a row; theirs for the table, which a statement locks before it has set its own.
    if (state_ == "55P03")
        said.failed.detail +=
            "; another transaction has locked the row, or the table (then see also lock_timeout of "
            "this role and database): pg_locks shows it";
    if (state_ == "42P10")
        said.failed.detail += "; ALTER TABLE holdfast_lease ADD PRIMARY KEY (name, slot)";
    if (state_ == "42501" && said.failed.detail.find("holdfast_lease") != std::string::npos)
        said.failed.detail +=
            "; GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO this role";
    if (is_open() && said.failed && !session_->usable()) close();
    return said;
}

spi::Failure Connection::judge_table(const pqxx::row& hello, boot_clock::time_point deadline) {
    const std::string which(text_of(hello[5]));
    statements_ = shared_->statements_in(std::string(text_of(hello[8])));
    const bool ours_alone = text_of(hello[6]) == "t";
    if (!ours_alone && !shared_->audited(which))
        if (auto failed = audit(deadline)) return failed;
    if (auto failed = table_format.judge(errors(), text_of(hello[4]))) return failed;
    if (!ours_alone) shared_->audit_passed(which);
    return {};
}

spi::Failure Connection::audit(boot_clock::time_point deadline) {
    Said said = guarded(deadline, {3, true},
                        [&](pqxx::nontransaction& tx) { return tx.exec(statements_->audit()); });
    if (said.failed) return said.failed;
    const auto found = said.rows[0];
    if (const auto owner = text_of(found[0]); !owner.empty())
        return {
            make(Error::untrusted_table),
            "it belongs to the role " + std::string(owner) +
                ", which is neither this role, nor one that it is a member of, nor the database's "
                "owner, nor a superuser (and for a superuser only the last will do); drop it if "
                "you do not know it, or ALTER TABLE holdfast_lease OWNER TO one of these, or "
                "connect as its owner, or use a schema of this role's own (schema=NAME)"};
    if (const auto code = text_of(found[1]); !code.empty())
        return {make(Error::untrusted_table),
                "it has what Holdfast did not make: " + std::string(code) + "; drop that"};
    if (const auto others = text_of(found[2]); !others.empty())
        shared_->reports.warn("the permission TRIGGER on holdfast_lease lets " +
                              std::string(others) +
                              " run code with this role's permissions: REVOKE it");
    return {};
}

Said Connection::hello(boot_clock::time_point deadline) {
    const Options& o = shared_->options;
    const std::vector<std::string> parameters{
        std::to_string(server_process_), std::to_string(o.silent.count()),
        std::to_string(o.probe_every().count()), std::to_string(Options::probes)};
    const auto ask = [&](const std::string& text) {
        return guarded(deadline, {12, true}, [&](pqxx::nontransaction& tx) {
            return execute(tx, false, text, parameters);
        });
    };
    Said said = ask(shared_->statements.hello());
    // Some services take away the functions that tell where a server comes from.
    const bool refused = state_ == "42501" || state_ == "42883" || state_ == "0A000";
    if (!said.failed || !refused || !is_open()) return said;
    const std::string why = std::move(said.failed.detail);
    said = ask(shared_->statements.plain_hello());
    if (!said.failed)
        shared_->reports.warn(
            "the server does not say its timeline, so an old primary is not told from the one that "
            "took over: " +
            why);
    return said;
}

spi::Failure Connection::judge_server(const pqxx::row& hello) {
    if (text_of(hello[1]) == "t")
        return {make(Error::read_only), shared_->hosts.size() > 1
                                            ? "it is a standby"
                                            : "it is a standby: connect to the primary"};
    if (text_of(hello[2]) == "on")
        return {make(Error::read_only),
                "default_transaction_read_only is on for this role or database"};
    const auto timeline = timeline_of(hello);
    incarnation_ = timeline ? "timeline " + std::to_string(*timeline) : std::string();
    return shared_->origin->judge(std::string(text_of(hello[11])), timeline);
}

spi::Failure Connection::introduce(boot_clock::time_point deadline) {
    spi::Failure made;
    for (int round = 0;; ++round) {
        Said said = hello(deadline);
        if (said.failed) return said.failed;
        const auto row = said.rows[0];
        pooled_ = row[0].as<int>() != server_process_;
        if (auto failed = judge_server(row)) return failed;
        shared_->heard_clock(row[3].as<std::int64_t>());
        if (pooled_ && !shared_->direct)
            shared_->reports.warn(
                "behind a connection pooler, waiters are not notified and look once a "
                "second: name the server itself in listen");
        if (!text_of(row[7]).empty())
            shared_->reports.warn(std::string(text_of(row[7])) +
                                  ": a crash of the server's machine forgets grants");
        if (!row[5].is_null()) return judge_table(row, deadline);
        if (round > 0) {
            if (made.detail.empty())
                made.detail =
                    "the table was made and is not there: look at the schemas of search_path";
            return {make(Error::no_table), std::move(made.detail)};
        }
        made = create(deadline);
        if (made && !made_by_another(state_)) return made;
    }
}

spi::Failure Connection::create(boot_clock::time_point deadline) {
    Said said = guarded(deadline, {}, [&](pqxx::nontransaction& tx) {
        return tx.exec(shared_->statements.create());
    });
    if (state_ == "42501" || state_ == "3F000")
        return {make(Error::no_table),
                said.failed.detail +
                    "; let its owner run what `holdfast schema postgresql` prints, and "
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lease TO this role"};
    return said.failed;
}

Said Connection::once(Sql sql, const std::vector<std::string>& parameters,
                      boot_clock::time_point deadline) {
    const auto at = static_cast<std::size_t>(sql);
    const Statements& s = *statements_;
    const Shape shape{Statements::columns(sql)};
    if (pooled_ || one_message_each())
        return guarded(deadline, shape, [&](pqxx::nontransaction& tx) {
            return execute(tx, false, s.text(sql), parameters);
        });
    return guarded(deadline, shape, [&](pqxx::nontransaction& tx) {
        if (!prepared_[at]) session_->prepare(s.name(sql), s.text(sql));
        prepared_[at] = true;
        return execute(tx, true, s.name(sql), parameters);
    });
}

std::optional<std::uint32_t> timeline_of(const pqxx::row& hello) {
    if (hello[10].is_null()) return {};
    return static_cast<std::uint32_t>(std::stoul(hello[10].c_str(), nullptr, 16));
}

Said Connection::run(Sql sql, const std::vector<std::string>& parameters,
                     boot_clock::time_point deadline) {
    for (bool dropped = false, broken = false, demoted = false;;) {
        Said said;
        said.failed = open(deadline);
        if (said.failed) return said;
        said = once(sql, parameters, deadline);
        if (overtaken(said)) said.rows = {};
        if (!said.failed) return said;
        const bool time_left = boot_clock::now() < deadline;
        // A pooler that hides itself: the prepared statement belongs to another session.
        const bool unknown_name = state_ == "26000" || state_ == "42P05";
        if (unknown_name && !pooled_) {
            pooled_ = true;
            continue;
        }
        // It takes no writes any more: another host may. Nothing was done.
        if (said.failed.why == make(Error::read_only)) {
            close();
            if (shared_->hosts.size() > 1 && time_left && !std::exchange(demoted, true)) continue;
        }
        // Dropped since we looked: what is there now, or is made, has to be judged.
        if (state_ == "42P01" && time_left && !std::exchange(dropped, true)) {
            close();
            continue;
        }
        // Ended by the server since it was last used. A renewal may be said twice: it names its
        // grant.
        if (sql == Sql::renew && said.failed.why == make(Error::closed) && time_left &&
            !std::exchange(broken, true))
            continue;
        if (!worth_repeating(state_) || !time_left) return said;
    }
}

Said Connection::run_text(const std::string& sql, boot_clock::time_point deadline, Shape shape) {
    Said said;
    said.failed = open(deadline);
    if (said.failed) return said;
    return guarded(deadline, shape, [&](pqxx::nontransaction& tx) { return tx.exec(sql); });
}

spi::Failure Connection::listen(boot_clock::time_point deadline) {
    if (auto failed = open(deadline)) return failed;
    if (pooled_) return {errc::not_supported, "behind a connection pooler"};
    // Not as libpqxx does it: that says UNLISTEN at the end, and waits for the answer of a server
    // that may hang.
    Said said = run_text("LISTEN \"" + (channel + shared_->me) + '"', deadline, {0});
    listening_ = !said.failed;
    return said.failed;
}

bool Connection::heard(std::vector<std::string>& names) noexcept {
    try {
        if (!session_ || !listening_ || PQconsumeInput(session_->raw()) == 0) return false;
        while (PGnotify* one = PQnotifies(session_->raw())) {
            const std::unique_ptr<PGnotify, decltype(&PQfreemem)> freed(one, &PQfreemem);
            names.emplace_back(one->extra);
        }
        return session_->usable() && !guard().ended() && !spoken_to();
    } catch (const std::exception&) {
        return false;
    }
}

Said Connection::look_at(std::size_t host, boot_clock::time_point deadline) {
    close();
    Said said;
    {
        Shared::Opening opening(*shared_);
        const auto address = connect_host(host, opening, {deadline, deadline}, deadline);
        if (address)
            said = hello(deadline);
        else
            said.failed = address.error();
    }
    close();
    return said;
}

spi::Failure Connection::hears(Connection& sender, boot_clock::time_point deadline) {
    Said said = sender.run(Sql::echo, {channel + shared_->me}, deadline);
    if (said.failed) return said.failed;
    const auto until = std::min(deadline, boot_clock::now() + std::chrono::seconds(1));
    std::vector<std::string> names;
    while (heard(names) && !shared_->watchdog->closing()) {
        if (std::find(names.begin(), names.end(), "") != names.end()) return {};
        const auto left = std::chrono::ceil<milliseconds>(until - boot_clock::now()).count();
        if (left <= 0)
            return {errc::not_supported,
                    "it leads to another server or database than the URL: a notification did not "
                    "arrive there within a second"};
        pollfd p{guard().socket(), POLLIN, 0};
        ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left, 50)));
    }
    return make(Error::closed);
}

int Connection::duplicate() const noexcept {
    return guard().socket() < 0 ? -1 : ::fcntl(guard().socket(), F_DUPFD_CLOEXEC, 3);
}

void ArrayText::add(std::string_view value) {
    text_ += text_.size() > 1 ? ",\"" : "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') text_ += '\\';
        text_ += c;
    }
    text_ += '"';
}

void ArrayText::add(std::int64_t n) {
    if (text_.size() > 1) text_ += ',';
    text_ += std::to_string(n);
}

std::string ArrayText::take() {
    return text_ + "}";
}

}  // namespace holdfast::postgresql
