// The lab itself comes in as root over the Unix socket, whatever clients need, so a test may take
// any right away from its clients and still look at the server.
#include "holdfast/lab/mariadb_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "mariadb_connection.hpp"
#include "mariadb_files.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab {

using namespace detail;

class MariadbServer::Impl {
public:
    explicit Impl(MariadbOptions options, bool replica = false)
        : options_(std::move(options)), replica_(replica) {
        if (options_.tls) tls_ = make_tls_files(directory_.path());
        give_away(directory_.path());
        make_mariadb_data(data(), options_.data);
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
        if (!replica_) set_password();
    }

    const MariadbOptions& options() const { return options_; }
    std::uint16_t port() const { return port_.number(); }
    const std::optional<TlsFiles>& tls() const { return tls_; }
    std::filesystem::path data() const { return directory_ / "data"; }
    std::filesystem::path socket() const { return directory_ / "socket"; }
    std::string log() const { return read_text(log_file()); }
    Process& process() {
        if (!process_) throw LabError("the MariaDB server could not be started again");
        return *process_;
    }
    SqlRows sql(const std::string& text) const {
        auto rows = run_mariadb(socket(), "holdfast", text);
        rows.erase(rows.begin());
        return rows;
    }

    void wait_ready(std::chrono::nanoseconds cap) {
        std::string last;
        bool ready = false;
        const auto answers = [&] {
            if (!process().alive()) {
                last = "it has ended";
                return true;
            }
            try {
                run_mariadb(socket(), "", "SELECT 1");
                return ready = true;
            } catch (const LabError& error) {
                last = error.what();
                return false;
            }
        };
        if (!reached(answers, cap) || !ready)
            throw LabError(fmt::format("mariadbd does not answer ({})\n  command: {}\n  log:\n{}",
                                       last, process().command_line(), process().log_tail()));
    }

    void restart(Data what) {
        if (process_ && process_->alive()) {
            process_->resume();
            process_->signal(what == Data::keep ? SIGTERM : SIGKILL);
            if (!process_->wait(default_cap))
                throw LabError("mariadbd did not end\n" + process_->log_tail());
        }
        process_.reset();
        if (what == Data::fresh) {
            std::filesystem::remove_all(data());
            make_mariadb_data(data(), options_.data);
        }
        launch();
        if (what == Data::fresh) set_password();
    }

    /// Applies what `primary` has in its binary log, and returns when all of it is here.
    void follow(const Impl& primary) {
        if (!primary.options_.binary_log)
            throw LabError("a replica needs a primary with MariadbOptions::binary_log");
        primary.sql(
            "CREATE USER IF NOT EXISTS replica@'127.0.0.1';"
            "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'");
        sql(
            fmt::format("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {},"
                        " MASTER_USER = 'replica', MASTER_SSL = {}, MASTER_CONNECT_RETRY = 1,"
                        " MASTER_USE_GTID = slave_pos; START SLAVE",
                        primary.port(), primary.tls_ ? 1 : 0));
        apply(primary.sql("SELECT @@gtid_binlog_pos").at(0).at(0));
    }

    void promote() {
        sql("STOP SLAVE IO_THREAD");
        apply(slave_status("Gtid_IO_Pos"));
        sql("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
    }

private:
    std::filesystem::path log_file() const { return directory_ / "mariadb.log"; }

    void launch() {
        write_text(directory_ / "lab.cnf", configuration());
        give_away(directory_ / "lab.cnf");
        ProcessOptions process;
        process.argv = unprivileged(
            {mariadb_program("mariadbd"), "--defaults-file=" + (directory_ / "lab.cnf").string()});
        process.package = "mariadb-server-core";
        process.log = log_file();
        process.directory = directory_.path();
        process.environment = {{"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}};
        process.environment.insert(process.environment.end(), options_.environment.begin(),
                                   options_.environment.end());
        process.cpus = options_.cpus;
        process_.emplace(std::move(process));
        wait_ready(options_.cap);
    }

    void set_password() {
        if (!options_.password.empty())
            sql("ALTER USER holdfast@'%' IDENTIFIED BY '" + options_.password + "'");
    }

    /// Waits until what a position names has been applied here.
    void apply(const std::string& position) {
        const auto answer = sql(
            fmt::format("SELECT MASTER_GTID_WAIT('{}', {})", position,
                        std::chrono::duration_cast<std::chrono::seconds>(options_.cap).count()));
        if (answer.at(0).at(0) != "0")
            throw LabError("the replica does not apply " + position + ": " +
                           slave_status("Last_Error") + slave_status("Last_IO_Error"));
    }

    std::string slave_status(const std::string& column) const {
        const auto rows = run_mariadb(socket(), "", "SHOW SLAVE STATUS");
        const auto found = std::find(rows[0].begin(), rows[0].end(), column);
        if (rows.size() < 2 || found == rows[0].end()) throw LabError("this is no replica");
        return rows[1].at(static_cast<std::size_t>(found - rows[0].begin()));
    }

    std::string configuration() const {
        // Without a sync every commit is in the kernel's hands all the same, so that a killed
        // server loses none.
        std::string text = fmt::format(
            "[mariadbd]\ndatadir = {0}\nport = {1}\nbind_address = 127.0.0.1\nsocket = {2}\n"
            "pid_file = {3}\ntmpdir = {6}\nskip_name_resolve\nserver_id = {1}\nlc_messages = "
            "en_US\n"
            "innodb_buffer_pool_size = 64M\ninnodb_log_file_size = 8M\n"
            "innodb_flush_log_at_trx_commit = {4}\nsync_binlog = {5}\n",
            data().string(), port(), socket().string(), (directory_ / "pid").string(),
            options_.fsync ? 1 : 2, options_.fsync ? 1 : 0, directory_.path().string());
        if (!options_.fsync) text += "innodb_flush_method = nosync\n";
        if (options_.binary_log) text += "log_bin = binlog\nbinlog_format = ROW\n";
        if (replica_) text += "read_only = 1\nskip_slave_start\n";
        if (tls_)
            text += fmt::format(
                "ssl_cert = {}\nssl_key = {}\nssl_ca = {}\nrequire_secure_transport = ON\n",
                tls_->cert.string(), tls_->key.string(), tls_->ca.string());
        for (const auto& line : options_.config)
            text += line + "\n";
        return text;
    }

    const MariadbOptions options_;
    const bool replica_;
    TempDir directory_;
    Port port_ = free_port();
    std::optional<TlsFiles> tls_;
    std::optional<Process> process_;
};

MariadbServer MariadbServer::start(MariadbOptions options) {
    return MariadbServer(std::make_unique<Impl>(std::move(options)));
}

MariadbServer::MariadbServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
MariadbServer::MariadbServer(MariadbServer&&) noexcept = default;
MariadbServer& MariadbServer::operator=(MariadbServer&&) noexcept = default;
MariadbServer::~MariadbServer() = default;

std::string MariadbServer::url() const {
    return fmt::format("mysql://holdfast@127.0.0.1:{}/holdfast", port());
}
std::string MariadbServer::url_with_password(std::uint16_t through) const {
    return fmt::format("mysql://holdfast{}@127.0.0.1:{}/holdfast",
                       password().empty() ? std::string() : ":" + password(),
                       through == 0 ? port() : through);
}
std::uint16_t MariadbServer::port() const noexcept {
    return impl_->port();
}
const std::string& MariadbServer::password() const noexcept {
    return impl_->options().password;
}
std::filesystem::path MariadbServer::ca_file() const {
    if (!impl_->tls()) throw LabError("this MariaDB server was started without TLS");
    return impl_->tls()->ca;
}
std::filesystem::path MariadbServer::data_directory() const {
    return impl_->data();
}
std::filesystem::path MariadbServer::socket() const {
    return impl_->socket();
}
std::string MariadbServer::log() const {
    return impl_->log();
}
Process& MariadbServer::process() {
    return impl_->process();
}
bool MariadbServer::alive() {
    return impl_->process().alive();
}
void MariadbServer::pause() {
    impl_->process().pause();
}
void MariadbServer::resume() {
    impl_->process().resume();
}
void MariadbServer::kill() {
    impl_->process().kill();
}
void MariadbServer::restart(Data data) {
    impl_->restart(data);
}
void MariadbServer::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}
SqlRows MariadbServer::sql(const std::string& text) const {
    return impl_->sql(text);
}
std::string MariadbServer::value(const std::string& text) const {
    const auto rows = sql(text);
    if (rows.empty() || rows[0].empty()) throw LabError("no row: " + text);
    return rows[0][0];
}

MariadbServer MariadbServer::replica() const {
    auto made = std::make_unique<Impl>(impl_->options(), true);
    made->follow(*impl_);
    return MariadbServer(std::move(made));
}

void MariadbServer::promote() {
    impl_->promote();
}

}  // namespace holdfast::lab
