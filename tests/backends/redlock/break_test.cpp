// Breaking a lock: the holder's lease ends, whatever of its requests is still under way.
#include "five.hpp"
#include "node.hpp"

using namespace redlock_tests;

namespace {

/// Requests of one holder, and of its breaker, to nodes that run the scripts as they are shipped.
struct Broken {
    explicit Broken(bool as_reader) : shared(as_reader) { keys.assign("", "name"); }
    std::string enter(Node& n) {
        const rl::WaiterTicket as{shared, rl::mark_text(0, shared, "x"), milliseconds(0)};
        const auto until = now + milliseconds(100);
        const std::string token = "1000000000000000";
        if (!shared) {
            const auto got = say(n, rl::enter_ask(keys, "x", node_ttl, token, until));
            if (got != "u") return got;
        }
        return say(n, rl::enter_units_ask(keys, "x", node_ttl, token, as, until));
    }
    std::string renew(Node& n) {
        const auto until = now + milliseconds(100);
        return say(n, shared ? rl::renew_units_ask(keys, "x", node_ttl, until)
                             : rl::renew_ask(keys, "x", node_ttl, "1000000000000000", until));
    }
    std::string end(Node& n, bool at_once) {
        return say(n, Ask::of(&rl::Scripts::all().break_lock, keys.lock, keys.state, keys.readers,
                              keys.marks, keys.line, "x", at_once ? "1" : "0", "60000"));
    }
    std::string say(Node& n, const Ask& a) { return n.run(a, now).text.substr(0, 1); }
    const bool shared;
    rl::Keys keys;
    boot_clock::time_point now{std::chrono::hours(1)};
};

}  // namespace

TEST_CASE("break: a late request of the holder takes nothing, and its renewal hears of it") {
    const bool shared = GENERATE(false, true), at_once = GENERATE(false, true);
    INFO((shared ? "a reader" : "a mutex") << (at_once ? ", at once" : ""));
    Broken b(shared);
    Node had, empty;
    REQUIRE(b.enter(had) == "g");
    CHECK(b.end(had, at_once) == "d");
    CHECK(b.end(empty, at_once) == "n");
    // What was under way comes now.
    CHECK(b.enter(empty) == "b");
    CHECK(b.enter(had) == "b");
    CHECK(b.renew(empty) == "v");
    CHECK(b.renew(had) == (at_once ? "v" : "x"));
    // Others are not kept out of a free node, and the mark lapses.
    const auto other = [&](Node& n) {
        const rl::WaiterTicket as{false, rl::mark_text(5, false, "y"), milliseconds(0)};
        return b.say(n, rl::enter_units_ask(b.keys, "y", node_ttl, "1000000000000001", as,
                                            b.now + milliseconds(100)));
    };
    CHECK(other(empty) == "g");
    CHECK(other(had) == (at_once ? "g" : "b"));
    b.now += std::chrono::seconds(61);
    CHECK(b.enter(empty) == "h");
    CHECK(b.renew(empty) == "y");
}

TEST_CASE("break: a mark of a waiter does not shorten that of a broken holder") {
    Broken b(true);
    Node node;
    REQUIRE(b.enter(node) == "g");
    CHECK(b.end(node, true) == "d");
    const rl::WaiterTicket as{false, rl::mark_text(5, false, "y"), milliseconds(300)};
    const auto ask = [&](const std::string& value, const std::string& token) {
        return b.say(node, rl::enter_units_ask(b.keys, value, node_ttl, token, as,
                                               b.now + milliseconds(100)));
    };
    REQUIRE(ask("w", "1000000000000001") == "g");
    CHECK(ask("y", "1000000000000002") == "b");
    b.now += milliseconds(400);
    CHECK(b.enter(node) == "b");
    b.now += std::chrono::seconds(11);
    CHECK(b.enter(node) == "b");
}

TEST_CASE("break: a lease ends though its holder's requests were under way to the other nodes") {
    const bool at_once = GENERATE(false, true);
    INFO((at_once ? "at once" : "when its ttl is over"));
    Five five;
    Proxied proxies(five);
    const std::string query = "durable=yes&node_set=s&node_timeout=2s&ttl=6s";
    const auto holder = open(proxies.url(query));
    const auto lock = lock_of(holder, "name", {.renew = false});
    lab::wait_until(
        [&] {
            const auto lease = acquire(*lock, true);
            return lab::reached([&] { return five.holding("name") == 5; }, 200ms);
        },
        cap(10s), "all five are connected to");
    lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "free");
    for (const std::size_t i : {3U, 4U})
        proxies[i].stall(lab::Direction::to_server);
    auto lease = acquire(*lock, true);
    REQUIRE(five.holding("name") == 3);
    // The operator reaches one of the nodes that have it, and those that do not have it yet.
    std::string some = "redlock://127.0.0.1:1,127.0.0.1:2";
    for (const std::size_t i : {2U, 3U, 4U})
        some += "," + five.where(i);
    const auto operators = open(some + "?" + query);
    const auto broken = operators.break_lock("name", {.now = at_once});
    INFO(broken.error().message());
    REQUIRE(broken.has_value());
    for (const std::size_t i : {3U, 4U})
        proxies[i].heal();
    lab::wait_until([&] { return lease.renew().error() == errc::revoked; }, cap(5s),
                    "the holder hears of it");
    CHECK_FALSE(lease.valid());
    CHECK(lease.release() == hf::ReleaseResult::owned_by_other);
}
