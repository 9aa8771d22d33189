#include "holdfast/lab/postgres_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <utility>

#include "answers.hpp"
#include "holdfast/lab/error.hpp"
#include "postgres_connection.hpp"
#include "postgres_files.hpp"
#include "single_server.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab {

using namespace detail;

class PostgresServer::Impl final : public SqlServer::Impl {
public:
    explicit Impl(PostgresOptions options, const Impl* primary = nullptr)
        : SqlServer::Impl({"PostgreSQL", "postgres", "postgresql-15", SIGINT, SIGQUIT}, options),
          options_(std::move(options)) {
        give_away(directory());
        if (primary != nullptr)
            copy(*primary);
        else
            make_data();
        start();
        if (primary == nullptr) set_up();
    }
    ~Impl() override {
        // An orderly end takes the server's shared memory with it.
        try {
            end(Data::fresh);
        } catch (const std::exception&) {
        }
    }

    const PostgresOptions& options() const { return options_; }
    const char* scheme() const noexcept override { return "postgresql"; }
    std::string conninfo(const char* database = "postgres") const {
        return fmt::format("host={} port={} user=postgres dbname={} connect_timeout=5",
                           directory().string(), port(), database);
    }
    SqlRows sql(const std::string& text) const override {
        return run_sql(conninfo("holdfast"), text);
    }

    void follow(const Impl& primary) {
        end(Data::fresh);
        std::filesystem::remove_all(data());
        copy(primary);
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
    void make_data() override { make_cluster(data()); }

    void copy(const Impl& primary) const {
        run_unprivileged({postgres_program("pg_basebackup"), "-D", data().string(), "-R", "-X",
                          "stream", "-c", "fast", "--no-sync", "-d", primary.conninfo()});
    }

    std::vector<std::string> command() override {
        write_text(data() / "lab.conf", configuration());
        const auto main = data() / "postgresql.conf";
        const auto text = read_text(main);
        const std::string include = "include 'lab.conf'\n";
        if (text.find(include) == std::string::npos) write_text(main, text + include);
        write_text(data() / "pg_hba.conf", access());
        give_away(data());
        return unprivileged({postgres_program("postgres"), "-D", data().string()});
    }

    std::string password_is(const std::string& password) const override {
        return "ALTER ROLE holdfast PASSWORD '" + password + "'";
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
            port(), directory().string(), options_.fsync ? "on" : "off");
        if (tls_)
            text += fmt::format("ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
                                tls_->cert.string(), tls_->key.string());
        for (const auto& line : options_.config)
            text += line + "\n";
        return text;
    }

    const PostgresOptions options_;
};

PostgresServer PostgresServer::start(PostgresOptions options) {
    return PostgresServer(std::make_unique<Impl>(std::move(options)));
}

PostgresServer::PostgresServer(std::unique_ptr<Impl> impl) noexcept : SqlServer(std::move(impl)) {}
PostgresServer::Impl& PostgresServer::impl() const noexcept {
    return static_cast<Impl&>(*impl_);
}

std::filesystem::path PostgresServer::socket_directory() const {
    return impl().directory();
}

PostgresServer PostgresServer::standby() const {
    const auto followers = [this] {
        return value(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND "
            "application_name <> 'pg_basebackup'");
    };
    const auto before = followers();
    PostgresServer made(std::make_unique<Impl>(impl().options(), &impl()));
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
    impl().follow(primary.impl());
}

void PostgresServer::stream_from(const PostgresServer* primary) {
    impl().stream_from(primary == nullptr ? nullptr : &primary->impl());
}

PgBouncer::PgBouncer(const PostgresServer& server, const std::string& mode, int connections)
    : process_(launch(server, mode, connections)) {
    const auto conninfo = fmt::format(
        "host=127.0.0.1 port={} user=holdfast dbname=holdfast connect_timeout=5 password='{}'",
        port(), server.password());
    wait_for_answer(process_, "pgbouncer", [&] { run_sql(conninfo, "SELECT 1"); });
}

Process PgBouncer::launch(const PostgresServer& server, const std::string& mode,
                          int connections) const {
    const bool open = server.password().empty();
    const auto users = directory_ / "users.txt", file = directory_ / "pgbouncer.ini";
    write_text(users, "\"holdfast\" \"" + server.password() + "\"\n");
    write_text(
        file,
        fmt::format("[databases]\nholdfast = host=127.0.0.1 port={} dbname=holdfast{}\n"
                    "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n"
                    "unix_socket_dir = {}\nauth_type = {}\nauth_file = {}\n"
                    "pool_mode = {}\ndefault_pool_size = {}\nmax_client_conn = 200\n",
                    server.port(), open ? " user=holdfast" : "", port(), directory_.path().string(),
                    open ? "any" : "plain", users.string(), mode, connections));
    give_away(directory_.path());
    ProcessOptions options;
    options.argv = unprivileged({"pgbouncer", file.string()});
    options.package = "pgbouncer";
    options.log = directory_ / "log";
    return Process(std::move(options));
}

std::string PgBouncer::url() const {
    return fmt::format("postgresql://holdfast@127.0.0.1:{}/holdfast", port());
}

}  // namespace holdfast::lab
