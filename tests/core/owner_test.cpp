// Owner ids: distinct in threads and forked children, readable again, tolerant of foreign ones.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "../support/catch.hpp"
#include "holdfast/spi/owner.hpp"

using holdfast::spi::make_owner;
using holdfast::spi::parse_owner;

TEST_CASE("an owner id says who made it", "[owner]") {
    for (const std::string& note : std::vector<std::string>{"", "345", "nightly report", "a.b.c",
                                                            "\xC3\xA4\xE2\x82\xAC", "100%"}) {
        const std::string id = make_owner(note);
        INFO(id);
        CHECK(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                   "-_~.%") == std::string::npos);
        REQUIRE(id.size() > 22);
        CHECK(id[22] == '.');
        const auto owner = parse_owner(id);
        CHECK(owner.ours);
        CHECK(owner.pid == ::getpid());
        CHECK_FALSE(owner.host.empty());
        CHECK(owner.note == note);
    }
    CHECK(parse_owner(make_owner(std::string(500, '\x01'))).note == std::string(128, '?'));
    CHECK(make_owner(std::string(500, ' ')).size() <= 512);
    std::string umlauts = "x";
    for (int i = 0; i < 100; ++i)
        umlauts += "\xC3\xA4";
    CHECK(parse_owner(make_owner(umlauts)).note == umlauts.substr(0, 127));
}

TEST_CASE("foreign and damaged ids are not ours", "[owner]") {
    const std::string good = make_owner("note");
    const std::string random = good.substr(0, 22);
    for (const std::string& id : std::vector<std::string>{
             "", "x", "c0ffee00c0ffee00c0ffee00c0ffee00", random, random + ".", random + ".host",
             random + "..1", random + ".host.", random + ".host.x", random + ".host.0",
             random + ".host.-1", random + ".host.1.a.b", random + ".host.1.%", random + ".ho st.1",
             random + ".host.99999999999999999999", "!" + good.substr(1), std::string(600, 'a'),
             std::string(22, 'a') + std::string(1, '\0')}) {
        INFO(id);
        const auto owner = parse_owner(id);
        CHECK_FALSE(owner.ours);
        CHECK(owner.pid == 0);
        CHECK((owner.host + owner.note).empty());
    }
    CHECK(parse_owner(random + ".web2%2Eexample.7.").host == "web2.example");
    CHECK(parse_owner(random + ".h.7.%1B[2J").ours == false);
    CHECK(parse_owner(random + ".h.7.%1Bx").note == "?x");

    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 engine(seed);
    for (int i = 0; i < 20000; ++i) {
        std::string id = good;
        for (int change = 0; change < 3; ++change)
            id[engine() % id.size()] = static_cast<char>(engine() % 256);
        const auto owner = parse_owner(id);
        REQUIRE((owner.ours || owner.note.empty()));
    }
}

TEST_CASE("no two ids are the same, in threads either", "[owner]") {
    constexpr std::size_t each = 20000;
    std::vector<std::vector<std::string>> made(4);
    std::vector<std::thread> threads;
    for (auto& ids : made)
        threads.emplace_back([&ids] {
            for (std::size_t i = 0; i < each; ++i)
                ids.push_back(make_owner({}).substr(0, 22));
        });
    for (auto& thread : threads)
        thread.join();
    std::set<std::string> all;
    for (const auto& ids : made)
        all.insert(ids.begin(), ids.end());
    CHECK(all.size() == 4 * each);
}

TEST_CASE("a forked child does not repeat its parent's ids", "[owner][native]") {
    // Past the C library, as languages' runtimes do: none of its handlers runs in the child.
    const bool past_libc = GENERATE(false, true);
    INFO((past_libc ? "clone(2)" : "fork()"));
    std::set<std::string> all;
    all.insert(make_owner({}).substr(0, 22));  // bytes for more are now in memory
    constexpr std::size_t children = 3, each = 40;
    for (std::size_t child = 0; child < children; ++child) {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const auto pid =
            past_libc ? static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : ::fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            bool whole = parse_owner(make_owner({})).pid == ::getpid();
            for (std::size_t i = 0; i < each; ++i)
                whole = whole && ::write(ends[1], make_owner({}).data(), 22) == 22;
            ::_exit(whole ? 0 : 1);
        }
        ::close(ends[1]);
        std::string text;
        char block[4096];
        for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof block)) > 0;)
            text.append(block, static_cast<std::size_t>(n));
        ::close(ends[0]);
        int status = -1;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        REQUIRE(status == 0);
        REQUIRE(text.size() == each * 22);
        for (std::size_t i = 0; i < each; ++i)
            all.insert(text.substr(i * 22, 22));
    }
    for (std::size_t i = 0; i < each; ++i)
        all.insert(make_owner({}).substr(0, 22));
    CHECK(all.size() == 1 + (children + 1) * each);
}
