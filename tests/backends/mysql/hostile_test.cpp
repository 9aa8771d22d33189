// Answers that no server gives: an error, and no crash, and no file of this machine.
#include "hostile_server.hpp"

#include <climits>
#include <fstream>
#include <future>

#include "direct.hpp"
#include "holdfast/lab/temp_dir.hpp"

using namespace mysql_tests;

namespace {

std::string url_at(const Acceptor& server, const std::string& query) {
    return "mysql://holdfast@127.0.0.1:" + std::to_string(server.port()) + "/holdfast?" + query;
}

/// Every call once; none of them may be granted, or end the process.
void call_everything(const hf::Client& client) {
    const auto lock = lock_of(client, "N");
    CHECK_FALSE(lock->try_acquire().has_value());
    CHECK(acquire_on_engine(client, "N", 1ms));
    CHECK_FALSE(lock_of(client, "R", {.kind = hf::Kind::shared_mutex})
                    ->acquire_shared({.wait = 0ms})
                    .has_value());
    CHECK_FALSE(client.inspect("N").has_value());
    CHECK_FALSE(client.list("").has_value());
    CHECK_FALSE(client.break_lock("N", {.now = true}).has_value());
    CHECK_FALSE(client.request_release("N").has_value());
    CHECK_FALSE(client.probe().has_value());
}

/// As our table is found.
Packets introduction() {
    Cells hello{"4242", "10.11.6-MariaDB", "1", "0", "1795475838555088", ""};
    const auto columns = static_cast<unsigned>(my::Packet(my::Sql::hello).columns[0]);
    hello.resize(columns, "0");
    return joined({ok(more_follows), ok(more_follows), rows({hello}, columns, more_follows),
                   ok(more_follows), rows({{my::table_comment(), "InnoDB"}}, 2, more_follows),
                   rows({{"name,slot"}}, 1)});
}

}  // namespace

TEST_CASE("an answer without the rows and columns of its statement is an error") {
    const std::pair<const char*, Packets> answers[] = {
        {"no row", rows({}, 11)},
        {"few columns", rows({{"4242", "f"}}, 2)},
        {"a write's", ok()},
        {"a write's, and more that never comes", ok(more_follows)},
        {"NULL", rows({Cells(11)}, 11)},
        {"no numbers", rows({Cells(12, "x")}, 12)},
        {"numbers that are too long", rows({Cells(12, std::string(40, '9'))}, 12)},
        {"too many rows", rows({Cells(12, "1"), Cells(12, "1")}, 12)},
        {"an error without words", {"\xff"}},
        {"an error",
         {"\xff\x7a\x04#42S02"
          "no such table"}},
        {"a row that ends early", {rows({}, 12)[0], "\x03"}},
        {"a column count beyond all", {"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"}},
        {"nothing", {""}},
    };
    for (const bool introduces : {false, true})
        for (const auto& [what, answer] : answers) {
            INFO(what << ", introduced: " << introduces);
            Hostile how{.login = ok(), .introduction = {}, .answer = answer};
            if (introduces) how.introduction = introduction();
            Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
            const auto client = open(url_at(server, "ttl=300ms&request_timeout=40ms"));
            if (introduces)
                call_everything(client);
            else
                CHECK_FALSE(client.probe().has_value());
        }
}

TEST_CASE("a server that asks for a file of this machine gets none") {
    const lab::TempDir dir;
    const std::string file = dir / "secret";
    std::ofstream(file) << "s3cret";
    for (const bool introduces : {false, true}) {
        std::mutex mutex;
        std::string heard;
        Hostile how{.login = ok(), .introduction = {}, .answer = {"\xfb" + file}};
        if (introduces) how.introduction = introduction();
        Acceptor server([&](Tcp::socket& s, std::size_t) {
            serve(how, s, [&](const std::string& body) {
                const std::lock_guard hold(mutex);
                heard += body;
            });
        });
        call_everything(open(url_at(server, "ttl=300ms&request_timeout=40ms")));
        const std::lock_guard hold(mutex);
        CHECK_THAT(heard, ContainsSubstring("CONNECTION_ID"));
        CHECK(heard.find("s3cret") == std::string::npos);
    }
}

TEST_CASE("a server that another one's sessions come through is refused") {
    // Its connection is not the one that answers.
    Hostile how{.login = ok(), .introduction = introduction(), .answer = ok()};
    for (auto& packet : *how.introduction)
        if (const auto at = packet.find("4242"); at != packet.npos) packet.replace(at, 4, "4243");
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    CHECK_THAT(refused(open(url_at(server, "request_timeout=1s")), "N", errc::bad_config),
               ContainsSubstring("proxy"));
}

TEST_CASE("a server that is too old says so") {
    Hostile how{.login = ok(), .introduction = introduction(), .answer = ok()};
    for (auto& packet : *how.introduction)
        if (const auto at = packet.find("10.11"); at != packet.npos) packet.replace(at, 5, "05.07");
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    CHECK_THAT(refused(open(url_at(server, "request_timeout=1s")), "N", errc::not_supported),
               ContainsSubstring("05.07"));
}

TEST_CASE("a server that never speaks costs the request time-out") {
    Acceptor server([](Tcp::socket& s, std::size_t) {
        char byte = 0;
        while (true)  // until the client gives up
            (void)boost::asio::read(s, boost::asio::buffer(&byte, 1));
    });
    const auto client = open(url_at(server, "request_timeout=1s"));
    for (const bool by_lane : {true, false}) {
        const auto start = boot_clock::now();
        const auto ec = by_lane ? lock_of(client, "N")->acquire({.wait = 0ms}).error()
                                : acquire_on_engine(client, "N", 0ms);
        CHECK(ec == errc::unavailable);
        CHECK(boot_clock::now() - start < 3s);
    }
}

TEST_CASE("answers that are mangled on the way end in errors, and no crash", "[.][mangled]") {
    const char* given = std::getenv("HOLDFAST_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    WARN("HOLDFAST_TEST_SEED=" << seed);
    hold(open_here(), "mangled").release();
    Acceptor* proxy = nullptr;
    Acceptor made([&](Tcp::socket& s, std::size_t number) {
        sql_tests::mangle(*proxy, s, server().port(), std::mt19937_64(seed * 100'003 + number), 8);
    });
    proxy = &made;
    const auto until = boot_clock::now() + 50s;
    std::atomic<int> rounds{0}, granted_now{0};
    const auto call = [&](int thread) {
        while (boot_clock::now() < until) {
            const auto client = open(url_at(made, "ttl=1s&request_timeout=200ms"));
            for (int i = 0; i < 8; ++i) {
                const auto name = "mangled/" + std::to_string((thread + i) % 3);
                const hf::LockOptions kinds[] = {{},
                                                 {.kind = hf::Kind::shared_mutex},
                                                 {.kind = hf::Kind::semaphore, .limit = 3}};
                auto lease =
                    lock_of(client, name, kinds[(thread + i) % 3])->acquire({.wait = 20ms});
                if (lease) ++granted_now;
                if (lease) (void)lease->renew();
                if (lease && i % 2 == 0) (void)lease->release();
                (void)client.inspect(name);
                (void)client.list("mangled/");
                if (i == 3) (void)client.break_lock(name, {.now = true});
                if (i == 5) (void)client.request_release(name);
                if (i == 7) (void)client.probe();
                ++rounds;
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back(call, i);
    for (auto& t : threads)
        t.join();
    CHECK(rounds > 100);
    CHECK(granted_now > 10);
    WARN(rounds << " rounds, " << granted_now << " granted");
}
