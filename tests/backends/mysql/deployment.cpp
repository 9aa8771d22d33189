// One MariaDB server, and its faults.
#include "deployment.hpp"

#include <fmt/format.h>

#include <holdfast/lab/mariadb_server.hpp>

namespace holdfast::deployments {
namespace {

using lab::Data;

class Mysql final : public Deployment {
public:
    Mysql() : server_(lab::MariadbServer::start(options())) {}
    static lab::MariadbOptions options() {
        lab::MariadbOptions o;
        o.fsync = true;
        o.config = {"max_connections = 500"};
        return o;
    }
    std::string words() const override {
        return "MariaDB " + server_.value("SELECT SUBSTRING_INDEX(VERSION(), '-', 1)") +
               ", innodb_flush_log_at_trx_commit 1, no binary log, no replica";
    }
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("mysql://holdfast@{}/holdfast?ttl=3s&request_timeout=1s", hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = process_faults(server_);
        const std::vector<ServerFault> own{
            {"KILL of every connection",
             [this](Random&, const Wait&) { server_.sql("KILL USER holdfast"); }},
            {"no connection left (MAX_USER_CONNECTIONS -1)",
             [this](Random& r, const Wait& wait) {
                 server_.sql("ALTER USER holdfast WITH MAX_USER_CONNECTIONS -1");
                 server_.sql("KILL USER holdfast");
                 wait(outage(r));
                 server_.sql("ALTER USER holdfast WITH MAX_USER_CONNECTIONS 0");
             }},
            {"the table locked by another session", [this](Random& r, const Wait&) {
                 if (server_.sql("SHOW TABLES LIKE 'holdfast_lease'").empty()) return;
                 server_.sql(
                     fmt::format("LOCK TABLES holdfast_lease WRITE; DO SLEEP({}); UNLOCK TABLES",
                                 static_cast<double>(pick(r, 20, 1200).count()) / 1000.0));
             }}};
        out.insert(out.end(), own.begin(), own.end());
        return out;
    }
    void wipe() override { server_.restart(Data::fresh); }
    void wait_ready() override { server_.wait_ready(); }

private:
    lab::MariadbServer server_;
};

const Add mysql{"mysql", [] { return std::make_unique<Mysql>(); }};

}  // namespace
}  // namespace holdfast::deployments
