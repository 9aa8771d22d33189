// Answers that no PostgreSQL server gives: an error, and no crash.
#include "hostile_server.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <future>

#include "direct.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "trial.hpp"
#include "waiter.hpp"

using namespace postgresql_tests;

namespace {

/// Every call once; none of them may be granted, or end the process.
void call_everything(const hf::Client& client) {
    const auto lock = lock_of(client, "N");
    CHECK_FALSE(lock->try_acquire().has_value());
    std::promise<hf::error_code> ended;
    lock->async_acquire({.wait = 1ms}, [&](hf::error_code ec, hf::Lease) { ended.set_value(ec); });
    CHECK(ended.get_future().get());
    CHECK_FALSE(lock_of(client, "R", {.kind = hf::Kind::shared_mutex})
                    ->acquire_shared({.wait = 0ms})
                    .has_value());
    CHECK_FALSE(client.inspect("N").has_value());
    CHECK_FALSE(client.list("").has_value());
    CHECK_FALSE(client.break_lock("N", {.now = true}).has_value());
    CHECK_FALSE(client.request_release("N").has_value());
    CHECK_FALSE(client.probe().has_value());
}

}  // namespace

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
            call_everything(open(url_of(server, "ttl=300ms&request_timeout=100ms")));
        }
}

TEST_CASE("answers that are mangled on the way end in errors, and no crash", "[.][mangled]") {
    const char* given = std::getenv("HOLDFAST_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    WARN("HOLDFAST_TEST_SEED=" << seed);
    hold(open_here(), "mangled").release();
    Acceptor* proxy = nullptr;
    const auto serve_mangled = [&](Tcp::socket& s, std::size_t number) {
        mangle(*proxy, s, server().port(), std::mt19937_64(seed * 100'003 + number), 8);
    };
    Acceptor made(serve_mangled);
    proxy = &made;
    const auto until = boot_clock::now() + 50s;
    std::atomic<int> rounds{0}, granted{0};
    const auto call = [&](int thread) {
        while (boot_clock::now() < until) {
            const auto client = open(url_of(made, "ttl=1s&request_timeout=200ms"));
            for (int i = 0; i < 8; ++i) {
                const auto name = "mangled/" + std::to_string((thread + i) % 3);
                const hf::LockOptions kinds[] = {{},
                                                 {.kind = hf::Kind::shared_mutex},
                                                 {.kind = hf::Kind::semaphore, .limit = 3}};
                const auto lock = lock_of(client, name, kinds[(thread + i) % 3]);
                auto lease = lock->acquire({.wait = 20ms});
                if (lease) ++granted;
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
    CHECK(granted > 10);
    WARN(rounds << " rounds, " << granted << " granted");
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
        const auto client = open(url_of(server, "ttl=300ms&request_timeout=100ms"), {}, listen);
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
    const auto client = open(url_of(made, "ttl=60s"));
    const auto try_free = [&](const std::string& name) {
        std::promise<hf::error_code> ended;
        lock_of(client, name)->async_acquire({.wait = 0ms}, [&](hf::error_code ec, hf::Lease) {
            ended.set_value(ec);
        });
        return ended.get_future().get();
    };
    const auto first = fresh("listener");
    CHECK_FALSE(try_free(first));
    require_free(first);  // the connection for releases is there, too
    hangs = true;
    const auto waiting = lock_of(client, busy);
    test_support::Waiter waiter(*waiting, {});
    lab::wait_until([&] { return hanging >= 1; }, cap(10s), "the listener connects");
    for (int i = 0; i < 3; ++i) {
        const auto start = boot_clock::now();
        CHECK_FALSE(try_free(fresh("listener")));
        trial.within(boot_clock::now() - start, 1000ms, "a free name");
    }
    CHECK_FALSE(waiter.done());
    waiter.cancel();
    (void)waiter.why();
}
