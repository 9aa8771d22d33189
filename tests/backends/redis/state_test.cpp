// What is kept at the server: for how long, what of it is believed, and until when the
// mark of an owner that left refuses it.
#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "protocol/scripts.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;

namespace {

constexpr long long day = 86'400'000;

long long state_left(RedisServer& server, const std::string& name) {
    return server.cli({"PTTL", "{" + name + "}:hf:s"}).integer;
}
/// Of a held name: more than a week after its ttl.
bool kept(RedisServer& server, const std::string& name) {
    const auto left = state_left(server, name);
    return left > 7 * day && left < 9 * day;
}

}  // namespace

TEST_CASE("state: a name whose holder crashed is forgotten some day") {
    auto server = RedisServer::start();
    Rig rig(server.url()), other(server.url());
    Try t("a", 10s), u("b", 10s);
    SECTION("granted at once, alone and with others") {
        REQUIRE(rig.attempt(t).granted());
        CHECK(kept(server, "a"));
        Try v("c");
        rig.attempt({&u, &v});
        CHECK(kept(server, "b"));
        CHECK(kept(server, "c"));
    }
    SECTION("granted on the slow path, and again to the same owner") {
        server.cli({"ZADD", "{a}:hf:x", "9999999999999", "somebody"});
        REQUIRE(rig.attempt(t).granted());
        CHECK(kept(server, "a"));
        server.cli({"PERSIST", "{a}:hf:s"});
        REQUIRE(rig.attempt(t).granted());
        CHECK(kept(server, "a"));
    }
    SECTION("a renewal moves it, and takes along what an older version left") {
        REQUIRE(rig.attempt(t).granted());
        // As if it had been granted a day ago.
        const auto token = std::to_string(t.token() - day * 1000);
        const auto text = "1:" + token + ":1n:" + t.owner;
        for (const bool forever : {false, true}) {
            server.cli({"SET", "{a}:hf:s", text});
            if (!forever) server.cli({"PEXPIRE", "{a}:hf:s", "3600000"});
            CHECK(rig.renew(t).renewal == spi::Held::Renewal::renewed);
            CHECK(kept(server, "a"));
            CHECK(server.cli({"GET", "{a}:hf:s"}).text == text);
        }
    }
    SECTION("handed over, claimed and broken") {
        Try w("a", 10s, true);
        REQUIRE(rig.attempt(t).granted());
        REQUIRE(other.attempt(w).busy());
        CHECK(rig.release(t) == ReleaseResult::released);
        CHECK(kept(server, "a"));
        other.until([&] { return other.woken(w); }, "it is told");
        REQUIRE(other.attempt(w).granted());
        CHECK(other.renew(w).renewal == spi::Held::Renewal::renewed);
        CHECK(server.cli({"GET", "{a}:hf:s"}).text.substr(19, 1) == "1");
        CHECK(kept(server, "a"));
        CHECK(rig.break_lock("a").has_value());
        CHECK(kept(server, "a"));
    }
    SECTION("counted from a token that is ahead of the clock") {
        server.cli({"SET", "{a}:hf:s", "1:8000000000000000:0r:"});
        REQUIRE(rig.attempt(t).granted());
        CHECK(server.cli({"PEXPIRETIME", "{a}:hf:s"}).integer > 8'000'000'000'000 + 7 * day);
    }
}

TEST_CASE("state: a token that cannot grow on is no token") {
    auto server = RedisServer::start();
    Rig rig(server.url()), other(server.url());
    for (const std::string token : {"9007199254740991", "9999999999999999", "9e15000000000000",
                                    "2x34567890123456", "7               "}) {
        const std::string text = "1:" + token + ":0r:";
        INFO(text);
        server.cli({"SET", "{a}:hf:s", text});
        Try t("a"), u("a", 10s, true), v("b");
        CHECK(rig.attempt(t).error() == errc::kind_mismatch);
        // The slow path, and in one call with others.
        server.cli({"ZADD", "{a}:hf:x", "9999999999999", "somebody"});
        rig.attempt({&u, &v});
        CHECK(u.error() == errc::kind_mismatch);
        CHECK(v.granted());
        CHECK(rig.release(v) == ReleaseResult::released);
        CHECK(server.cli({"GET", "{a}:hf:s"}).text == text);
        CHECK(server.cli({"EXISTS", "a"}).integer == 0);
        server.cli({"DEL", "{a}:hf:x"});
    }
}

TEST_CASE("scripts: a lock whose keys are of another kind spoils no other of its call") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    Try a("a"), b("b"), c("c");
    rig.attempt({&a, &b, &c});
    REQUIRE((a.granted() && b.granted() && c.granted()));
    server.cli({"SET", "{b}:hf:q", "no line"});
    server.cli({"SET", "{c}:hf:x", "no marks"});
    CHECK(rig.renew(c).renewal == spi::Held::Renewal::renewed);
    Try d("d"), e("b", 10s, true);
    rig.attempt({&d, &e});
    CHECK(d.granted());
    CHECK(e.error() == errc::kind_mismatch);
    spi::Held ha = a.held(), hb = b.held(), hd = d.held();
    std::vector<spi::Held*> all{&ha, &hb, &hd};
    rig.run(rig.backend->release(all));
    CHECK(ha.released == ReleaseResult::released);
    CHECK(hb.released == ReleaseResult::released);
    CHECK(hd.released == ReleaseResult::released);
    CHECK(server.cli({"EXISTS", "a", "b", "d"}).integer == 0);
}

TEST_CASE("scripts: a batch has its deadlines as a single call has") {
    auto server = RedisServer::start();
    const auto& scripts = holdfast::redis::Scripts::all();
    for (const bool marked : {false, true}) {  // by the quick way, and past it
        INFO(marked);
        if (marked)
            for (const std::string name : {"a", "b"})
                server.cli({"ZADD", "{" + name + "}:hf:x", "9999999999999", "somebody"});
        const auto keys = [](std::vector<std::string>& out, const std::string& name) {
            out.push_back(name);
            for (const char* which : {"s", "q", "w", "x"})
                out.push_back("{" + name + "}:hf:" + which);
        };
        std::vector<std::string> one{"EVAL", scripts.enter_one.text(), "5"},
            many{"EVAL", scripts.enter_many.text(), "10"};
        keys(one, "a");
        keys(many, "a");
        keys(many, "b");
        const auto lock = [](std::vector<std::string>& out, const std::string& till) {
            for (const std::string& word : {std::string("owner"), std::string("10000"),
                                            std::string("3000"), till, std::string()})
                out.push_back(word);
        };
        one.emplace_back();
        many.emplace_back();
        lock(one, "1000");
        lock(many, "1000");
        lock(many, "9999999999999");
        CHECK(server.cli(one).text.starts_with("l "));
        const auto both = server.cli(many);
        REQUIRE(both.elements.size() == 2);
        CHECK(both.elements[0].text.starts_with("l "));
        CHECK(both.elements[1].text.starts_with("g "));
        CHECK(server.cli({"EXISTS", "a", "{a}:hf:s"}).integer == 0);
        CHECK(server.cli({"GET", "b"}).text == "owner");
        server.cli({"DEL", "b", "{b}:hf:s"});
    }
}

TEST_CASE("scripts: no way of leaving frees a key that is another's") {
    auto server = RedisServer::start();
    Rig rig(server.url()), waiting(server.url());
    const auto check = [&](const std::string& owner) {
        CHECK(server.cli({"GET", "a"}).text == owner);
        CHECK(server.cli({"PTTL", "a"}).integer > 0);
    };
    Try t("a"), w("a", 10s, true);
    REQUIRE(rig.attempt(t).granted());
    const std::string state = server.cli({"GET", "{a}:hf:s"}).text;
    // The server lost it, and somebody else has it.
    server.cli({"SET", "a", "0123456789abcdef", "PX", "60000"});
    SECTION("nobody waits") {
        CHECK(rig.release(t) == ReleaseResult::owned_by_other);
        check("0123456789abcdef");
    }
    SECTION("somebody waits: past the quick way") {
        REQUIRE(waiting.attempt(w).busy());
        CHECK(rig.release(t) == ReleaseResult::owned_by_other);
        check("0123456789abcdef");
        CHECK_FALSE(waiting.woken(w));
    }
    SECTION("unused, abandoned, with others") {
        CHECK(rig.withdraw(t) == holdfast::error_code());
        check("0123456789abcdef");
        CHECK(rig.release(t, holdfast::Outcome::abandoned) == ReleaseResult::owned_by_other);
        check("0123456789abcdef");
        Try b("b");
        REQUIRE(rig.attempt(b).granted());
        CHECK(rig.release({&t, &b}) == 1);
        check("0123456789abcdef");
    }
    CHECK(server.cli({"GET", "{a}:hf:s"}).text == state);
}
