// PostgreSQL behind HAProxy and under Patroni, set up as docs/deploy/postgresql.md says: the page's
// own files are run, with other names and addresses in them.
#include <fmt/format.h>

#include "crowd.hpp"
#include "holdfast/lab/ha_proxy.hpp"
#include "holdfast/lab/patroni_servers.hpp"
#include "readme.hpp"

using namespace postgresql_tests;

namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

/// That block of the page in that language, changed. Each change has to change something.
std::string block(const std::string& language, int number, const Changes& changes) {
    const std::string page = test_support::readme(POSTGRESQL_DEPLOY),
                      mark = "```" + language + "\n";
    std::size_t begin = 0;
    for (int i = 0; i <= number; ++i) {
        begin = page.find(mark, begin);
        REQUIRE(begin != page.npos);
        begin += mark.size();
    }
    std::string text = page.substr(begin, page.find("```", begin) - begin);
    for (const auto& [from, to] : changes) {
        INFO(from);
        REQUIRE(text.find(from) != text.npos);
        for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
            text.replace(at, from.size(), to);
    }
    return text;
}

std::string here(std::uint16_t port) {
    return fmt::format("127.0.0.1:{}", port);
}

Changes bound_to(std::uint16_t port) {
    return {{"*:5432", here(port)}};
}

/// The whole file: what Debian's has before the page's block, as far as it matters.
std::string haproxy_file(const std::string& listen) {
    return "global\n    maxconn 500\ndefaults\n    mode http\n" + listen;
}

}  // namespace

TEST_CASE("managed: 20 primaries die under 50 waiters, behind HAProxy", "[.][managed]") {
    auto servers = lab::PostgresServers::start();
    servers.server(0).sql("CREATE ROLE haproxy LOGIN");
    const lab::HaProxy proxy([&](std::uint16_t port) {
        Changes changes = bound_to(port);
        for (std::size_t i = 0; i < servers.size(); ++i)
            changes.emplace_back(fmt::format("db{}:5432", i + 1), here(servers.port(i)));
        return haproxy_file(block("haproxy", 0, changes));
    });
    Series series({fmt::format("postgresql://holdfast@{}/holdfast", here(proxy.port()))});
    series.fail_over(servers, 20);
    series.require_sound(series.end("behind HAProxy, synchronous standbys"));
}

TEST_CASE("managed: 20 switchovers by Patroni under 50 waiters, half of them behind HAProxy",
          "[.][managed]") {
    lab::PatroniServers servers(3, [](const lab::PatroniMember& m) {
        return block("yaml", 0,
                     {{"name: db1", "name: " + m.name},
                      {"db1:8008", here(m.rest_port)},
                      {"etcd1:2379", m.etcd},
                      {"db1:5432", here(m.port)},
                      {"/var/lib/postgresql/app", (m.directory / "data").string()},
                      {"/usr/lib/postgresql/15/bin", m.programs.string()},
                      {"10.0.0.0/24", "127.0.0.1/32"},
                      {"CHANGE-ME", "not-secret"},
                      // So that a test need not wait as long as a human would.
                      {"ttl: 30", "ttl: 20"},
                      {"loop_wait: 10", "loop_wait: 1"},
                      {"retry_timeout: 10", "retry_timeout: 5"},
                      {"parameters:",
                       "parameters:\n        fsync: \"off\"\n        max_connections: 200\n"
                       "        unix_socket_directories: \"\""}});
    });
    const std::string superuser = "user=postgres password=not-secret";
    servers.sql(superuser, "CREATE ROLE holdfast LOGIN PASSWORD 'not-secret-either'");
    servers.sql(superuser, "CREATE DATABASE holdfast OWNER holdfast");
    const lab::HaProxy proxy([&](std::uint16_t port) {
        // The page's first block up to its check, and the second one.
        std::string listen = block("haproxy", 0, bound_to(port));
        listen.erase(listen.find("    option tcp-check"));
        Changes changes{{"port 8008 ", ""}};
        for (std::size_t i = 0; i < servers.size(); ++i)
            changes.emplace_back(
                fmt::format("db{}:5432", i + 1),
                fmt::format("{} port {}", here(servers.port(i)), servers.rest_port(i)));
        return haproxy_file(listen + block("haproxy", 1, changes));
    });
    const auto url = [](const std::string& hosts) {
        return fmt::format("postgresql://holdfast:not-secret-either@{}/holdfast", hosts);
    };
    std::string hosts;
    for (std::size_t i = 0; i < servers.size(); ++i)
        hosts += (i == 0 ? "" : ",") + here(servers.port(i));
    Series series({url(hosts), url(here(proxy.port()))});
    for (int i = 0; i < 20; ++i) {
        series.go_on(20, "they take turns");
        servers.switch_over();
        series.promoted();
        servers.wait_settled();
    }
    series.require_sound(series.end("Patroni's switchover, half of the clients behind HAProxy"));
}
