// The lab is what other tests believe, so it has to be tested without them and without a framework:
// every fault is checked to have had its effect, and every end to have left nothing behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/grpc_client.hpp"
#include "holdfast/lab/grpc_server.hpp"
#include "holdfast/lab/mariadb_server.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/postgres_servers.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/single_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/zookeeper_server.hpp"

namespace {

using namespace holdfast::lab;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int checks = 0;
int failures = 0;

#define CHECK(condition) check((condition), #condition, __LINE__)

void check(bool ok, const char* what, int line) {
    ++checks;
    if (!ok) {
        ++failures;
        fmt::print(stderr, "selftest.cpp:{}: failed: {}\n", line, what);
    }
}

template <class Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const LabError& error) {
        return error.what();
    }
    return {};
}

template <class Function>
std::chrono::milliseconds time_of(Function&& function) {
    const auto begin = Clock::now();
    function();
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool gone(pid_t pid) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string line;
    // A zombie is as gone as can be where nobody collects it.
    return !std::getline(stat, line) || contains(line, ") Z ");
}

// What a foreign program sees of one exchange through the proxy: the reply, or why there was none.
std::string exchange(std::uint16_t port, const std::vector<std::string>& command,
                     std::chrono::milliseconds cap = 5s) {
    try {
        RedisConnection connection("127.0.0.1", port, cap);
        return to_string(connection.command(command, cap));
    } catch (const LabError& error) {
        return error.what();
    }
}

void waiting() {
    int looks = 0;
    CHECK(reached([&] { return ++looks == 3; }, 5s) && looks == 3);
    CHECK(!reached([] { return false; }, 5ms));
    CHECK(time_of([] { (void)reached([] { return false; }, 60ms); }) >= 60ms);
    CHECK(contains(error_of([] { wait_until([] { return false; }, 5ms, "the moon"); }),
                   "not within 5 ms: the moon"));
    CHECK(stays_true([] { return true; }, 10ms));
    CHECK(!stays_true([] { return false; }, 5s));
}

void directories_and_ports() {
    std::filesystem::path path;
    {
        TempDir directory;
        path = directory.path();
        CHECK(std::filesystem::is_directory(path));
        CHECK(path.filename().string().starts_with("holdfast-lab-"));
        std::filesystem::create_directories(directory / "a/b/c");
        TempDir moved = std::move(directory);
        CHECK(directory.path().empty() && moved.path() == path);
    }
    CHECK(!std::filesystem::exists(path));
    {
        TempDir directory;
        path = directory.path();
        directory.keep();
    }
    CHECK(std::filesystem::exists(path));
    std::filesystem::remove_all(path);

    std::vector<Port> ports;
    std::set<std::uint16_t> numbers;
    for (int i = 0; i < 200; ++i) {
        ports.push_back(free_port());
        numbers.insert(ports.back().number());
    }
    CHECK(numbers.size() == 200);
    CHECK(numbers.count(6379) == 0 && *numbers.begin() > 1024);
}

void processes() {
    TempDir directory;
    ProcessOptions options;
    options.argv = {"sh", "-c",
                    "echo out; echo err >&2; echo \"$LAB_WORD\"; ls /proc/self/fd | wc -l"};
    options.environment = {{"LAB_WORD", "two words"}};
    options.log = directory / "log";
    Process shell(options);
    const auto status = shell.wait(10s);
    CHECK(status && !status->by_signal && status->code == 0);
    CHECK(contains(shell.log_tail(), "out\nerr\ntwo words\n"));
    // Standard input, output and error, and the one that ls itself opens.
    CHECK(contains(shell.log_tail(1), "4"));
    CHECK(shell.state() == ProcessState::exited && shell.family().empty());

    options.argv = {"sh", "-c", "setsid sh -c 'while :; do :; done' & sleep 1000 & wait"};
    Process parent(options);
    CHECK(reached([&] { return parent.family().size() == 3; }));
    const auto family = parent.family();
    parent.pause();
    CHECK(parent.state() == ProcessState::stopped && parent.alive());
    parent.resume();
    CHECK(parent.state() == ProcessState::running);
    parent.pause();
    parent.kill();
    CHECK(!parent.alive());
    for (const pid_t pid : family) {
        CHECK(gone(pid));
    }
    CHECK(contains(error_of([&] { parent.pause(); }), "has ended"));

    options.argv = {"sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.01; done"};
    Process polite(options);
    CHECK(reached([&] { return polite.family().size() == 2; }));
    // Often, so that some of them fall between a vfork and its exec.
    for (int i = 0; i < 200; ++i) {
        polite.pause();
        polite.resume();
    }
    polite.pause();
    const auto end = polite.terminate();
    CHECK(!end.by_signal && end.code == 3);

    options.argv = {"no-such-server-binary"};
    options.package = "no-such-package";
    const auto error = error_of([&] { Process missing(options); });
    CHECK(contains(error, "no-such-server-binary") && contains(error, "no-such-package"));
}

void redis_process() {
    auto server = RedisServer::start();
    CHECK(server.url() == fmt::format("redis://127.0.0.1:{}", server.port()));
    CHECK(server.url_with_password() == server.url());
    CHECK(server.cli({"SET", "k", "v"}).is_ok());
    CHECK(server.cli({"GET", "k"}).text == "v");
    CHECK(server.cli({"GET", "none"}).is_nil());
    CHECK(server.cli({"NOSUCH"}).is_error());
    CHECK(server.cli({"INCR", "n"}).integer == 1);
    const auto nested = server.cli({"EVAL", "return {1, {'a', false}, 'b'}", "0"});
    CHECK(to_string(nested) == R"([(integer) 1, ["a", (nil)], "b"])");
    CHECK(server.info("server").at("redis_mode") == "standalone");
    CHECK(server.info("persistence").at("aof_enabled") == "0");

    const pid_t first = server.process().pid();
    server.pause();
    CHECK(server.process().state() == ProcessState::stopped);
    CHECK(contains(error_of([&] { server.cli({"PING"}, 100ms); }), "no answer"));
    server.resume();
    CHECK(server.process().state() == ProcessState::running);
    CHECK(server.cli({"PING"}).text == "PONG");

    const auto port = server.port();
    server.restart(Data::keep);
    CHECK(server.process().pid() != first && gone(first));
    CHECK(server.port() == port && server.cli({"GET", "k"}).text == "v");
    server.pause();
    server.restart(Data::keep);
    CHECK(server.cli({"GET", "k"}).text == "v");
    server.restart(Data::fresh);
    CHECK(server.cli({"GET", "k"}).is_nil());

    CHECK(server.cli({"SET", "unsaved", "1"}).is_ok());
    server.kill();
    CHECK(!server.alive() && server.process().state() == ProcessState::exited);
    CHECK(contains(error_of([&] { server.cli({"PING"}); }), "Connection refused"));
    CHECK(contains(error_of([&] { server.wait_ready(); }), "it has ended"));
    server.restart();
    CHECK(server.cli({"GET", "unsaved"}).is_nil());

    RedisServer moved = std::move(server);
    CHECK(moved.cli({"PING"}).text == "PONG");
}

void redis_options() {
    RedisOptions durable;
    durable.append_only = true;
    auto server = RedisServer::start(durable);
    CHECK(server.cli({"SET", "k", "v"}).is_ok());
    server.kill();
    server.restart();
    CHECK(server.cli({"GET", "k"}).text == "v");
    CHECK(server.cli({"CONFIG", "GET", "appendfsync"}).elements.at(1).text == "always");

    RedisOptions guarded;
    guarded.password = "secret";
    guarded.users = {"app on >word ~lock:* +@all"};
    auto closed = RedisServer::start(guarded);
    CHECK(closed.url_with_password() == fmt::format("redis://:secret@127.0.0.1:{}", closed.port()));
    CHECK(!contains(closed.url(), "secret"));
    CHECK(contains(exchange(closed.port(), {"PING"}), "NOAUTH"));
    CHECK(closed.cli({"PING"}).text == "PONG");
    RedisConnection client("127.0.0.1", closed.port());
    CHECK(client.command({"AUTH", "secret"}).is_ok());
    CHECK(client.command({"AUTH", "app", "word"}).is_ok());
    CHECK(client.command({"SET", "lock:a", "1"}).is_ok());
    CHECK(contains(client.command({"SET", "other", "1"}).text, "NOPERM"));
    closed.restart();
    CHECK(closed.cli({"GET", "lock:a"}).text == "1");

    RedisOptions wrong;
    wrong.config = {"no-such-directive yes"};
    const auto error = error_of([&] { (void)RedisServer::start(wrong); });
    CHECK(contains(error, "no-such-directive") && contains(error, "redis-server "));
}

void redis_tls() {
    RedisOptions options;
    options.tls = true;
    auto server = RedisServer::start(options);
    CHECK(server.url().starts_with("rediss://"));
    CHECK(server.cli({"PING"}).text == "PONG");
    TempDir directory;
    const auto ping = [&](const std::filesystem::path& ca) {
        ProcessOptions client;
        client.argv = {"redis-cli", "--tls", "--cacert",
                       ca.string(), "-p",    std::to_string(server.port()),
                       "PING"};
        client.package = "redis-tools";
        client.log = directory / "client.log";
        Process process(client);
        const auto status = process.wait(10s);
        return (status ? std::to_string(status->code) : "none") + " " + process.log_tail(1);
    };
    CHECK(ping(server.ca_file()) == "0 PONG");
    auto other = RedisServer::start(options);
    CHECK(!contains(ping(other.ca_file()), "PONG"));
    CHECK(!contains(exchange(server.port(), {"PING"}, 2s), "PONG"));
    auto plain = RedisServer::start();
    CHECK(contains(error_of([&] { (void)plain.ca_file(); }), "without TLS"));
}

void postgresql_standbys() {
    auto servers = PostgresServers::start();
    servers.server(0).sql("CREATE TABLE t AS SELECT 1 AS n");
    servers.fail_over();
    const auto second = servers.primary();
    CHECK(second != 0 && servers.server(0).alive());
    CHECK(servers.server(0).value("SELECT pg_is_in_recovery()") == "t");
    CHECK(servers.server(second).value("SELECT n FROM t") == "1");
    // One at least has what was answered; none has what was written while they got nothing.
    servers.server(second).sql("UPDATE t SET n = 2");
    servers.server(second).sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    servers.server(second).sql("SELECT pg_reload_conf()");
    wait_until(
        [&] { return servers.server(second).value("SHOW synchronous_standby_names").empty(); }, 5s,
        "no commit waits");
    servers.hold_back();
    servers.server(second).sql("UPDATE t SET n = 3");
    const auto third = servers.promote_another();
    CHECK(third != second && servers.server(third).value("SELECT n FROM t") == "2");
    CHECK(servers.server(second).value("SELECT n FROM t") == "3");  // left running
}

/// Of any server with SQL, whose clients have the password "word"; leaves a table t with one row.
void sql_words(SqlServer& server) {
    CHECK(contains(server.url_with_password(), ":word@") && !contains(server.url(), "word"));
    CHECK(contains(error_of([&] { server.sql("SELECT nothing"); }), "nothing"));
    CHECK(contains(error_of([&] { (void)server.value("SELECT 1 WHERE 1 = 0"); }), "no row"));
    CHECK(contains(error_of([&] { (void)server.ca_file(); }), "without TLS"));
    server.sql("CREATE TABLE t AS SELECT 1 AS n");

    // Every thread and process of it stands still, and goes on.
    server.pause();
    CHECK(server.process().state() == ProcessState::stopped);
    server.resume();
    CHECK(server.value("SELECT n FROM t") == "1");
}

void sql_killed_and_restarted(SqlServer& server) {
    const auto port = server.port();
    server.kill();
    CHECK(!server.alive());
    CHECK(!error_of([&] { server.sql("SELECT 1"); }).empty());
    server.restart(Data::keep);
    CHECK(server.port() == port);
}

template <class Server>
void moved_and_ended(Server server) {
    const auto folder = server.data_directory();
    auto moved = std::move(server);
    CHECK(moved.value("SELECT 1") == "1");
    { const auto gone_now = std::move(moved); }
    CHECK(!std::filesystem::exists(folder));
}

void postgresql() {
    auto server = PostgresServer::start({.password = "word", .config = {"work_mem = '3MB'"}});
    CHECK(server.value("SHOW work_mem") == "3MB");
    CHECK(server.value("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'holdfast'") == "t");
    sql_words(server);
    sql_killed_and_restarted(server);
    CHECK(server.value("SELECT n FROM t") == "1");

    auto standby = server.standby();
    CHECK(standby.value("SELECT pg_is_in_recovery()") == "t");
    CHECK(standby.value("SELECT n FROM t") == "1");
    CHECK(contains(error_of([&] { standby.sql("DROP TABLE t"); }), "read-only"));
    standby.promote();
    standby.sql("DROP TABLE t");
    CHECK(server.value("SELECT n FROM t") == "1");

    PgBouncer pooler(server);
    CHECK(pooler.port() != server.port() && pooler.process().alive());

    server.restart(Data::fresh);
    CHECK(server.value("SELECT to_regclass('t') IS NULL") == "t");
    moved_and_ended(std::move(server));
}

void mariadb() {
    auto server = MariadbServer::start(
        {.password = "word", .binary_log = true, .config = {"max_connections = 77"}});
    CHECK(server.value("SELECT @@max_connections") == "77");
    CHECK(server.sql("SELECT 1; SELECT user, NULL FROM mysql.user WHERE user <> 'mariadb.sys' "
                     "AND user <> 'root'") == SqlRows({{"holdfast", ""}}));
    CHECK(server.value("SELECT CURRENT_USER()") == "root@localhost");
    CHECK(contains(error_of([&] { server.sql("SELECT 1; SELECT nothing"); }), "nothing"));
    sql_words(server);

    // A replica has what was written before it was made, and after, and takes no writes of others.
    auto replica = server.replica();
    CHECK(replica.value("SELECT n FROM t") == "1");
    CHECK(replica.value("SELECT @@read_only") == "1");
    server.sql("UPDATE t SET n = 2");
    CHECK(reached([&] { return replica.value("SELECT n FROM t") == "2"; }));
    const auto password = "SELECT authentication_string FROM mysql.user WHERE user = 'holdfast'";
    CHECK(replica.value(password) == server.value(password) && !replica.value(password).empty());
    server.sql("UPDATE t SET n = 3");
    replica.promote();
    CHECK(replica.value("SELECT @@read_only") == "0");
    replica.sql("DROP TABLE t");

    // A killed server has all that it answered.
    server.sql("INSERT INTO t VALUES (4)");
    sql_killed_and_restarted(server);
    CHECK(server.value("SELECT SUM(n) FROM t") == "7");

    server.restart(Data::fresh);
    CHECK(server.value("SELECT COUNT(*) FROM information_schema.tables "
                       "WHERE table_schema = 'holdfast'") == "0");
    CHECK(server.value(password) == replica.value(password));
    moved_and_ended(std::move(server));
}

void mariadb_clients() {
    auto server = MariadbServer::start({.password = "word", .tls = true});
    TempDir directory;
    const auto select = [&](const std::string& password, const std::filesystem::path& ca) {
        ProcessOptions client;
        client.argv = {"mariadb",
                       "--no-defaults",
                       "--protocol=tcp",
                       "--host=127.0.0.1",
                       "--batch",
                       "--user=holdfast",
                       "--port=" + std::to_string(server.port()),
                       "holdfast",
                       "--execute=SELECT DATABASE()"};
        const auto at = client.argv.begin() + 2;
        if (ca.empty()) {
            client.argv.insert(at, "--skip-ssl");
        } else {
            client.argv.insert(at, {"--ssl-ca=" + ca.string(), "--ssl-verify-server-cert"});
        }
        client.package = "mariadb-client-core";
        client.environment = {{"MYSQL_PWD", password}};
        client.log = directory / "client.log";
        std::filesystem::remove(client.log);
        Process process(client);
        const auto status = process.wait(10s);
        return (status ? std::to_string(status->code) : "none") + " " + process.log_tail(1);
    };
    CHECK(select("word", server.ca_file()) == "0 holdfast");
    CHECK(contains(select("other", server.ca_file()), "Access denied"));
    // Without TLS; MariaDB 11 says what it misses.
    const auto clear = select("word", {});
    CHECK(contains(clear, "Access denied") || contains(clear, "insecure transport"));
    const auto other = make_tls_files(directory.path());
    CHECK(contains(select("word", other.ca), "certificate"));
    CHECK(contains(error_of([&] { (void)server.replica(); }), "binary_log"));
    CHECK(contains(error_of([&] { server.promote(); }), "no replica"));
    CHECK(contains(error_of([] { (void)MariadbServer::start({.config = {"no_such = 1"}}); }),
                   "no_such"));
}

void redis_monitor() {
    auto server = RedisServer::start();
    auto monitor = server.monitor();
    const std::string odd("a \"quoted\"\\ word\r\n\x01\xff\0 end", 26);
    RedisConnection client("127.0.0.1", server.port());
    for (int i = 0; i < 500; ++i) {
        client.send({"SET", "key", std::to_string(i)});
    }
    CHECK(client.command({"SET", "key", odd}).type == Reply::Type::status);
    server.cli({"EVAL", "return redis.call('GET', KEYS[1])", "1", "key"});
    const auto lines = monitor.stop();
    CHECK(lines.size() == 503);
    CHECK(lines.at(500).command == std::vector<std::string>({"SET", "key", odd}));
    CHECK(lines.back().client == "lua" && lines.back().command.at(1) == "key");
    CHECK(lines.front().time > 1.0e9 && lines.front().database == 0);

    auto broken = server.monitor();
    server.kill();
    CHECK(!error_of([&] { broken.stop(); }).empty());
}

/// Answers with what it is asked, twice, once the client has said all.
struct Echo final : GrpcServer::Listener {
    void message(GrpcServer::Call call, const GrpcServer::Request&, std::string bytes) override {
        server.send(call, bytes);
        server.send(call, bytes);
    }
    void last(GrpcServer::Call call) override { server.finish(call); }
    void cancelled(GrpcServer::Call) override { ++cancellations; }
    GrpcServer server{*this};
    int cancellations = 0;
};

void grpc_ends() {
    GrpcClient client("nobody");
    Echo echo;
    const auto meet = [&] {
        for (;;) {
            const std::string asked = client.output();
            echo.server.receive(asked);
            const std::string said = echo.server.output();
            client.receive(said);
            if (asked.empty() && said.empty()) {
                return;
            }
        }
    };
    const std::string large(300'000, 'x');  // several frames, and more than a window
    const auto one = client.start({"/a/B", large}), open = client.start({"/a/C", "m", true});
    meet();
    CHECK((client.answer(one) == GrpcAnswer{{large, large}, true, 0, {}}));
    CHECK((client.answer(open) == GrpcAnswer{{"m", "m"}, false, -1, {}}));
    client.send(open, "n");
    meet();
    CHECK(client.answer(open).messages.size() == 4);
    echo.server.finish(open, 5, "h\xc3\xa4 100%");
    meet();
    CHECK(client.answer(open).status == 5 && client.answer(open).text == "h%C3%A4 100%25");
    const auto gone = client.start({"/a/C", "m", true});
    meet();
    client.cancel(gone);
    meet();
    CHECK(echo.cancellations == 1 && !echo.server.is_open(gone));
    const auto refused = client.start({"/a/C", "m", true});
    meet();
    echo.server.finish(refused, 16, "no");
    echo.server.go_away();
    meet();
    CHECK(client.answer(refused).status == 16 && client.told_to_go());
    Echo other;
    other.server.receive(GrpcClient("nobody").output());
    other.server.receive("GET / HTTP/1.1\r\n\r\n and more");
    CHECK(contains(error_of([&] { (void)other.server.output(); }), "FRAME_SIZE_ERROR"));
}

void grpc_with_etcd() {
    auto server = EtcdServers::start({});
    GrpcConnection client("127.0.0.1", server.port());
    const auto answer = client.ask("/etcdserverpb.Cluster/MemberList", "");
    CHECK(answer.status == 0 && answer.messages.size() == 1);
    CHECK((client.ask("/etcdserverpb.KV/Range", "") ==
           GrpcAnswer{{}, true, 3, "etcdserver: key is not provided"}));
    CHECK(client.ask("/etcdserverpb.KV/Nothing", "").status == 12);
}

void proxy_forwards() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    proxy.record();
    CHECK(exchange(proxy.port(), {"SET", "k", "v"}) == "OK");
    CHECK(proxy.recorded(Direction::to_server) == "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    CHECK(proxy.recorded(Direction::to_client) == "+OK\r\n");
    CHECK(reached([&] { return proxy.counters().connections_open == 0; }));
    const auto counters = proxy.counters();
    CHECK(counters.forwarded_to_server == 27 && counters.forwarded_to_client == 5);
    CHECK(counters.connections_accepted == 1 && counters.connections_cut == 0);
    CHECK(!proxy.fired());

    // More than fits into any buffer, both ways at once.
    RedisConnection big("127.0.0.1", proxy.port());
    const std::string blob(3'000'000, 'x');
    for (int i = 0; i < 4; ++i) {
        big.send({"ECHO", blob});
    }
    bool whole = true;
    for (int i = 0; i < 4; ++i) {
        const auto reply = big.receive();
        whole = whole && reply && reply->text == blob;
    }
    CHECK(whole);

    server.kill();
    CHECK(contains(error_of([&] { (void)big.receive(); }), "closed the connection"));
    CHECK(!contains(exchange(proxy.port(), {"PING"}), "PONG"));
    CHECK(proxy.counters().server_unreachable == 1);
    server.restart();
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
}

void proxy_delays() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    RedisConnection client("127.0.0.1", proxy.port());
    CHECK(client.command({"PING"}).text == "PONG");
    proxy.delay(Direction::to_client, 80ms);
    CHECK(!proxy.fired());
    const auto one_way = time_of([&] { client.command({"PING"}); });
    CHECK(one_way >= 80ms && one_way < 2000ms && proxy.fired());
    proxy.delay(Direction::to_server, 50ms, 20ms);
    CHECK(time_of([&] { client.command({"PING"}); }) >= 130ms);
    // A pipeline is delayed as a whole, in order, and not request by request.
    const auto pipeline = time_of([&] {
        for (int i = 0; i < 50; ++i) {
            client.send({"ECHO", std::to_string(i)});
        }
        for (int i = 0; i < 50; ++i) {
            CHECK(client.receive()->text == std::to_string(i));
        }
    });
    CHECK(pipeline >= 130ms && pipeline < 2000ms);
    CHECK(proxy.counters().delayed >= 4);
    proxy.delay_both(60s);
    client.send({"PING"});
    proxy.wait_fired();
    proxy.heal();
    CHECK(client.receive(5s).has_value());
}

void proxy_cuts() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    proxy.record();
    CHECK(exchange(proxy.port(), {"INCR", "n"}) == "(integer) 1");
    const auto request = proxy.recorded(Direction::to_server).size();
    const auto reply = proxy.recorded(Direction::to_client).size();
    CHECK(request == 21 && reply == 4);

    for (const bool reset : {false, true}) {
        const auto arm = [&](Direction direction, std::uint64_t bytes) {
            if (reset) {
                proxy.reset_after(direction, bytes);
            } else {
                proxy.cut_after(direction, bytes);
            }
        };
        for (std::size_t n = 0; n <= request; ++n) {
            CHECK(server.cli({"SET", "n", "0"}).is_ok());
            const auto before = proxy.counters();
            arm(Direction::to_server, n);
            CHECK(!proxy.fired());
            const auto seen = exchange(proxy.port(), {"INCR", "n"});
            proxy.wait_fired();
            const auto after = proxy.counters();
            CHECK(after.forwarded_to_server - before.forwarded_to_server == n);
            CHECK(after.connections_cut - before.connections_cut == 1);
            CHECK(!contains(seen, "(integer)"));
            CHECK(reset || n == 0 || contains(seen, "closed") || contains(seen, "broke"));
            // The whole request had been forwarded: the server acts on it. Anything less: never.
            if (n == request) {
                CHECK(reached([&] { return server.cli({"GET", "n"}).text == "1"; }));
            } else {
                CHECK(server.cli({"GET", "n"}).text == "0");
            }
            CHECK(exchange(proxy.port(), {"INCR", "m"}).starts_with("(integer)"));
        }
        for (std::size_t n = 0; n <= reply; ++n) {
            CHECK(server.cli({"SET", "n", "0"}).is_ok());
            const auto before = proxy.counters();
            arm(Direction::to_client, n);
            const auto seen = exchange(proxy.port(), {"INCR", "n"});
            proxy.wait_fired();
            CHECK(proxy.counters().forwarded_to_client - before.forwarded_to_client == n);
            CHECK(server.cli({"GET", "n"}).text == "1");
            CHECK((n == reply) == contains(seen, "(integer) 1"));
        }
    }

    // Counted on each new connection by itself, twice; the old connection is not concerned.
    RedisConnection old("127.0.0.1", proxy.port());
    CHECK(old.command({"PING"}).text == "PONG");
    proxy.cut_after(Direction::to_client, 3, Count::new_connections, 2);
    CHECK(old.command({"PING"}).text == "PONG");
    CHECK(!contains(exchange(proxy.port(), {"PING"}), "PONG"));
    CHECK(!contains(exchange(proxy.port(), {"PING"}), "PONG"));
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    CHECK(old.command({"PING"}).text == "PONG");

    // Counted over all connections.
    proxy.cut_after(Direction::to_client, 14 + 3);
    CHECK(old.command({"PING"}).text == "PONG");
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG" && !proxy.fired());
    CHECK(contains(error_of([&] { old.command({"PING"}); }), "closed"));

    RedisConnection one("127.0.0.1", proxy.port());
    CHECK(one.command({"PING"}).text == "PONG");
    CHECK(proxy.cut_all(Ending::reset) == 1 && proxy.fired());
    CHECK(contains(error_of([&] { (void)one.receive(); }), "reset"));
    CHECK(proxy.cut_all() == 0 && !proxy.fired());
}

void proxy_swallows() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    RedisConnection client("127.0.0.1", proxy.port());
    CHECK(client.command({"PING"}).text == "PONG");
    const auto before = proxy.counters();
    proxy.swallow();
    client.send({"SET", "k", "v"});
    proxy.wait_fired();
    CHECK(!client.receive(100ms).has_value());
    CHECK(server.cli({"GET", "k"}).text == "v");
    CHECK(proxy.counters().swallowed_to_client == 5);
    CHECK(proxy.counters().forwarded_to_client == before.forwarded_to_client);
    proxy.heal();
    CHECK(!error_of([&] { (void)client.receive(); }).empty());
    CHECK(exchange(proxy.port(), {"GET", "k"}) == "\"v\"");

    // The first reply arrives, the second is lost with the connection, and then all is well.
    for (const auto ending : {Ending::close, Ending::reset}) {
        proxy.swallow_then_cut(Direction::to_client, 2, 7, ending);
        RedisConnection second("127.0.0.1", proxy.port());
        CHECK(second.command({"PING"}).text == "PONG" && !proxy.fired());
        server.cli({"DEL", "k"});
        CHECK(!error_of([&] { second.command({"SET", "k", "w"}); }).empty());
        CHECK(proxy.fired() && server.cli({"GET", "k"}).text == "w");
        CHECK(exchange(proxy.port(), {"GET", "k"}) == "\"w\"");
    }

    proxy.swallow(Direction::to_server);
    CHECK(contains(exchange(proxy.port(), {"SET", "k", "x"}, 100ms), "no answer"));
    proxy.wait_fired();
    CHECK(proxy.fired() && server.cli({"GET", "k"}).text == "w");
    CHECK(proxy.counters().swallowed_to_server == 27);
}

void proxy_holes() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    RedisConnection client("127.0.0.1", proxy.port());
    CHECK(client.command({"PING"}).text == "PONG");
    proxy.black_hole();
    client.send({"SET", "k", "v"});
    proxy.wait_fired();
    RedisConnection late("127.0.0.1", proxy.port());
    late.send({"SET", "l", "v"});
    CHECK(!client.receive(100ms).has_value() && !late.receive(10ms).has_value());
    CHECK(server.cli({"EXISTS", "k", "l"}).integer == 0);
    CHECK(reached([&] { return proxy.counters().connections_open == 2; }));
    proxy.heal();
    CHECK(client.receive()->is_ok() && late.receive()->is_ok());
    CHECK(server.cli({"EXISTS", "k", "l"}).integer == 2);

    proxy.stall(Direction::to_client);
    client.send({"DEL", "k"});
    proxy.wait_fired();
    CHECK(server.cli({"EXISTS", "k"}).integer == 0 && !client.receive(20ms).has_value());
    proxy.heal();
    CHECK(client.receive()->integer == 1);

    for (int round = 0; round < 5; ++round) {
        proxy.refuse();
        CHECK(proxy.fired());
        CHECK(contains(exchange(proxy.port(), {"PING"}), "refused"));
        CHECK(client.command({"PING"}).text == "PONG");
        proxy.heal();
        CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    }
}

void scripts() {
    for (const std::string words :
         {"delay 100 jitter 20 to_client", "delay 5", "cut", "reset", "cut to_server 17",
          "reset to_client 0 new times 3", "swallow to_client", "stall", "stall to_server",
          "swallow to_server after 3 cut 9 times 0", "swallow to_client reset 1", "hole", "refuse",
          "heal"}) {
        CHECK(to_string(parse_fault(words)) == words);
    }
    CHECK(to_string(parse_fault("swallow")) == "swallow to_client");
    for (const std::string words : {"", "delay", "delay x", "cut 5", "cut to_client", "swallow 3",
                                    "swallow cut 0", "hole 1", "heel", "cut to_client 1 2"}) {
        CHECK(!error_of([&] { (void)parse_fault(words); }).empty());
    }
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto script = Script::from_seed(seed);
        const auto again = Script::parse(to_string(script));
        CHECK(again.steps == script.steps && again.seed == seed);
        CHECK(to_string(Script::from_seed(seed)) == to_string(script));
    }
    CHECK(contains(error_of([] { (void)Script::parse("at 5: heal\n\nat x: heal"); }), "line 3"));

    auto server = RedisServer::start();
    Proxy proxy(server.port());
    // By number alone: what comes by the clock might come before that connection.
    proxy.run(Script::parse("connection 2: cut to_client 3\n"));
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    CHECK(!contains(exchange(proxy.port(), {"PING"}), "PONG"));
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    CHECK(proxy.counters().connections_cut == 1);

    proxy.run(Script::parse("at 50: delay 30\nat 200: heal\n"));
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    wait_until([&] { return proxy.script_done(); }, 10s, "the script's end");
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
    CHECK(proxy.counters().connections_cut == 1);

    ScriptBounds bounds;
    bounds.duration = 1500ms;
    bounds.faults = 15;
    bounds.bytes = 40;
    proxy.run(Script::from_seed(7, bounds));
    std::uint64_t answered = 0;
    while (!proxy.script_done()) {
        answered += exchange(proxy.port(), {"PING"}, 50ms) == "PONG" ? 1 : 0;
    }
    CHECK(answered > 0);
    CHECK(proxy.counters().connections_cut > 1);
    CHECK(exchange(proxy.port(), {"PING"}) == "PONG");
}

void threads() {
    auto server = RedisServer::start();
    Proxy proxy(server.port());
    std::vector<std::thread> clients;
    for (int number = 0; number < 4; ++number) {
        clients.emplace_back([&proxy, number] {
            for (int i = 0; i < 40; ++i) {
                exchange(proxy.port(), {"INCR", std::to_string(number)}, 1s);
                (void)proxy.counters();
            }
        });
    }
    for (int i = 0; i < 40; ++i) {
        proxy.cut_after(Direction::to_client, 5);
        proxy.delay_both(1ms);
        (void)proxy.fired();
        proxy.heal();
        (void)server.process().state();
    }
    for (auto& client : clients) {
        client.join();
    }
    CHECK(server.cli({"GET", "0"}).text.size() <= 2);
}

// A pipe to a child of this program, in which `work` runs after a fork.
class Child {
public:
    explicit Child(const std::function<void(int)>& work) {
        int ends[2];
        CHECK(::pipe2(ends, O_CLOEXEC) == 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[0]);
            try {
                work(ends[1]);
            } catch (const std::exception& error) {
                fmt::print(stderr, "in the child: {}\n", error.what());
            }
            ::_exit(0);
        }
        ::close(ends[1]);
        output_ = ends[0];
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() { ::close(output_); }

    // Everything up to the next line break.
    std::string line() const {
        std::string text;
        for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) {
            text += c;
        }
        return text;
    }

    int end(int signal) {
        if (signal != 0) {
            ::kill(pid_, signal);
        }
        int status = 0;
        ::waitpid(pid_, &status, 0);
        return status;
    }

private:
    pid_t pid_ = -1;
    int output_ = -1;
};

void write_line(int fd, const std::string& text) {
    const auto line = text + "\n";
    if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        ::_exit(1);
    }
}

// Starts servers of every state a crash may find them in, tells of them, and hangs.
void hang_with_servers(int output) {
    auto running = RedisServer::start();
    auto paused = RedisServer::start();
    paused.pause();
    ProcessOptions options;
    options.argv = {"sh", "-c", "setsid sleep 1000 & wait"};
    Process family(options);
    wait_until([&] { return family.family().size() == 2; }, default_cap, "the family");
    for (const pid_t pid : {running.process().pid(), paused.process().pid(), family.family()[0],
                            family.family()[1]}) {
        write_line(output, std::to_string(pid));
    }
    write_line(output, running.data_directory().parent_path().string());
    write_line(output, paused.data_directory().parent_path().string());
    (void)stays_true([] { return true; }, 60s);
}

void crashes() {
    for (const int signal : {SIGKILL, SIGINT, SIGSEGV}) {
        Child child([signal](int output) {
            ::signal(signal, SIG_DFL);
            hang_with_servers(output);
        });
        std::vector<pid_t> pids;
        for (int i = 0; i < 4; ++i) {
            pids.push_back(std::atoi(child.line().c_str()));
        }
        const std::filesystem::path first = child.line();
        const std::filesystem::path second = child.line();
        CHECK(std::filesystem::exists(first) && std::filesystem::exists(second));
        for (const pid_t pid : pids) {
            CHECK(pid > 1 && !gone(pid));
        }
        CHECK(WIFSIGNALED(child.end(signal)));
        const auto cleared = [&] {
            return std::all_of(pids.begin(), pids.end(), gone) && !std::filesystem::exists(first) &&
                   !std::filesystem::exists(second);
        };
        CHECK(reached(cleared, 2s));
    }
}

// The child's copies of the parent's objects must not touch what is the parent's.
void forks() {
    auto server = std::make_unique<RedisServer>(RedisServer::start());
    auto proxy = std::make_unique<Proxy>(server->port());
    auto monitor = std::make_unique<RedisMonitor>(server->monitor());
    TempDir directory;
    Child child([&](int output) {
        monitor.reset();
        proxy.reset();
        server.reset();
        { const TempDir taken = std::move(directory); }
        write_line(output, "done");
    });
    CHECK(child.line() == "done");
    child.end(0);
    CHECK(std::filesystem::exists(directory.path()));
    CHECK(server->cli({"PING"}).text == "PONG");
    CHECK(exchange(proxy->port(), {"PING"}) == "PONG");
    CHECK(monitor->stop().size() == 2);
}

void parallel_labs() {
    const auto lab = [](int output) {
        std::vector<Port> ports;
        for (int i = 0; i < 300; ++i) {
            ports.push_back(free_port());
            write_line(output, ports.back().text());
        }
        auto server = RedisServer::start();
        write_line(output, std::to_string(server.port()));
        (void)stays_true([] { return true; }, 60s);
    };
    Child one(lab);
    Child other(lab);
    std::set<std::string> ports;
    for (int i = 0; i < 301; ++i) {
        ports.insert(one.line());
        ports.insert(other.line());
    }
    CHECK(ports.size() == 602 && ports.count("") == 0);
    one.end(SIGKILL);
    other.end(SIGKILL);
}

// The command, as a script would use it.
void command(const std::string& program) {
    TempDir directory;
    const auto run = [&](std::vector<std::string> arguments) {
        ProcessOptions options;
        options.argv = std::move(arguments);
        options.argv.insert(options.argv.begin(), program);
        options.log = directory / "command.log";
        std::filesystem::remove(options.log);
        return Process(options);
    };
    auto usage = run({"reddis"});
    CHECK(usage.wait(10s)->code == 64);
    CHECK(contains(usage.log_tail(), "did you mean redis?"));
    auto option = run({"redis", "--cuont"});
    CHECK(option.wait(10s)->code == 64);
    CHECK(contains(option.log_tail(), "--count"));
    auto help = run({"--help"});
    CHECK(help.wait(10s)->code == 0);
    CHECK(contains(help.log_tail(100), "--proxy") && contains(help.log_tail(100), "swallow"));

    auto servers = run({"redis", "--count", "2", "--proxy"});
    const auto urls = [&] {
        std::vector<std::uint16_t> ports;
        std::ifstream log(directory / "command.log");
        for (std::string line; std::getline(log, line);) {
            if (line.starts_with("redis://127.0.0.1:")) {
                ports.push_back(static_cast<std::uint16_t>(std::atoi(line.c_str() + 18)));
            }
        }
        return ports;
    };
    CHECK(reached([&] { return urls().size() == 2; }));
    const auto ports = urls();
    for (const auto port : ports) {
        CHECK(exchange(port, {"PING"}) == "PONG");
    }
    const auto family = servers.family();
    CHECK(family.size() >= 3);
    const auto status = servers.terminate();
    CHECK(!status.by_signal && status.code == 0);
    for (const pid_t pid : family) {
        CHECK(reached([&] { return gone(pid); }, 2s));
    }
    CHECK(contains(exchange(ports.at(0), {"PING"}), "refused"));
}

void zookeeper_process() {
    auto one = ZooKeeperServers::start();
    CHECK(one.size() == 1);
    CHECK(one.url() == "zookeeper://127.0.0.1:" + std::to_string(one.port()));
    CHECK(contains(one.ask(0, "srvr"), "Mode: standalone"));
    CHECK(one.leader() == std::size_t{0});
    const auto before = one.packets();
    CHECK(one.ask(0, "ruok") == "imok");
    CHECK(one.packets().received >= before.received);
    one.pause();
    CHECK(one.process().state() == ProcessState::stopped);
    CHECK(one.ask(0, "ruok", 200ms).empty());
    one.resume();
    CHECK(one.ask(0, "ruok") == "imok");
    one.kill();
    CHECK(!one.alive());
    CHECK(one.ask(0, "ruok").empty());
    std::ofstream(one.data_directory() / "kept") << "x";
    one.restart();
    one.wait_ready();
    CHECK(std::filesystem::exists(one.data_directory() / "kept"));
    one.restart_all(Data::fresh);
    CHECK(!std::filesystem::exists(one.data_directory() / "kept"));
    CHECK(one.ask(0, "ruok") == "imok");
    CHECK(contains(
        error_of([] { (void)ZooKeeperServers::start({.config = {"tickTime=no"}, .cap = 20s}); }),
        "Invalid config"));
}

void zookeeper_ensemble() {
    auto three = ZooKeeperServers::start({.count = 3});
    CHECK(three.size() == 3);
    const auto epoch = [&] {
        const auto leader = three.leader();
        const auto text = leader ? three.ask(*leader, "srvr") : std::string();
        const auto at = text.find("Zxid: 0x");
        return at == std::string::npos ? 0 : std::stoull(text.substr(at + 8), nullptr, 16) >> 32U;
    };
    const auto first = epoch();
    CHECK(first >= 1);
    const auto killed = three.kill_leader();
    CHECK(!three.alive(killed));
    three.wait_ready();  // the two that are left
    const auto next = three.leader();
    CHECK(next.has_value() && *next != killed);
    CHECK(epoch() > first);
    three.restart(killed);
    three.wait_ready();
    CHECK(contains(three.ask(killed, "srvr"), "Mode: follower"));
    three.restart_all(Data::keep);
    CHECK(epoch() > first);
    three.restart_all(Data::fresh);
    CHECK(epoch() <= first);
}

void etcd_process() {
    auto one = EtcdServers::start();
    CHECK(one.size() == 1);
    const auto port = one.port();
    CHECK(one.url() == "etcd://127.0.0.1:" + std::to_string(port) && one.url(0) == one.url());
    CHECK(one.endpoints() == "http://127.0.0.1:" + std::to_string(port));
    CHECK(one.version().starts_with("3."));
    CHECK(one.leader() == std::size_t{0});
    CHECK(one.ctl({"put", "key", "value"}) == "OK\n");
    CHECK(one.ctl({"get", "key"}) == "key\nvalue\n");
    CHECK(contains(one.post(0, "kv/range", R"({"key":"a2V5"})"), "\"value\":\"dmFsdWU=\""));
    CHECK(contains(one.post(0, "lease/revoke", R"({"ID":"1"})"), "lease not found"));
    CHECK(contains(error_of([&] { one.ctl({"nothing"}); }), "unknown command"));
    // An answer that a server would send in pieces.
    one.ctl({"put", "long", std::string(20'000, 'x')});
    CHECK(one.post(0, "kv/range", R"({"key":"bG9uZw=="})").ends_with("\"count\":\"1\"}"));
    CHECK(one.erase("lon") == 1 && one.erase("lon") == 0);

    one.pause();
    CHECK(one.process().state() == ProcessState::stopped);
    CHECK(one.post(0, "kv/range", R"({"key":"a2V5"})", 200ms).empty());
    CHECK(contains(error_of([&] { one.ctl({"get", "key"}, 200ms); }), "did not end"));
    one.resume();
    CHECK(one.ctl({"get", "key"}) == "key\nvalue\n");

    one.kill();
    CHECK(!one.alive());
    CHECK(one.post(0, "kv/range", R"({"key":"a2V5"})").empty() && !one.leader());
    CHECK(contains(error_of([&] { (void)one.version(); }), "no etcd member"));
    one.restart();
    one.wait_ready();
    CHECK(one.port() == port && one.ctl({"get", "key"}) == "key\nvalue\n");
    one.restart(0, Data::fresh);
    one.wait_ready();
    CHECK(one.port() == port && one.ctl({"get", "key"}).empty());
    CHECK(contains(
        error_of([] { (void)EtcdServers::start({.arguments = {"--no-such-flag"}, .cap = 20s}); }),
        "no-such-flag"));
    CHECK(contains(error_of([&] { (void)one.ca_file(); }), "without TLS"));
}

void etcd_tls() {
    auto server = EtcdServers::start({.tls = true});
    CHECK(server.endpoints().starts_with("https://"));
    CHECK(server.ctl({"put", "key", "value"}) == "OK\n");
    TempDir directory;
    const auto get = [&](std::vector<std::string> more) {
        ProcessOptions client;
        client.argv = {"etcdctl", "--command-timeout", "2s", "get", "key"};
        client.argv.insert(client.argv.end(), more.begin(), more.end());
        client.package = "etcd-client";
        client.environment = {{"ETCDCTL_API", "3"}};
        client.log = directory / "client.log";
        std::filesystem::remove(client.log);
        Process process(client);
        const auto status = process.wait(10s);
        return (status ? std::to_string(status->code) : "none") + " " + process.log_tail(1);
    };
    CHECK(get({"--endpoints", server.endpoints(), "--cacert", server.ca_file()}) == "0 value");
    const auto other = make_tls_files(directory.path());
    CHECK(!get({"--endpoints", server.endpoints(), "--cacert", other.ca}).starts_with("0"));
    CHECK(!get({"--endpoints", "http" + server.endpoints().substr(5)}).starts_with("0"));
}

void etcd_cluster() {
    auto three = EtcdServers::start({.count = 3});
    CHECK(three.size() == 3);
    const auto url = three.url();
    CHECK(three.ctl({"put", "key", "value"}) == "OK\n");
    const auto cluster = [&] {
        const auto text = three.post(0, "maintenance/status", "{}");
        return text.substr(0, text.find(','));  // its id
    };
    const auto first = cluster();
    CHECK(contains(first, "cluster_id"));

    const auto killed = three.kill_leader();
    CHECK(!three.alive(killed));
    three.wait_ready();  // the two that are left
    const auto next = three.leader();
    CHECK(next.has_value() && *next != killed);
    CHECK(three.ctl({"get", "key"}) == "key\nvalue\n");
    three.restart(killed);
    three.wait_ready();

    // A stopped leader is not asked any more; and when it goes on it takes itself for the leader
    // until it hears of the other one.
    const auto stopped = three.leader().value();
    three.pause(stopped);
    CHECK(reached([&] { return three.leader().has_value(); }));
    CHECK(three.leader() != stopped);
    three.resume(stopped);
    three.wait_ready();
    const auto leader_of = [&](std::size_t i) {
        const auto text = three.post(i, "maintenance/status", "{}");
        return text.substr(std::min(text.find("\"leader\""), text.size()), 30);
    };
    CHECK(reached([&] {
        return contains(leader_of(0), "leader") && leader_of(0) == leader_of(1) &&
               leader_of(0) == leader_of(2);
    }));
    CHECK(three.leader().has_value());

    three.kill(0);
    three.kill(1);
    CHECK(!error_of([&] { three.wait_ready(200ms); }).empty());  // no majority
    three.restart_all(Data::keep);
    CHECK(three.ctl({"get", "key"}) == "key\nvalue\n" && cluster() == first);
    three.restart_all(Data::fresh);
    CHECK(three.ctl({"get", "key"}).empty() && cluster() != first);
    CHECK(three.url() == url);
    three.ctl({"put", "key", "value"});
    three.restart(1, Data::fresh);  // which is all of them
    three.wait_ready();
    CHECK(three.ctl({"get", "key"}).empty() && three.leader().has_value());
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::pair<const char*, std::function<void()>>> parts = {
        {"waiting", waiting},
        {"directories and ports", directories_and_ports},
        {"processes", processes},
        {"redis process", redis_process},
        {"redis options", redis_options},
        {"redis TLS", redis_tls},
        {"redis monitor", redis_monitor},
        {"postgresql", postgresql},
        {"postgresql standbys", postgresql_standbys},
        {"mariadb", mariadb},
        {"mariadb clients", mariadb_clients},
        {"zookeeper process", zookeeper_process},
        {"zookeeper ensemble", zookeeper_ensemble},
        {"etcd process", etcd_process},
        {"etcd TLS", etcd_tls},
        {"etcd cluster", etcd_cluster},
        {"gRPC's ends", grpc_ends},
        {"gRPC with etcd", grpc_with_etcd},
        {"proxy forwards", proxy_forwards},
        {"proxy delays", proxy_delays},
        {"proxy cuts", proxy_cuts},
        {"proxy swallows", proxy_swallows},
        {"proxy holes", proxy_holes},
        {"scripts", scripts},
        {"threads", threads},
        {"crashes", crashes},
        {"forks", forks},
        {"parallel labs", parallel_labs},
        {"command",
         [&] {
             if (argc > 1) {
                 command(argv[1]);
             }
         }},
    };
    for (const auto& [name, part] : parts) {
        const auto before = failures;
        std::string thrown;
        const auto time = time_of([&, &work = part] {
            try {
                work();
            } catch (const std::exception& error) {
                ++failures;
                thrown = error.what();
            }
        });
        fmt::print("lab: {}: {} ({} ms){}{}\n", name, failures == before ? "ok" : "FAILED",
                   time.count(), thrown.empty() ? "" : ": ", thrown);
        std::fflush(stdout);
    }
    if (failures > 0) {
        fmt::print("lab: {} of {} checks failed\n", failures, checks);
        return 1;
    }
    fmt::print("lab: {} checks passed\n", checks);
    return 0;
}
