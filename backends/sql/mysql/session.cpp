#include "session.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "../common/server_connection.hpp"

namespace holdfast::mysql {
namespace {

/// Ways to prove a password that show it to nobody, and those that encrypt it with a key that the
/// server sends unless nobody can listen.
constexpr std::string_view private_proofs =
                               "mysql_native_password,client_ed25519,auth_gssapi_client",
                           proofs_by_key = ",caching_sha2_password,sha256_password";
/// Where the system keeps trusted certificates.
constexpr const char* system_certificates = "/etc/ssl/certs";

/// At the first use, several threads might do it at once.
const int ready_at_load = mysql_server_init(0, nullptr, nullptr);

void set_tls(MYSQL* m, const Options& o, bool on) {
    my_bool enforce = on ? 1 : 0, verify = on && o.tls_verify ? 1 : 0;
    mysql_optionsv(m, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_optionsv(m, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    if (!on) return;
    const auto path = [](const std::string& p) { return p.empty() ? nullptr : p.c_str(); };
    const bool system = o.tls_ca_file.empty() && o.tls_verify;
    mysql_ssl_set(m, path(o.tls_key_file), path(o.tls_cert_file), path(o.tls_ca_file),
                  system ? system_certificates : nullptr, nullptr);
}

/// What libmariadb leaves out: a child inherits nothing, and a silent peer is noticed.
void prepare(int socket, std::chrono::seconds silent) {
    (void)::fcntl(socket, F_SETFD, FD_CLOEXEC);
    constexpr int probes = 3;
    const auto set = [&](int level, int name, int value) {
        (void)::setsockopt(socket, level, name, &value, sizeof value);  // fails on a Unix socket
    };
    const int idle = static_cast<int>(silent.count());
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, idle);
    set(IPPROTO_TCP, TCP_KEEPINTVL, std::max(idle / probes, 1));
    set(IPPROTO_TCP, TCP_KEEPCNT, probes);
}

std::string proofs(const Options& o, bool tls) {
    const bool unheard = tls || !o.socket.empty();
    return std::string(private_proofs).append(unheard ? proofs_by_key : "");
}

spi::Failure why_not(MYSQL* m, const Options& o, bool tls) {
    const unsigned number = mysql_errno(m);
    spi::Failure failed(make(from_number(number)), sql::first_words(mysql_error(m)));
    if (number == 5010)
        failed.detail = "the server asks for another proof of the password than " + proofs(o, tls) +
                        (tls ? "" : "; with tls=on there are more");
    if (tls && number == 2026)
        failed.detail +=
            "; tls_ca_file names the certificates to trust, tls_verify=no trusts every server, "
            "tls=off does without";
    return failed;
}

/// Waits for what libmariadb waits for, at most a moment. Returns what has happened.
int wait_for(MYSQL* m, int what, boot_clock::duration most) {
    pollfd p{static_cast<int>(mysql_get_socket(m)), 0, 0};
    if ((what & MYSQL_WAIT_READ) != 0) p.events |= POLLIN;
    if ((what & MYSQL_WAIT_WRITE) != 0) p.events |= POLLOUT;
    constexpr milliseconds slice{50};
    const auto ms = std::min(std::chrono::ceil<milliseconds>(most), slice);
    if (::poll(&p, 1, static_cast<int>(ms.count())) <= 0) return 0;
    const bool readable = (p.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    return what & ((readable ? MYSQL_WAIT_READ : 0) |
                   ((p.revents & (POLLOUT | POLLHUP | POLLERR)) != 0 ? MYSQL_WAIT_WRITE : 0));
}

/// The call that libmariadb can interrupt: of all others a socket can be shut, which is not known
/// here before they return. True when it took too long.
bool drive(MYSQL* m, const Options& o, const std::string& host, const std::string& password,
           boot_clock::time_point deadline, const sql::Watchdog& watchdog) {
    const bool unix_socket = !o.socket.empty();
    MYSQL* connected = nullptr;
    int waits = mysql_real_connect_start(
        &connected, m, unix_socket ? nullptr : host.c_str(),
        o.user.empty() ? nullptr : o.user.c_str(), password.c_str(), o.database.c_str(), o.port,
        unix_socket ? o.socket.c_str() : nullptr, CLIENT_MULTI_STATEMENTS);
    prepare(static_cast<int>(mysql_get_socket(m)), o.silent);
    bool late = false;
    while (waits != 0) {
        const auto left = deadline - boot_clock::now();
        late = late || left <= boot_clock::duration::zero() || watchdog.closing();
        const int happened = late ? MYSQL_WAIT_TIMEOUT : wait_for(m, waits, left);
        if (happened != 0) waits = mysql_real_connect_cont(&connected, m, happened);
    }
    return late;
}

}  // namespace

spi::Answer<Session> Session::connect(Shared& shared, const std::string& address,
                                      boot_clock::time_point deadline) {
    const Options& o = shared.options;
    Handle handle(mysql_init(nullptr), &mysql_close);
    if (ready_at_load != 0 || !handle) return spi::Failure(make(Error::no_resources));
    std::string password;
    if (!o.password.empty()) {
        auto secret = o.password.read();
        if (!secret) return std::move(secret).error();
        password = std::move(*secret);
    }
    MYSQL* const m = handle.get();
    const bool tls = o.tls_to(address);
    my_bool off = 0;
    unsigned files = 0;
    // No file of this machine for a server that asks, no option file, no silent reconnect.
    mysql_optionsv(m, MYSQL_OPT_LOCAL_INFILE, &files);
    mysql_optionsv(m, MYSQL_OPT_RECONNECT, &off);
    // Else "localhost" means a socket of libmariadb's own.
    const unsigned protocol = o.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_optionsv(m, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_optionsv(m, MYSQL_OPT_NONBLOCK, nullptr);
    mysql_optionsv(m, MYSQL_SET_CHARSET_NAME, "binary");
    mysql_optionsv(m, MARIADB_OPT_RESTRICTED_AUTH, proofs(o, tls).c_str());
    // Else OpenSSL asks for the pass phrase of an encrypted key on the terminal.
    mysql_optionsv(m, MARIADB_OPT_TLS_PASSPHRASE, "-");
    mysql_optionsv(m, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "holdfast");
    set_tls(m, o, tls);
    // A certificate is for the name, which has been looked up by now.
    const std::string& host = tls && o.tls_verify ? o.host : address;
    if (drive(m, o, host, password, deadline, *shared.watchdog))
        return spi::Failure(make(Error::no_answer));
    if (mysql_errno(m) != 0) return why_not(m, o, tls);
    // It may have gone on to another address.
    prepare(static_cast<int>(mysql_get_socket(m)), o.silent);
    // libmariadb goes on without it unless it verifies the certificate.
    if (tls && mysql_get_ssl_cipher(m) == nullptr)
        return spi::Failure(make(Error::refused), "the server does no TLS; tls=off does without");
    return Session(std::move(handle));
}

bool Session::refused(Refusal& why) const {
    why.number = mysql_errno(handle_.get());
    why.words = sql::first_words(mysql_error(handle_.get()));
    return false;
}

bool Session::take_result(int columns, Result& result, Refusal& why) {
    MYSQL* const m = handle_.get();
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> stored(mysql_store_result(m),
                                                                          &mysql_free_result);
    // libmariadb forgets that there are rows to come when the connection breaks before them.
    if (!stored && mysql_errno(m) != 0) return refused(why);
    const unsigned found = stored ? mysql_num_fields(stored.get()) : 0;
    if (static_cast<int>(found) != columns) {
        why.words = std::to_string(found) + " columns";
        return false;
    }
    if (!stored) {
        result.affected = mysql_affected_rows(m);
        result.id = mysql_insert_id(m);
        return true;
    }
    while (MYSQL_ROW row = mysql_fetch_row(stored.get())) {
        const unsigned long* lengths = mysql_fetch_lengths(stored.get());
        auto& texts = result.rows.emplace_back();
        for (unsigned i = 0; i < found; ++i)
            texts.emplace_back(row[i] == nullptr ? std::string_view()
                                                 : std::string_view(row[i], lengths[i]));
    }
    return true;
}

std::optional<bool> Session::run_prepared(const Filled& one, Result& result, Refusal& why) {
    const auto at = static_cast<std::size_t>(one.sql);
    if (!prepares_ || at >= prepared_.size()) return {};
    Prepared& its = prepared_[at];
    // A connection that is used once is better off with the text.
    if (!std::exchange(its.wanted, true)) return {};
    const bool known = its.handle != nullptr;
    if (!known) its.handle.reset(mysql_stmt_init(handle_.get()));
    MYSQL_STMT* const s = its.handle.get();
    if (s == nullptr) return {};
    const auto judge = [&](bool not_executed) -> std::optional<bool> {
        why.number = mysql_stmt_errno(s);
        why.words = sql::first_words(mysql_stmt_error(s));
        if (!not_executed) return false;
        prepares_ = false;
        return {};
    };
    const std::string& text = text_of(one.sql);
    if (!known && mysql_stmt_prepare(s, text.data(), text.size()) != 0)
        return judge(!of_client(mysql_stmt_errno(s)));
    std::vector<MYSQL_BIND> values(one.values.size());
    if (mysql_stmt_param_count(s) != values.size()) {
        why.words = "another number of values";
        return false;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto* number = std::get_if<std::int64_t>(&one.values[i]);
        const auto* bytes = std::get_if<std::string>(&one.values[i]);
        values[i].buffer_type = number != nullptr ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        // It is only read.
        values[i].buffer = number != nullptr ? const_cast<std::int64_t*>(number)
                                             : static_cast<void*>(const_cast<char*>(bytes->data()));
        values[i].buffer_length = number != nullptr ? sizeof *number : bytes->size();
    }
    if (mysql_stmt_bind_param(s, values.data()) != 0 || mysql_stmt_execute(s) != 0)
        return judge(of_preparing(mysql_stmt_errno(s)));
    if (mysql_stmt_field_count(s) != 0 || mysql_more_results(handle_.get()) != 0) {
        why.words = "rows, or more results than statements";
        return false;
    }
    result.affected = mysql_stmt_affected_rows(s);
    result.id = mysql_stmt_insert_id(s);
    return true;
}

bool Session::named() {
    // MySQL takes no values there, only variables, which cost as much as they save.
    if (!prepares_ || mariadb_connection(handle_.get()) == 0) return false;
    if (named_) return true;
    if (!std::exchange(packed_, true)) return false;
    std::vector<Result> results;
    Refusal why;
    named_ = run_text(names_prepared(), std::vector<int>(most_prepared), results, why);
    prepares_ = named_;
    return named_;
}

bool Session::run(const Packet& packet, Prepare prepare, std::vector<Result>& results,
                  Refusal& why) {
    const std::vector<Filled>& all = packet.statements;
    const bool prepares = prepare == Prepare::yes;
    if (prepares && all.size() == 1)
        if (const auto done = run_prepared(all[0], results.emplace_back(), why)) return *done;
    results.clear();
    why = {};
    bool known = false;
    std::vector<int> columns;
    for (const Filled& one : all) {
        columns.push_back(columns_of(one.sql));
        known = known || static_cast<std::size_t>(one.sql) < most_prepared;
    }
    const bool by_name = prepares && known && all.size() > 1 && named();
    return run_text(packet.text(by_name), columns, results, why);
}

bool Session::run_text(const std::string& text, const std::vector<int>& columns,
                       std::vector<Result>& results, Refusal& why) {
    MYSQL* const m = handle_.get();
    if (mysql_real_query(m, text.data(), text.size()) != 0) return refused(why);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (!take_result(columns[i], results.emplace_back(), why)) return false;
        const int next = mysql_next_result(m);
        if (next > 0) return refused(why);
        const bool more_to_come = i + 1 < columns.size();
        if ((next == 0) == more_to_come) continue;
        why.words = "fewer or more results than statements";
        return false;
    }
    return true;
}

}  // namespace holdfast::mysql
