// One PostgreSQL server, or a primary with synchronous standbys, and their faults.
#include "deployment.hpp"

#include <fmt/format.h>

#include <holdfast/lab/postgres_server.hpp>
#include <holdfast/lab/postgres_servers.hpp>

namespace holdfast::deployments {
namespace {

using lab::Data;

class Postgres final : public Deployment {
public:
    Postgres() : server_(lab::PostgresServer::start(options())) {}
    static lab::PostgresOptions options() {
        lab::PostgresOptions o;
        o.fsync = true;
        o.config = {"max_connections = 200"};
        return o;
    }
    std::string words() const override {
        return "PostgreSQL " + server_.value("SHOW server_version") + ", fsync on, no standby";
    }
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("postgresql://holdfast@{}/holdfast?ttl=3s&request_timeout=1s",
                           hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        auto out = process_faults(server_);
        const std::vector<ServerFault> own{
            {"pg_terminate_backend of every connection",
             [this](Random&, const Wait&) {
                 server_.sql(
                     "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                     "usename = 'holdfast' AND pid <> pg_backend_pid()");
             }},
            {"no connection left (CONNECTION LIMIT 0)",
             [this](Random& r, const Wait& wait) {
                 server_.sql("ALTER ROLE holdfast CONNECTION LIMIT 0");
                 server_.sql(
                     "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                     "usename = 'holdfast' AND pid <> pg_backend_pid()");
                 wait(outage(r));
                 server_.sql("ALTER ROLE holdfast CONNECTION LIMIT -1");
             }},
            {"the table locked by another session", [this](Random& r, const Wait&) {
                 server_.sql(
                     fmt::format("DO $$ BEGIN IF to_regclass('holdfast_lease') IS NOT NULL THEN "
                                 "LOCK TABLE holdfast_lease IN ACCESS EXCLUSIVE MODE; "
                                 "PERFORM pg_sleep({}); END IF; END $$",
                                 static_cast<double>(pick(r, 20, 1200).count()) / 1000.0));
             }}};
        out.insert(out.end(), own.begin(), own.end());
        return out;
    }
    void wipe() override { server_.restart(Data::fresh); }
    void wait_ready() override { server_.wait_ready(); }
    /// PostgreSQL's manual, asynchronous commit: at most three times that.
    std::chrono::milliseconds unsynced_release() override {
        const auto delay =
            server_.value("SELECT setting FROM pg_settings WHERE name = 'wal_writer_delay'");
        return 3 * std::chrono::milliseconds(std::stol(delay));
    }

private:
    lab::PostgresServer server_;
};

class Replicated final : public Deployment {
public:
    Replicated() : servers_(lab::PostgresServers::start({.server = Postgres::options()})) {}
    std::string words() const override {
        return "PostgreSQL " + servers_.server(0).value("SHOW server_version") +
               ", a primary and two standbys, each commit at one of them";
    }
    std::vector<std::uint16_t> ports() const override {
        std::vector<std::uint16_t> all;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            all.push_back(servers_.port(i));
        return all;
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override {
        return fmt::format("postgresql://holdfast@{}/holdfast?ttl=3s&request_timeout=1s",
                           hosts(ports));
    }
    std::vector<ServerFault> faults() override {
        return {{"primary killed, a standby promoted",
                 [this](Random& r, const Wait& wait) {
                     const std::size_t old = servers_.primary();
                     kill([&] { servers_.server(old).kill(); });
                     servers_.promote_another();
                     wait(outage(r));
                     servers_.server(old).follow(servers_.server(servers_.primary()));
                 }},
                {"a standby killed, and made anew",
                 [this](Random& r, const Wait& wait) {
                     auto& standby = servers_.server((servers_.primary() + 1) % servers_.size());
                     standby.kill();
                     wait(outage(r));
                     standby.follow(servers_.server(servers_.primary()));
                 }},
                {"primary stopped (SIGSTOP)", [this](Random& r, const Wait& wait) {
                     auto& primary = servers_.server(servers_.primary());
                     primary.pause();
                     wait(outage(r));
                     primary.resume();
                 }}};
    }
    void wipe() override { servers_.server(servers_.primary()).sql("DELETE FROM holdfast_lease"); }
    void wait_ready() override { servers_.server(servers_.primary()).wait_ready(); }
    /// It reaches a standby within that time after it is on the disk.
    std::chrono::milliseconds unsynced_release() override { return std::chrono::seconds(2); }

private:
    lab::PostgresServers servers_;
};

const Add replicated{"postgresql-3", [] { return std::make_unique<Replicated>(); }};
const Add postgresql{"postgresql", [] { return std::make_unique<Postgres>(); }};

}  // namespace
}  // namespace holdfast::deployments
