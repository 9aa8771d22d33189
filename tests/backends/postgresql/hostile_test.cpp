// Answers that no PostgreSQL server gives: an error, and no crash.
#include "hostile_server.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "../sql/direct.hpp"
#include "../sql/hostile.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "trial.hpp"
#include "waiter.hpp"

using namespace postgresql_tests;

TEST_CASE("an answer without the rows and columns of its statement is an error") {
    const std::string all_null = rows({Cells(10)}, 10),
                      done = message('C', std::string("INSERT 0 1") + '\0');
    const std::pair<const char*, std::string> answers[] = {
        {"no row", rows({}, 10)},
        {"few columns", rows({{"4242", "f"}}, 2)},
        {"no columns", rows({{}}, 0)},
        {"an empty statement's", message('I', "")},
        {"a write's", done},
        {"COPY in", message('G', std::string(3, '\0'))},
        {"COPY out", message('H', std::string(3, '\0')) + message('d', "x")},
        {"NULL", all_null},
        {"no numbers", rows({Cells(10, "x")}, 10)},
        {"too many rows", rows({Cells(10, "1"), Cells(10, "1")}, 10)},
    };
    for (const bool introduces : {false, true})
        for (const auto& [what, answer] : answers) {
            INFO(what << ", introduced: " << introduces);
            const Hostile how{{}, introduces, answer, pg::table_format.comment()};
            Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
            call_everything(open(url_at(server, "ttl=300ms&request_timeout=100ms")));
        }
}

TEST_CASE("what a server warns of reaches the event sink once, and never the error output") {
    const Hostile how{notice("WARNING", "a collation \x1b[31m\x07 changed") + notice("NOTICE", "x"),
                      true, message('I', ""), pg::table_format.comment()};
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    std::mutex mutex;
    std::vector<std::string> heard;
    const auto listen = [&](const hf::Event& e) {
        const std::lock_guard lock(mutex);
        if (e.kind == hf::Event::Kind::warning && e.text.find("collation") != e.text.npos)
            heard.emplace_back(e.text);
    };
    lab::TempDir dir;
    const auto file = (dir.path() / "stderr").string();
    const int before = ::dup(2), into = ::open(file.c_str(), O_CREAT | O_RDWR, 0600);
    ::dup2(into, 2);
    {
        const auto client = open(url_at(server, "ttl=300ms&request_timeout=100ms"), {}, listen);
        for (int i = 0; i < 3; ++i)
            CHECK_FALSE(client.inspect("N").has_value());  // each with a connection of its own
    }
    ::dup2(before, 2);
    struct stat status {};
    REQUIRE(::fstat(into, &status) == 0);
    ::close(before);
    ::close(into);
    CHECK(status.st_size == 0);
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].find('\x1b') == std::string::npos);
    CHECK(heard[0].find('\x07') == std::string::npos);
}

TEST_CASE("a listener that cannot connect does not hold up the grants of free names") {
    test_support::Trial& trial = test_support::this_trial();
    std::atomic<bool> hangs{false};
    std::atomic<int> hanging{0};
    Acceptor* proxy = nullptr;
    Acceptor made([&](Tcp::socket& s, std::size_t) {
        if (!hangs) return mangle(*proxy, s, server().port(), std::mt19937_64(1), UINT_MAX);
        ++hanging;
        char byte = 0;
        while (true)  // until the client gives up
            (void)boost::asio::read(s, boost::asio::buffer(&byte, 1));
    });
    proxy = &made;
    const auto busy = fresh("listener-busy");
    const auto holder = hold(open_here(), busy);
    const auto client = open(url_at(made, "ttl=60s"));
    const auto first = fresh("listener");
    CHECK_FALSE(acquire_on_engine(client, first, 0ms));
    require_free(first);  // the connection for releases is there, too
    hangs = true;
    const auto waiting = lock_of(client, busy);
    test_support::Waiter waiter(*waiting, {});
    lab::wait_until([&] { return hanging >= 1; }, cap(10s), "the listener connects");
    for (int i = 0; i < 3; ++i) {
        const auto start = boot_clock::now();
        CHECK_FALSE(acquire_on_engine(client, fresh("listener"), 0ms));
        trial.within(boot_clock::now() - start, 1000ms, "a free name");
    }
    CHECK_FALSE(waiter.done());
    waiter.cancel();
    (void)waiter.why();
}
