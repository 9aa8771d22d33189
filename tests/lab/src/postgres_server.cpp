// The lab itself comes in as the superuser over the Unix socket, whatever clients need, so a test
// may take any right away from its clients and still look at the server.
#include "holdfast/lab/postgres_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <optional>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "postgres_connection.hpp"
#include "postgres_files.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab {

using namespace detail;

class PostgresServer::Impl {
public:
    explicit Impl(PostgresOptions options, const Impl* primary = nullptr)
        : options_(std::move(options)), standby_(primary != nullptr) {
        if (options_.tls) tls_ = make_tls_files(directory_.path());
        give_away(directory_.path());
        if (primary != nullptr)
            copy(*primary);
        else
            make_cluster(data());
        // The port was free when it was reserved, but only listening on it makes it ours.
        for (int attempt = 1;; ++attempt) {
            try {
                launch();
                break;
            } catch (const LabError&) {
                const bool taken = log().find("Address already in use") != std::string::npos;
                if (!taken || attempt == 5) throw;
                process_.reset();
                std::filesystem::remove(log_file());
                port_ = free_port();
            }
        }
        if (!standby_) set_password();
    }
    ~Impl() {
        // An orderly end takes the server's shared memory with it.
        try {
            if (process_ && process_->alive()) {
                process_->resume();
                process_->signal(SIGQUIT);
                (void)process_->wait(std::chrono::seconds(5));
            }
        } catch (const std::exception&) {
        }
    }

    const PostgresOptions& options() const { return options_; }
    std::uint16_t port() const { return port_.number(); }
    const std::optional<TlsFiles>& tls() const { return tls_; }
    std::filesystem::path data() const { return directory_ / "data"; }
    std::filesystem::path directory() const { return directory_.path(); }
    std::string log() const { return read_text(log_file()); }
    Process& process() {
        if (!process_) throw LabError("the PostgreSQL server could not be started again");
        return *process_;
    }
    std::string conninfo(const char* database = "postgres") const {
        return fmt::format("host={} port={} user=postgres dbname={} connect_timeout=5",
                           directory_.path().string(), port_.number(), database);
    }
    SqlRows sql(const std::string& text) const { return run_sql(conninfo("holdfast"), text); }

    void wait_ready(std::chrono::nanoseconds cap) {
        std::string last;
        bool ready = false;
        const auto answers = [&] {
            if (!process().alive()) {
                last = "it has ended";
                return true;
            }
            try {
                run_sql(conninfo(), "SELECT 1");
                return ready = true;
            } catch (const LabError& error) {
                last = error.what();
                return false;
            }
        };
        if (!reached(answers, cap) || !ready)
            throw LabError(fmt::format("postgres does not answer ({})\n  command: {}\n  log:\n{}",
                                       last, process().command_line(), process().log_tail()));
    }

    void restart(Data what) {
        end(what);
        if (what == Data::fresh) {
            std::filesystem::remove_all(data());
            make_cluster(data());
        }
        launch();
        if (what == Data::fresh) set_password();
    }

    void follow(const Impl& primary) {
        end(Data::fresh);
        std::filesystem::remove_all(data());
        copy(primary);
        standby_ = true;
        launch();
    }

    void stream_from(const Impl* primary) {
        // It shows the address that it has, not the setting.
        run_sql(conninfo(), "ALTER SYSTEM SET primary_conninfo = '" +
                                (primary == nullptr ? "" : primary->conninfo()) + "'");
        run_sql(conninfo(), "SELECT pg_reload_conf()");
        const std::string follows =
            primary == nullptr ? "SELECT count(*) = 0 FROM pg_stat_wal_receiver"
                               : fmt::format(
                                     "SELECT count(*) = 1 FROM pg_stat_wal_receiver WHERE status = "
                                     "'streaming' AND sender_port = {}",
                                     primary->port());
        wait_until([&] { return run_sql(conninfo(), follows).at(0).at(0) == "t"; }, default_cap,
                   "the standby gets its changes from there");
    }

private:
    void copy(const Impl& primary) const {
        run_unprivileged({postgres_program("pg_basebackup"), "-D", data().string(), "-R", "-X",
                          "stream", "-c", "fast", "--no-sync", "-d", primary.conninfo()});
    }

    void end(Data what) {
        if (process_ && process_->alive()) {
            process_->resume();
            process_->signal(what == Data::keep ? SIGINT : SIGQUIT);
            if (!process_->wait(default_cap))
                throw LabError("postgres did not end\n" + process_->log_tail());
        }
        process_.reset();
    }

    std::filesystem::path log_file() const { return directory_ / "postgres.log"; }

    void launch() {
        write_text(data() / "lab.conf", configuration());
        const auto main = data() / "postgresql.conf";
        const auto text = read_text(main);
        const std::string include = "include 'lab.conf'\n";
        if (text.find(include) == std::string::npos) write_text(main, text + include);
        write_text(data() / "pg_hba.conf", access());
        give_away(data());
        ProcessOptions process;
        process.argv = unprivileged({postgres_program("postgres"), "-D", data().string()});
        process.package = "postgresql-15";
        process.log = log_file();
        process.directory = directory_.path();
        process.environment = {{"LC_ALL", "C.UTF-8"}};
        process.environment.insert(process.environment.end(), options_.environment.begin(),
                                   options_.environment.end());
        process.cpus = options_.cpus;
        process_.emplace(std::move(process));
        wait_ready(options_.cap);
    }

    void set_password() {
        if (!options_.password.empty())
            run_sql(conninfo(), "ALTER ROLE holdfast PASSWORD '" + options_.password + "'");
    }

    std::string access() const {
        const std::string method = options_.password.empty() ? "trust" : "scram-sha-256";
        const std::string type = options_.tls ? "hostssl" : "host";
        return "local all postgres trust\nlocal replication postgres trust\n"
               "local all all " +
               method + "\n" + type + " all all 127.0.0.1/32 " + method + "\n";
    }

    std::string configuration() const {
        std::string text = fmt::format(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\n"
            "fsync = {}\nlog_destination = 'stderr'\nlogging_collector = off\n"
            "shared_buffers = '16MB'\nmax_wal_size = '64MB'\nmin_wal_size = '4MB'\n"
            "max_connections = 60\nautovacuum_naptime = '5s'\nlc_messages = 'C'\n",
            port_.number(), directory_.path().string(), options_.fsync ? "on" : "off");
        if (tls_)
            text += fmt::format("ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
                                tls_->cert.string(), tls_->key.string());
        for (const auto& line : options_.config)
            text += line + "\n";
        return text;
    }

    const PostgresOptions options_;
    bool standby_;
    TempDir directory_;
    Port port_ = free_port();
    std::optional<TlsFiles> tls_;
    std::optional<Process> process_;
};

PostgresServer PostgresServer::start(PostgresOptions options) {
    return PostgresServer(std::make_unique<Impl>(std::move(options)));
}

PostgresServer::PostgresServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
PostgresServer::PostgresServer(PostgresServer&&) noexcept = default;
PostgresServer& PostgresServer::operator=(PostgresServer&&) noexcept = default;
PostgresServer::~PostgresServer() = default;

std::string PostgresServer::url() const {
    return fmt::format("postgresql://holdfast@127.0.0.1:{}/holdfast", port());
}
std::string PostgresServer::url_with_password(std::uint16_t through) const {
    return fmt::format("postgresql://holdfast{}@127.0.0.1:{}/holdfast",
                       password().empty() ? std::string() : ":" + password(),
                       through == 0 ? port() : through);
}
std::uint16_t PostgresServer::port() const noexcept {
    return impl_->port();
}
const std::string& PostgresServer::password() const noexcept {
    return impl_->options().password;
}
std::filesystem::path PostgresServer::ca_file() const {
    if (!impl_->tls()) throw LabError("this PostgreSQL server was started without TLS");
    return impl_->tls()->ca;
}
std::filesystem::path PostgresServer::data_directory() const {
    return impl_->data();
}
std::filesystem::path PostgresServer::socket_directory() const {
    return impl_->directory();
}
std::string PostgresServer::log() const {
    return impl_->log();
}
Process& PostgresServer::process() {
    return impl_->process();
}
bool PostgresServer::alive() {
    return impl_->process().alive();
}
void PostgresServer::pause() {
    impl_->process().pause();
}
void PostgresServer::resume() {
    impl_->process().resume();
}
void PostgresServer::kill() {
    impl_->process().kill();
}
void PostgresServer::restart(Data data) {
    impl_->restart(data);
}
void PostgresServer::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}
SqlRows PostgresServer::sql(const std::string& text) const {
    return impl_->sql(text);
}
std::string PostgresServer::value(const std::string& text) const {
    const auto rows = sql(text);
    if (rows.empty() || rows[0].empty()) throw LabError("no row: " + text);
    return rows[0][0];
}

PostgresServer PostgresServer::standby() const {
    const auto followers = [this] {
        return value(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND "
            "application_name <> 'pg_basebackup'");
    };
    const auto before = followers();
    PostgresServer made(std::make_unique<Impl>(impl_->options(), impl_.get()));
    // It answers before the primary knows of it.
    wait_until([&] { return followers() != before; }, default_cap, "the standby follows");
    return made;
}

void PostgresServer::promote() {
    sql("SELECT pg_promote(true, 30)");
    wait_until([&] { return value("SELECT pg_is_in_recovery()") == "f"; }, default_cap,
               "the standby takes writes");
}

void PostgresServer::follow(const PostgresServer& primary) {
    impl_->follow(*primary.impl_);
}

void PostgresServer::stream_from(const PostgresServer* primary) {
    impl_->stream_from(primary == nullptr ? nullptr : primary->impl_.get());
}

class PgBouncer::Impl {
public:
    Impl(const PostgresServer& server, const std::string& mode, int connections) {
        write_text(directory_ / "users.txt", "\"holdfast\" \"" + server.password() + "\"\n");
        write_text(directory_ / "pgbouncer.ini",
                   fmt::format("[databases]\nholdfast = host=127.0.0.1 port={} dbname=holdfast\n"
                               "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n"
                               "unix_socket_dir = {}\nauth_type = {}\nauth_file = {}\n"
                               "pool_mode = {}\ndefault_pool_size = {}\nmax_client_conn = 200\n",
                               server.port(), port_.number(), directory_.path().string(),
                               server.password().empty() ? "any" : "plain",
                               (directory_ / "users.txt").string(), mode, connections));
        if (server.password().empty()) {
            auto text = read_text(directory_ / "pgbouncer.ini");
            text.replace(text.find("dbname=holdfast"), 15, "dbname=holdfast user=holdfast");
            write_text(directory_ / "pgbouncer.ini", text);
        }
        give_away(directory_.path());
        ProcessOptions options;
        options.argv = unprivileged({"pgbouncer", (directory_ / "pgbouncer.ini").string()});
        options.package = "pgbouncer";
        options.log = directory_ / "log";
        process_.emplace(std::move(options));
        std::string last;
        const bool ready = reached(
            [&] {
                try {
                    run_sql(fmt::format("host=127.0.0.1 port={} user=holdfast dbname=holdfast "
                                        "connect_timeout=5 password='{}'",
                                        port_.number(), server.password()),
                            "SELECT 1");
                    return true;
                } catch (const LabError& error) {
                    last = error.what();
                    return !process_->alive();
                }
            },
            default_cap);
        if (!ready || !process_->alive())
            throw LabError("pgbouncer does not answer (" + last + ")\n" + process_->log_tail());
    }
    TempDir directory_;
    Port port_ = free_port();
    std::optional<Process> process_;
};

PgBouncer::PgBouncer(const PostgresServer& server, const std::string& mode, int connections)
    : impl_(std::make_unique<Impl>(server, mode, connections)) {}
PgBouncer::PgBouncer(PgBouncer&&) noexcept = default;
PgBouncer::~PgBouncer() = default;
std::string PgBouncer::url() const {
    return fmt::format("postgresql://holdfast@127.0.0.1:{}/holdfast", port());
}
std::uint16_t PgBouncer::port() const noexcept {
    return impl_->port_.number();
}
Process& PgBouncer::process() {
    return *impl_->process_;
}

}  // namespace holdfast::lab
