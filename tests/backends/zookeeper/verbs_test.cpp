// Each verb by itself: what it answers, and what it leaves behind, when servers refuse, or the
// client stood still between two steps.
#include "fake_server.hpp"
#include "holdfast/lab/free_port.hpp"
#include "verbs_rig.hpp"

using namespace zookeeper_tests;
using lab::Direction;

namespace {

std::vector<std::string> nodes(ZooKeeperClient& plain, const std::string& name) {
    return plain.children("/holdfast/" + name).children;
}

bool has(const std::vector<std::string>& all, const std::string& node) {
    return std::find(all.begin(), all.end(), node) != all.end();
}

}  // namespace

TEST_CASE("one try that cannot believe its grant is in doubt, so that core withdraws its node") {
    test_support::Trial& trial = test_support::this_trial();
    Rig rig(server().url() + "?tick_time=100ms&ttl=4s");
    ZooKeeperClient plain(server().connect_string());
    const std::string name = "unbelieved";
    rig.use(name, 4s);
    // A new session proves itself by heartbeats that follow each other at once. After a pause
    // between two of them, what is proved is at least that pause old.
    auto seen = rig.backend->requests();
    auto since = std::chrono::steady_clock::now();
    const auto paused = [&] {
        const auto now = std::chrono::steady_clock::now();
        if (rig.backend->requests() != seen) since = now;
        seen = rig.backend->requests();
        return now - since > 300ms;
    };
    rig.until(paused, "a pause between heartbeats");
    rig.until([&] { return rig.backend->requests() > seen; }, "a heartbeat");
    // The client stands still between its request and the answer, for as long as its session just
    // lasts at the server: what it had proved is over.
    Try t(name, 4s);
    const auto sent = rig.backend->requests();
    rig.start(t, 500ms);
    // One handler at a time: a quick answer must not be read before the client stands still.
    const auto there = [&] { return nodes(plain, name).size() == 1; };
    const auto step = [&] {
        rig.io.restart();
        rig.io.poll_one();
        return rig.backend->requests() > sent && lab::reached(there, 100ms);
    };
    REQUIRE(lab::reached(step, 5s));
    REQUIRE_FALSE(t.done);
    const bool lives = lab::stays_true([&] { return nodes(plain, name).size() == 1; }, 3850ms);
    rig.until([&] { return t.done; }, "the attempt ends");
    if (!trial.holds(lives && !t.is<spi::Attempt::Failed>(), 300ms, "the session lives")) return;
    CAPTURE(t.a.outcome.index(), t.a.detail);
    CHECK(t.is<spi::Attempt::NoAnswer>());
    if (t.is<spi::Attempt::NoAnswer>()) CHECK_FALSE(rig.withdraw(t));
    CHECK(rig.reached([&] { return nodes(plain, name).empty(); }, 2s));
}

TEST_CASE("a late node of a doubtful acquisition is deleted, also when that is refused once") {
    test_support::Trial& trial = test_support::this_trial();
    lab::Proxy proxy(server().port());
    Rig rig("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + "?tick_time=100ms&ttl=4s");
    ZooKeeperClient plain(server().connect_string());
    const std::string name = "late", parent = "/holdfast/late";
    rig.use(name, 4s);
    proxy.swallow(Direction::to_server);
    Try t(name, 4s);
    rig.start(t, 10s);
    rig.until([&] { return proxy.counters().swallowed_to_server > 0; }, "its request is lost");
    const std::string first = t.node().guid;
    proxy.cut_all();
    proxy.heal();
    rig.until([&] { return t.done; }, "the attempt ends");
    REQUIRE(t.granted());
    REQUIRE(t.node().guid != first);
    // Now the lost request comes in after all.
    REQUIRE(plain.allow(parent, ZOO_PERM_ALL & ~ZOO_PERM_DELETE).rc == ZOK);
    proxy.record();
    const auto made =
        plain.create(parent + "/_c_" + first + "-lock-", "", ZOO_EPHEMERAL_SEQUENTIAL);
    REQUIRE(made.rc == ZOK);
    const std::string late = made.text.substr(made.text.rfind('/') + 1);
    const bool refused = rig.reached(
        [&] { return proxy.recorded(Direction::to_server).find(late) != std::string::npos; }, 5s);
    CHECK(has(nodes(plain, name), late));
    REQUIRE(plain.allow(parent, ZOO_PERM_ALL).rc == ZOK);
    if (!trial.holds(refused, 500ms, "the client looks for it after it has come")) return;
    CHECK(rig.reached([&] { return !has(nodes(plain, name), late); }, 5s));
    CHECK(nodes(plain, name).size() == 1);
}

TEST_CASE("a node that may be its own and cannot be read is not taken for another's") {
    lab::Proxy proxy(server().port());
    Rig rig("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + "?tick_time=100ms&ttl=4s");
    ZooKeeperClient plain(server().connect_string());
    const std::string name = "unreadable", parent = "/holdfast/unreadable";
    rig.use(name, 4s);
    proxy.swallow(Direction::to_client);
    Try t(name, 4s, true);
    rig.start(t, 20s);
    rig.until([&] { return nodes(plain, name).size() == 1; }, "its node");
    rig.until([&] { return proxy.counters().swallowed_to_client > 0; }, "the answer is lost");
    const std::string path = parent + "/" + nodes(plain, name).front();
    REQUIRE(plain.allow(path, ZOO_PERM_ALL & ~ZOO_PERM_READ).rc == ZOK);
    proxy.record();
    proxy.cut_all();
    proxy.heal();
    rig.until([&] { return proxy.recorded(Direction::to_server).find(path) != std::string::npos; },
              "it asks for the node");
    CHECK(rig.stays_true([&] { return nodes(plain, name).size() == 1; }, 1500ms));
    REQUIRE(plain.allow(path, ZOO_PERM_ALL).rc == ZOK);
    CHECK(rig.reached([&] { return t.granted(); }, 5s));
    CHECK(nodes(plain, name) == std::vector{path.substr(path.rfind('/') + 1)});
}

TEST_CASE("a heartbeat that an overloaded server refuses ends nothing") {
    FakeServer fake;
    constexpr std::int32_t throttled = -127;
    Rig rig(fake.url() + "?tick_time=100ms&ttl=4s");
    rig.use("throttled", 4s);
    fake.fail(FakeServer::set, throttled, 1);
    rig.until([&] { return fake.left_to_fail() == 0; }, "a heartbeat is refused");
    const auto beats = rig.backend->requests() + 3;
    CHECK(rig.reached([&] { return rig.backend->requests() >= beats; }, 10s));
    Try t("throttled", 4s);
    rig.attempt(t);
    INFO(t.a.detail);
    CHECK(t.granted());
    CHECK(fake.connections() == 1);  // in the same session
}

TEST_CASE("a server that grants a session more than the one before it proves no more") {
    FakeServer fake;
    fake.timeout_ms = 4000;
    Rig rig(fake.url() + "?tick_time=100ms&ttl=20s");
    rig.use("raised", 20s);
    fake.timeout_ms = 40'000;
    fake.cut();
    rig.until([&] { return fake.connections() == 2; }, "it is back");
    Try t("raised", 20s);
    rig.attempt(t);
    INFO(t.a.detail);
    REQUIRE(t.granted());
    CHECK(std::get<spi::Attempt::Granted>(t.a.outcome).ttl == 4s);
}

TEST_CASE("an attempt that ends while no server is reached leaves nothing in memory") {
    const lab::Port nobody = lab::free_port();
    Rig rig("zookeeper://127.0.0.1:" + nobody.text() + "?tick_time=100ms&ttl=4s");
    // One that came before it still waits for a server.
    Try waits("one", 4s), ends("another", 4s);
    rig.start(waits, 2s);
    rig.until([&] { return waits.a.place != nullptr; }, "the first has a place");
    rig.start(ends, 100ms);
    rig.until([&] { return ends.a.place != nullptr; }, "the second has a place");
    const std::weak_ptr<void> place = ends.a.place;
    rig.until([&] { return ends.done; }, "the second attempt ends");
    CHECK(ends.is<spi::Attempt::Failed>());
    CHECK(rig.reached([&] { return place.expired(); }, 500ms));
    rig.until([&] { return waits.done; }, "the first attempt ends");
}
