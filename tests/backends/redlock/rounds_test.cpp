// What a round leaves at the nodes when its answers come in an unlucky order, and what its answer
// is worth when it comes late.
#include "five.hpp"
#include "holdfast/lab/free_port.hpp"
#include "requests.hpp"
#include "rig.hpp"
#include "voters.hpp"

using namespace redlock_tests;
using redis_tests::Rig;
using redis_tests::Try;

namespace {

/// Three nodes, each behind a proxy, and a client of them that asks by lane or by the engine.
struct Three {
    explicit Three(bool by_lane) {
        if (!by_lane) return;
        lane = rig.backend->open_lane();
        REQUIRE(lane != nullptr);
    }
    lab::Proxy& operator[](std::size_t i) { return proxies[i]; }
    void ask(Try& t) {
        if (!lane) return (void)rig.attempt(t);
        t.a.sent = now();
        t.a.deadline = t.a.sent + 1s;
        lane->attempt(t.a);
    }
    Five nodes{false, {}, 3};
    Proxied proxies{nodes};
    Rig rig{proxies.url("durable=yes&node_set=proxied&node_timeout=1s")};
    std::unique_ptr<hf::spi::Lane> lane;
};

}  // namespace

TEST_CASE("what an earlier proposal took is given back, though the next one was never sent") {
    const bool by_lane = GENERATE(false, true);
    INFO((by_lane ? "by lane" : "by the engine"));
    Three three(by_lane);
    three.nodes[2].kill();
    // Connected to both, with the scripts told.
    three.rig.until(
        [&] {
            Try first("warm");
            three.ask(first);
            if (!first.granted()) return false;
            three.rig.release(first);
            return true;
        },
        "two of three grant");
    for (const std::size_t i : {0U, 1U})
        three.nodes[i].cli({"SET", "{name}:hf:t", "1:9000000000000000:x"});
    // Both answer that the token is too low. The first one is gone then, before the other's answer
    // has come.
    three[0].refuse();
    three[0].cut_after(lab::Direction::to_client,
                       std::string("$18\r\nh 9000000000000000\r\n").size());
    three[1].delay(lab::Direction::to_client, 100ms);
    Try t("name", 60s);
    three.ask(t);
    REQUIRE_FALSE(t.granted());
    CHECK(three[0].counters().connections_cut >= 1);
    REQUIRE(three.nodes[0].cli({"GET", "name"}).text == t.owner);
    three[0].heal();
    three[1].heal();
    three.rig.until([&] { return three.nodes.holding("name") == 0; },
                    "both have been given it back");
}

TEST_CASE("a lease counts from its request, however long the answers take") {
    const bool by_lane = GENERATE(false, true);
    INFO((by_lane ? "by lane" : "by the engine"));
    Three three(by_lane);
    Try first("warm");
    three.ask(first);
    REQUIRE(first.granted());
    for (std::size_t i = 0; i < 3; ++i)
        three[i].delay(lab::Direction::to_client, 200ms);
    Try t("name");
    three.ask(t);
    REQUIRE(now() - t.a.sent >= 200ms);
    REQUIRE(t.granted());
    const auto base = t.grant().base == hf::boot_clock::time_point{} ? t.a.sent : t.grant().base;
    CHECK(base <= t.a.sent);
    CHECK(t.grant().ttl <= t.a.ttl);
    const auto renewed = three.rig.renew(t);
    REQUIRE(renewed.renewal == holdfast::spi::Held::Renewal::renewed);
    REQUIRE(now() - renewed.sent >= 200ms);
    CHECK(renewed.renewed_base.value_or(renewed.sent) <= renewed.sent);
}

TEST_CASE("a majority of four is three, for each verb") {
    Five four(false, {}, 4);
    Rig rig(four.url());
    Try t("name");
    // At all four: a grant is said at three.
    rig.until(
        [&] {
            rig.attempt(t);
            if (lab::reached([&] { return four.holding("name") == 4; }, 200ms)) return true;
            rig.release(t);
            return false;
        },
        "all four have it");
    CHECK(rig.release(t) == hf::ReleaseResult::released);
    rig.until([&] { return four.holding("name") == 0; }, "free");
    Try lease("name");
    REQUIRE(rig.attempt(lease).granted());
    rig.until([&] { return four.holding("name") == 4; }, "all four have it again");
    four[0].cli({"DEL", "name"});
    four[1].cli({"DEL", "name"});
    CHECK(rig.renew(lease).renewal != holdfast::spi::Held::Renewal::renewed);
    four[2].cli({"SET", "taken", "x"});
    four[3].cli({"SET", "taken", "x"});
    Try taken("taken");
    CHECK_FALSE(rig.attempt(taken).granted());
    for (std::size_t n = 1; n < 32; ++n)
        CHECK(2 * holdfast::redlock::majority(n) == n + (n % 2 == 0 ? 2 : 1));
}

TEST_CASE("what comes after its deadline does nothing, alone and among others") {
    const auto server = RedisServer::start();
    const auto& scripts = holdfast::redlock::Scripts::all();
    const auto ms_now = [&] {
        const auto t = server.cli({"TIME"});
        return std::stoll(t.elements[0].text) * 1000 + std::stoll(t.elements[1].text) / 1000;
    };
    const auto token = std::to_string(ms_now() * 1000);
    const auto call = [&](const std::string& script, std::vector<std::string> keys,
                          const std::vector<std::string>& arguments) {
        std::vector<std::string> all{"EVAL", script, std::to_string(keys.size())};
        all.insert(all.end(), keys.begin(), keys.end());
        all.insert(all.end(), arguments.begin(), arguments.end());
        return server.cli(all);
    };
    const auto late = std::to_string(ms_now() - 1), in_time = std::to_string(ms_now() + 60'000);
    const std::string one(scripts.enter.one.text()), many(scripts.enter.many->text());
    CHECK(call(one, {"a", "{a}:hf:t"}, {"me", "10000", late, token}).text.starts_with("l "));
    auto both = call(many, {"a", "{a}:hf:t", "b", "{b}:hf:t"},
                     {"me", "10000", late, token, "me", "10000", in_time, token});
    REQUIRE(both.elements.size() == 2);
    CHECK(both.elements[0].text.starts_with("l "));
    CHECK(both.elements[1].text == "g");
    CHECK(server.cli({"KEYS", "*a*"}).elements.empty());
    CHECK(server.cli({"GET", "b"}).text == "me");
    // A renewal that is late leaves the ttl as it is.
    server.cli({"PEXPIRE", "b", "5000"});
    const std::string renew(scripts.renew.one.text()), renew_many(scripts.renew.many->text());
    CHECK(call(renew, {"b", "{b}:hf:t"}, {"me", "90000", late, token}).text.starts_with("l "));
    both = call(renew_many, {"b", "{b}:hf:t", "c", "{c}:hf:t"},
                {"me", "90000", late, token, "me", "90000", in_time, token});
    CHECK(both.elements[0].text.starts_with("l "));
    CHECK(both.elements[1].text == "e");
    CHECK(server.cli({"PTTL", "b"}).integer <= 5000);
    CHECK(call(renew, {"b", "{b}:hf:t"}, {"me", "90000", in_time, token}).text == "y");
    CHECK(server.cli({"PTTL", "b"}).integer > 5000);
}

TEST_CASE("a call that is thrown out of leaves no round that writes into its items") {
    std::vector<lab::Port> nobody;
    std::string url;
    for (int i = 0; i < 3; ++i) {
        nobody.push_back(lab::free_port());
        url += (i > 0 ? ",127.0.0.1:" : "redlock://127.0.0.1:") + nobody.back().text();
    }
    Rig rig(url + "?durable=yes");
    // A name that no string can have, so that no round can be made for it.
    const std::string text = "long";
    const std::string_view too_long(text.data(), text.max_size() + 1);
    const auto passed = [&](hf::boot_clock::time_point deadline) {
        rig.until([&] { return now() > deadline + 50ms; }, "the deadline has passed");
    };
    Try first("first"), second("second");
    second.a.name = too_long;
    CHECK_THROWS_AS(rig.attempt({&first, &second}, 200ms), std::length_error);
    CHECK(first.error());
    first.a.outcome = hf::spi::Attempt::Busy{};
    first.a.detail = "untouched";
    passed(first.a.deadline);
    CHECK(first.busy());
    CHECK(first.a.detail == "untouched");

    hf::spi::Held one = first.held(), two = one;
    two.name = too_long;
    one.deadline = two.deadline = now() + 200ms;
    std::vector<hf::spi::Held*> both{&one, &two};
    CHECK_THROWS_AS(rig.run(rig.backend->renew(both)), std::length_error);
    CHECK(one.renewal == hf::spi::Held::Renewal::unknown);
    CHECK(one.renewal_error);
    one.renewal_error = {};
    one.detail = "untouched";
    passed(one.deadline);
    CHECK_FALSE(one.renewal_error);
    CHECK(one.detail == "untouched");
}
