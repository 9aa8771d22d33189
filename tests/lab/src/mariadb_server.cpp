#include "holdfast/lab/mariadb_server.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "holdfast/lab/error.hpp"
#include "mariadb_connection.hpp"
#include "mariadb_files.hpp"
#include "single_server.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab {

using namespace detail;

class MariadbServer::Impl final : public SqlServer::Impl {
public:
    explicit Impl(MariadbOptions options, bool replica = false)
        : SqlServer::Impl({"MariaDB", "mariadbd", "mariadb-server-core", SIGTERM, SIGKILL},
                          options),
          options_(std::move(options)),
          replica_(replica) {
        give_away(directory());
        make_data();
        start();
        if (!replica_) set_up();
    }

    const MariadbOptions& options() const { return options_; }
    std::filesystem::path socket() const { return directory() / "socket"; }
    const char* scheme() const noexcept override { return "mysql"; }
    SqlRows sql(const std::string& text) const override {
        auto rows = run_mariadb(socket(), "holdfast", text);
        rows.erase(rows.begin());
        return rows;
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
    void make_data() override { make_mariadb_data(data(), options_.data); }

    std::vector<std::string> command() override {
        const auto file = directory() / "lab.cnf";
        write_text(file, configuration());
        give_away(file);
        return unprivileged({mariadb_program("mariadbd"), "--defaults-file=" + file.string()});
    }

    std::string password_is(const std::string& password) const override {
        return "ALTER USER holdfast@'%' IDENTIFIED BY '" + password + "'";
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
            data().string(), port(), socket().string(), (directory() / "pid").string(),
            options_.fsync ? 1 : 2, options_.fsync ? 1 : 0, directory().string());
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
};

MariadbServer MariadbServer::start(MariadbOptions options) {
    return MariadbServer(std::make_unique<Impl>(std::move(options)));
}

MariadbServer::MariadbServer(std::unique_ptr<Impl> impl) noexcept : SqlServer(std::move(impl)) {}
MariadbServer::Impl& MariadbServer::impl() const noexcept {
    return static_cast<Impl&>(*impl_);
}

std::filesystem::path MariadbServer::socket() const {
    return impl().socket();
}

MariadbServer MariadbServer::replica() const {
    auto made = std::make_unique<Impl>(impl().options(), true);
    made->follow(impl());
    return MariadbServer(std::move(made));
}

void MariadbServer::promote() {
    impl().promote();
}

}  // namespace holdfast::lab
