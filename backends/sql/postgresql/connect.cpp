#include "connect.hpp"

#include <poll.h>

#include <algorithm>
#include <cctype>

#include "../common/server_connection.hpp"
#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

/// Of what a server may say unasked, its warnings are for an operator.
void hear_notice(void* shared, const PGresult* notice) noexcept {
    const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char* words = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    if (severity == nullptr || words == nullptr || severity != std::string_view("WARNING")) return;
    try {
        static_cast<Shared*>(shared)->heard_warning("the server warns: " + sql::first_words(words));
    } catch (const std::exception&) {  // out of memory: it is only a warning
    }
}

class Attempt {
public:
    Attempt(Shared& shared, Shared::Opening& opening, boot_clock::time_point silence,
            boot_clock::time_point end)
        : shared_(shared), opening_(opening), silence_(silence), end_(end) {}

    spi::Answer<PgHandle> run(const spi::Endpoint& host, const std::string& address,
                              const std::string& password) {
        PgHandle h = start(host, address, password);
        error_code why = h ? drive(h.get()) : make(Error::no_resources);
        if (!why && PQserverVersion(h.get()) < 120000) why = make(Error::too_old);
        if (!why) return h;
        if (!h || why == make(Error::no_answer)) return spi::Failure(why);
        if (why == make(Error::too_old)) return spi::Failure(why, "PostgreSQL 12 or newer");
        const std::string_view message = PQerrorMessage(h.get());
        const auto state = state_in(message);
        if (!state.empty()) why = make(from_state(state));
        spi::Failure failed(why, words_of(message));
        if (why == make(Error::refused) && PQsslInUse(h.get()) == 0 &&
            !shared_.options.tls_chosen && message.find("SSL was required") != message.npos)
            failed.detail +=
                "; sslmode=prefer in the URL does without, and shows everybody on the "
                "way the password";
        return failed;
    }

private:
    PgHandle start(const spi::Endpoint& host, const std::string& address,
                   const std::string& password) const {
        const Options& o = shared_.options;
        const std::string port = std::to_string(host.port);
        std::vector<const char*> names, values;
        const auto add = [&](const char* name, const std::string& value) {
            if (value.empty()) return;
            names.push_back(name);
            values.push_back(value.c_str());
        };
        add("host", host.host.empty() ? o.socket : host.host);
        add("hostaddr", address);
        add("port", port);
        add("dbname", o.database);
        add("user", o.user);
        add("password", password);
        add("client_encoding", utf8_);
        // Without one, OpenSSL asks for the pass phrase of an encrypted sslkey on the terminal, or
        // reads standard input.
        add("sslpassword", no_pass_phrase_);
        for (const auto& [name, value] : o.libpq)
            add(name.c_str(), value);
        if (!o.tls_chosen && !sql::on_this_machine(address)) add("sslmode", require_);
        names.push_back(nullptr);
        values.push_back(nullptr);
        PgHandle h{PQconnectStartParams(names.data(), values.data(), 0), &PQfinish};
        // Before the server can send one: libpq would write it to the standard error output.
        if (h) PQsetNoticeReceiver(h.get(), &hear_notice, &shared_);
        return h;
    }

    error_code drive(PGconn* c) const {
        // The message then has the SQLSTATE in it, whatever the server's language is.
        PQsetErrorVerbosity(c, PQERRORS_VERBOSE);
        if (PQstatus(c) == CONNECTION_BAD) return make(Error::refused);
        PostgresPollingStatusType next = PGRES_POLLING_WRITING;
        bool spoke = false;
        while (next != PGRES_POLLING_OK) {
            if (next == PGRES_POLLING_FAILED) return make(Error::refused);
            pollfd p{PQsocket(c),
                     static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
            const auto until = spoke ? end_ : silence_;
            const auto left = std::chrono::ceil<milliseconds>(until - boot_clock::now()).count();
            if (left <= 0 && PQstatus(c) != CONNECTION_STARTED) opening_.slow();
            if (left <= 0 || shared_.watchdog->closing()) return make(Error::no_answer);
            const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left, 50)));
            if (n <= 0) continue;
            const bool heard = next == PGRES_POLLING_READING;
            next = PQconnectPoll(c);
            if (!heard || next == PGRES_POLLING_FAILED) continue;
            spoke = true;
            opening_.answer();
        }
        return {};
    }

    Shared& shared_;
    Shared::Opening& opening_;
    const boot_clock::time_point silence_, end_;
    const std::string utf8_ = "UTF8", require_ = "require", no_pass_phrase_ = "-";
};

}  // namespace

std::string_view state_in(std::string_view message) noexcept {
    for (auto at = message.find(": "); at != message.npos; at = message.find(": ", at + 1)) {
        auto from = at + 2;
        while (from < message.size() && message[from] == ' ')
            ++from;
        const auto word = message.substr(from, 5);
        // A severity looks alike, but has no digit.
        const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
        const bool state = word.size() == 5 && message.substr(from + 5).starts_with(": ") &&
                           std::any_of(word.begin(), word.end(), digit) &&
                           std::all_of(word.begin(), word.end(), [&](unsigned char c) {
                               return digit(c) || (c >= 'A' && c <= 'Z');
                           });
        if (state) return word;
    }
    return {};
}

std::string words_of(std::string_view message) {
    if (const auto state = state_in(message); !state.empty())
        message = message.substr(static_cast<std::size_t>(state.data() - message.data()) + 7);
    else if (const auto failed = message.find(" failed: "); failed != message.npos)
        message = message.substr(failed + 9);
    for (const char* severity : {"ERROR:", "FATAL:", "PANIC:"})
        if (message.starts_with(severity)) message.remove_prefix(6);
    while (message.starts_with(' '))
        message.remove_prefix(1);
    return sql::first_words(message);
}

spi::Answer<PgHandle> connect(Shared& shared, const spi::Endpoint& host, const std::string& address,
                              Shared::Opening& opening, boot_clock::time_point silence,
                              boot_clock::time_point end) {
    std::string password;
    if (!shared.options.password.empty()) {
        auto secret = shared.options.password.read();
        if (!secret) return std::move(secret).error();
        password = std::move(*secret);
    }
    return Attempt(shared, opening, silence, end).run(host, address, password);
}

}  // namespace holdfast::postgresql
