// The pure parts: names and nodes, the line of one name, and how long a session surely lives.
#include <limits>
#include <random>

#include "catch.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "nodes.hpp"
#include "queue.hpp"
#include "validity.hpp"

using namespace holdfast::zookeeper;
using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::milliseconds;

namespace {

QueueNodePtr place(Queue& queue, const std::string& node, std::uint64_t list) {
    auto p = std::make_shared<QueueNode>();
    p->state = QueueNode::State::queued;
    p->node = node;
    p->recipe = rank_of(node)->recipe;
    if (reads(p->recipe)) p->access = QueueNode::Access::reads;
    p->list = list;
    queue.add(p);
    return p;
}

std::string node(std::int64_t sequence, char letter = 'a', const char* kind = "lock-") {
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), "%010d", static_cast<int>(sequence));
    return "_c_" + std::string(8, letter) + "-0000-4000-8000-000000000000-" + kind + digits.data();
}

}  // namespace

TEST_CASE("errors: what the library cannot read leaves in doubt whether a request was executed") {
    // It gives that error to every request on the connection, as if each had been refused.
    for (const int rc :
         {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZRUNTIMEINCONSISTENCY, ZMARSHALLINGERROR})
        CHECK(unanswered(rc));
    for (const int rc : {ZOK, ZNONODE, ZNODEEXISTS, ZNOAUTH})
        CHECK_FALSE(unanswered(rc));
}

TEST_CASE("names become one path component each, and back", "[names]") {
    const std::vector<std::pair<std::string, std::string>> pairs{{"orders", "orders"},
                                                                 {"orders/42", "orders%2F42"},
                                                                 {"a%b", "a%25b"},
                                                                 {".", "%2E"},
                                                                 {"..", "%2E%2E"},
                                                                 {"...", "..."},
                                                                 {"a b", "a b"},
                                                                 {"\xC3\xA9", "%C3%A9"},
                                                                 {"\x7F", "%7F"},
                                                                 {"_hf_marks", "%5Fhf_marks"},
                                                                 {"_hg", "_hg"},
                                                                 {"a\nb", "a%0Ab"},
                                                                 {"zookeeper", "zookeeper"},
                                                                 {"\"quoted\"", "\"quoted\""}};
    for (const auto& [name, component] : pairs) {
        CHECK(escape(name, false) == component);
        CHECK(unescape(component) == name);
    }
    CHECK(escape("zookeeper", true) == "%7Aookeeper");
    CHECK_FALSE(unescape("_hf_session-x"));
    CHECK_FALSE(unescape("50%"));
    CHECK_FALSE(unescape("%zz"));
}

TEST_CASE("which nodes stand in line, and with which number", "[names]") {
    CHECK(sequence_of("_c_00000000-0000-4000-8000-000000000000-lock-0000000007") == 7);
    CHECK(sequence_of("ffffffffffffffffffffffffffffffff__lock__0000000012") == 12);
    CHECK(sequence_of("lock-0000000001") == 1);
    CHECK(sequence_of("_c_x-lock--2147483648") == std::numeric_limits<std::int32_t>::min());
    CHECK(sequence_of("_c_x-lock-2147483647") == std::numeric_limits<std::int32_t>::max());
    CHECK(rank_of("_c_x-latch-0000000003")->recipe == Recipe::latch);
    CHECK(rank_of("_c_x-__WRIT__0000000003")->recipe == Recipe::writer);
    CHECK(rank_of("_c_x-__READ__0000000003")->recipe == Recipe::reader);
    CHECK(rank_of("_c_x-__READ__0000000003")->sequence == 3);
    // Curator's downgrade: in the writer's place.
    CHECK(rank_of("_c_x-__READ__00000000030000000005")->recipe == Recipe::reader);
    CHECK(rank_of("_c_x-__READ__00000000030000000005")->sequence == 3);
    CHECK_FALSE(rank_of("_c_x-__WRIT__00000000030000000005"));
    CHECK_FALSE(rank_of("_c_x-__READ__0000000003-000000005"));
    CHECK(rank_of("_c_x-lease-0000000001")->recipe == Recipe::permit);
    CHECK(rank_of("ff__lock__0000000012")->recipe == Recipe::kazoo_writer);
    CHECK(rank_of("ff__rlock__0000000012")->recipe == Recipe::kazoo_reader);
    for (const char* foreign : {"", "readme", "lock-", "lock-1", "lock-000000000x", "__READ__1",
                                "lock-99999999999", "0000000001", "lock-0000000001 "})
        CHECK_FALSE(sequence_of(foreign));
    const auto guid = make_guid();
    CHECK(guid.size() == 36);
    CHECK(guid != make_guid());
    CHECK(made_by(node_prefix(guid) + "0000000001", guid));
    CHECK_FALSE(made_by(node_prefix(make_guid()) + "0000000001", guid));
    CHECK(made_by(node_prefix(guid, Recipe::reader) + "0000000001", guid));
    CHECK(node_prefix(guid, Recipe::writer) == "_c_" + guid + "-__WRIT__");
    CHECK(node_prefix(guid, Recipe::latch) == "_c_" + guid + "-latch-");
    CHECK(of_other_recipe(Recipe::mutex, Recipe::latch));
    CHECK(of_other_recipe(Recipe::reader, Recipe::latch));
    CHECK_FALSE(of_other_recipe(Recipe::reader, Recipe::writer));
    CHECK_FALSE(of_other_recipe(Recipe::latch, Recipe::kazoo_writer));
}

TEST_CASE("what a node says of its maker", "[names]") {
    NodeData d{"owner.host.7", 10'000, true};
    const auto read = read_data(write_data(d));
    REQUIRE(read);
    CHECK(read->owner == d.owner);
    CHECK(read->ttl_ms == 10'000);
    CHECK(read->revoked);
    CHECK_FALSE(read->shared);
    d.revoked = false, d.shared = d.asked = true, d.delay_ms = 15'000;
    const auto more = read_data(write_data(d));
    REQUIRE(more);
    CHECK_FALSE(more->revoked);
    CHECK(more->shared);
    CHECK(more->asked);
    CHECK(more->delay_ms == 15'000);
    for (const char* foreign :
         {"", "10.0.0.1", "hf1", "hf1 ", "hf1 x owner", "hf1 -5 o", "hf1 10 ", "hf1 10 owner gone",
          "hf1 10 owner delay=x", "hf2 10 owner", "__REVOKE__",
          // No sum of two of its times overflows.
          "hf1 9223372036854775807 owner", "hf1 10 owner delay=9223372036854775807"})
        CHECK_FALSE(read_data(foreign));
}

TEST_CASE("the first is who has nobody ahead, after a list that may have shown them", "[line]") {
    Queue queue("/p");
    queue.sent = 1;
    const auto mine = place(queue, node(5), 1);
    CHECK_FALSE(queue.first(*mine));  // no list yet: somebody may be ahead
    CHECK(queue.apply({node(3, 'z'), node(5), "readme", node(6, 'b')}, 1).empty());
    CHECK_FALSE(queue.first(*mine));
    REQUIRE(queue.blocker(*mine) != nullptr);
    CHECK(queue.blocker(*mine)->first.second == node(3, 'z'));
    CHECK(queue.remove(node(3, 'z')) == std::vector{mine});
    CHECK(queue.first(*mine));
    // A later one, whose list has not come.
    const auto later = place(queue, node(9), 2);
    CHECK(queue.apply({node(5), node(6, 'b')}, 1).empty());  // an older answer does not show it
    CHECK_FALSE(later->listed);
    CHECK(queue.find(later->node) != nullptr);
    const auto vanished = queue.apply({node(6, 'b')}, 2);
    CHECK(vanished.size() == 2);
    CHECK_FALSE(queue.first(*mine));
}

TEST_CASE("a reader waits for the last that writes ahead of it, and a writer for all", "[line]") {
    constexpr auto read = "__READ__", write = "__WRIT__";
    Queue queue("/p");
    queue.sent = 1;
    const auto first = place(queue, node(1, 'a', read), 1),
               second = place(queue, node(4, 'd', read), 1);
    const auto writer = place(queue, node(5, 'e', write), 1),
               last = place(queue, node(6, 'f', read), 1);
    const auto held = node(2, 'b', "__lock__"), waits = node(3, 'c');
    CHECK(queue
              .apply({node(1, 'a', read), held, waits, node(4, 'd', read), node(5, 'e', write),
                      node(6, 'f', read), node(7, 'g', write)},
                     1)
              .empty());
    CHECK(queue.lets_in(*first));
    CHECK(queue.blocker(*second)->first.second == waits);
    CHECK(queue.blocker(*writer)->first.second == second->node);
    CHECK(queue.blocker(*last)->first.second == writer->node);
    // One that vanishes may let those behind it in, up to the next that writes.
    CHECK(queue.remove(waits) == std::vector{second, writer});
    CHECK_FALSE(queue.lets_in(*second));
    CHECK(queue.downgrade(held) == std::vector{second, writer});
    CHECK(queue.downgrade(held).empty());
    CHECK(queue.lets_in(*second));
    CHECK_FALSE(queue.lets_in(*writer));
    CHECK_FALSE(queue.lets_in(*last));
    // Which of two with one number is ahead nobody knows, and readers do not mind each other.
    CHECK(queue
              .apply({node(1, 'a', read), node(1, 'z', read), node(4, 'd', read),
                      node(4, 'z', write), node(5, 'e', write), node(6, 'f', read)},
                     2)
              .empty());
    CHECK(queue.lets_in(*first));
    CHECK_FALSE(queue.first(*first));
    CHECK(queue.blocker(*second)->first.second == node(4, 'z', write));
}

TEST_CASE("of a line of permits each place counts with its own limit", "[line]") {
    Queue queue("/p/leases", true);
    queue.sent = 1;
    std::vector<std::string> nodes;
    for (int n = 0; n < 6; ++n)
        nodes.push_back(node(n, 'a', "lease-"));
    std::vector<QueueNodePtr> places;
    for (int n = 0; n < 6; ++n) {
        places.push_back(place(queue, nodes[static_cast<std::size_t>(n)], 1));
        places.back()->limit = n % 2 == 0 ? 3 : 5;  // it may change while a place is there
    }
    CHECK(queue.apply(nodes, 1).empty());
    std::vector<bool> in;
    for (const auto& p : places)
        in.push_back(queue.lets_in(*p));
    CHECK(in == std::vector{true, true, true, true, false, false});
}

TEST_CASE(
    "a line is kept while a list of it is on the way: the next line counts from the beginning",
    "[line]") {
    Queue queue("/p");
    CHECK(queue.unused());
    queue.sent = 1;
    CHECK_FALSE(queue.unused());
    queue.answered = 1;
    CHECK(queue.unused());
    queue.places = 1;
    CHECK_FALSE(queue.unused());
}

TEST_CASE("T17: the order is that of the numbers, up to the last one that is given once",
          "[line][T17]") {
    constexpr std::int64_t last = std::numeric_limits<std::int32_t>::max() - 1;
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 200; ++round) {
        Queue queue("/p");
        std::vector<std::string> nodes;
        for (std::int64_t n = last - 39; n <= last; ++n)
            nodes.push_back(node(n, static_cast<char>('a' + random() % 26)));
        const std::size_t own = random() % nodes.size();
        auto shuffled = nodes;
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        queue.sent = 1;
        const auto mine = place(queue, nodes[own], 1);
        CHECK(queue.apply(shuffled, 1).empty());
        std::vector<std::string> seen;
        for (const auto& [key, e] : queue.entries())
            seen.push_back(key.second);
        REQUIRE(seen == nodes);
        CHECK(queue.first(*mine) == (own == 0));
    }
}

TEST_CASE("a number that a server gives twice makes nobody the first", "[line]") {
    constexpr auto top = std::numeric_limits<std::int32_t>::max();
    CHECK(is_unique(0));
    CHECK(is_unique(top - 1));
    CHECK_FALSE(is_unique(top));  // real servers repeat it
    CHECK_FALSE(is_unique(-1));
    CHECK_FALSE(is_unique(std::numeric_limits<std::int32_t>::min()));
    // What other clients make of a negative number is that it stands ahead.
    Queue queue("/p");
    queue.sent = 1;
    const auto mine = place(queue, node(top - 1), 1);
    CHECK(queue.apply({node(top - 1), node(std::numeric_limits<std::int32_t>::min(), 'z')}, 1)
              .empty());
    CHECK_FALSE(queue.first(*mine));
    CHECK(queue.apply({node(top, 'z'), node(top - 1)}, 2).empty());
    CHECK(queue.first(*mine));
    // The same number twice, whichever comes first in the list, or is known before.
    for (const bool before : {false, true}) {
        auto both = std::vector{node(top - 1), node(top - 1, 'z')};
        if (before) std::reverse(both.begin(), both.end());
        CHECK(queue.apply(both, 3).empty());
        CHECK_FALSE(queue.first(*mine));
        CHECK(queue.apply({node(top - 1)}, 4).empty());
        CHECK(queue.first(*mine));
        Queue other("/p");
        other.sent = 1;
        CHECK(other.apply({node(7, 'z')}, 1).empty());
        const auto second = place(other, node(7), before ? 3 : 2);
        CHECK(other.apply({node(7, 'z')}, 2).size() ==
              (before ? 0 : 1));  // gone, or not yet listed
        CHECK_FALSE(other.first(*second));
    }
}

TEST_CASE("a session lives from the write two back of the last acknowledged one", "[validity]") {
    const boot_clock::time_point t0(100s);
    Validity v(2s);
    CHECK_FALSE(v.base());
    const auto acknowledged = [&](auto sent) { v.acknowledged(sent, sent); };
    acknowledged(t0);  // nothing counts before the session is there
    acknowledged(t0 + 1s);
    acknowledged(t0 + 2s);
    CHECK_FALSE(v.base());
    v.created(t0);
    CHECK(v.base() == t0);
    acknowledged(t0 + 1s);
    acknowledged(t0 + 2s);
    CHECK(v.base() == t0);
    acknowledged(t0 + 3s);
    CHECK(v.base() == t0 + 1s);
    acknowledged(t0 + 4s);
    CHECK(v.base() == t0 + 2s);
    v.disconnected();
    acknowledged(t0 + 5s);
    acknowledged(t0 + 6s);
    CHECK(v.base() == t0 + 2s);  // the chain begins anew
    acknowledged(t0 + 7s);
    CHECK(v.base() == t0 + 5s);
}

TEST_CASE("heartbeats are spaced from the acknowledgement of the one before", "[validity]") {
    const boot_clock::time_point t0(100s);
    Validity v(2s);
    v.created(t0);
    CHECK(v.next() <= t0);  // the first may go at once
    v.acknowledged(t0, t0 + 1200ms);
    CHECK(v.next() == t0 + 1200ms + 1050ms);  // half a tick and a twentieth more
    v.disconnected();
    CHECK(v.next() <= t0);  // nothing of the old chain counts
    // No length of a session makes them closer; one that cannot hold three is refused.
    CHECK(Validity::spacing(3s) == 1575ms);
    // What is left before an acknowledgement is enough for `holdfast run` to end its command.
    const auto least = Validity::least_timeout(3s);
    CHECK(3 * Validity::spacing(3s) + holdfast::spi::drift(least) < least - least / 4 - least / 20);
}

namespace {

struct Rule {
    int back = 2;               ///< belief counts from the write so many back
    bool from_sending = false;  ///< the next write is spaced from the sending of the last
    int ping_every = 5;         ///< more than half a tick_time: the servers' is longer
};

/// A leader, a follower and one client in discrete time, a step a millisecond: a session of 40
/// steps, whose client thinks of a tick of 10. Client to follower, leader to follower may stall;
/// follower to leader may be cut. Returns whether the client believed when the leader had ended the
/// session. The client is the real class, but for what the rule says otherwise.
bool believes_wrongly(std::mt19937& random, const Rule& rule) {
    constexpr milliseconds timeout{40}, tick{10};
    constexpr int steps = 240;
    const auto at = [](int step) { return boot_clock::time_point(1s + milliseconds(step)); };
    const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Validity validity(tick);
    validity.created(at(0));
    int left = static_cast<int>(timeout.count()) + 1;
    bool closed = false, touched = false, cut = false;
    struct Up {
        bool write, touch;
    };
    std::vector<char> down;
    std::vector<Up> up;
    std::vector<int> acknowledged;  // when they were sent
    int outstanding = -1, arrives = -1;
    auto next = at(0), base = at(0);
    const int ping_at = any(rule.ping_every);
    // In half of the runs one after the other, as in the worst case.
    const bool aimed = any(2) == 0;
    const int slow_from = any(120), slow_to = slow_from + any(10);
    const int stall_from = aimed ? slow_to + any(10) : any(120);
    const int stall_to = stall_from + any(aimed ? 15 : 40);
    const int cut_at = aimed ? stall_to + any(10) : any(160);
    for (int now = 1; now < steps; ++now) {
        if (now == cut_at) cut = true;
        if (--left <= 0) closed = true;
        if (now % rule.ping_every == ping_at) down.push_back('p');
        // The leader takes what comes up.
        while (!cut && !up.empty()) {
            const Up first = up.front();
            up.erase(up.begin());
            if (first.write) {
                if (!closed) down.push_back('c');
            } else if (first.touch && !closed) {
                left = static_cast<int>(timeout.count());
            }
        }
        // The follower takes what comes from the client, and what comes down unless that stalls.
        const auto arrive = [&] {
            if (arrives < 0 || now < arrives) return;
            arrives = -1;
            touched = true;
            up.push_back({true, false});
        };
        arrive();
        while ((now < stall_from || now >= stall_to) && !down.empty()) {
            const char first = down.front();
            down.erase(down.begin());
            if (first == 'p') {
                up.push_back({false, touched});
                touched = false;
                continue;
            }
            acknowledged.push_back(outstanding);
            validity.acknowledged(at(outstanding), at(now));
            next = rule.from_sending ? at(outstanding) + Validity::spacing(tick) : validity.next();
            outstanding = -1;
            const int n = static_cast<int>(acknowledged.size());
            if (rule.back == 2)
                base = *validity.base();
            else if (n > rule.back)
                base = at(acknowledged[static_cast<std::size_t>(n - 1 - rule.back)]);
        }
        if (outstanding < 0 && at(now) >= next) {
            outstanding = now;
            arrives = now >= slow_from && now < slow_to ? slow_to : now;
            arrive();
        }
        if (closed && base + timeout > at(now)) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("no delay between client, follower and leader makes a session believed too long",
          "[validity]") {
    const auto seed = std::random_device{}();
    std::mt19937 random(seed);
    const auto wrong = [&](const Rule& rule) {
        int n = 0;
        for (int i = 0; i < 20'000; ++i)
            n += believes_wrongly(random, rule) ? 1 : 0;
        return n;
    };
    INFO("seed " << seed);
    CHECK(wrong({}) == 0);
    // And the simulation can tell.
    CHECK(wrong({.back = 0}) > 0);
    CHECK(wrong({.back = 1}) > 0);
    CHECK(wrong({.from_sending = true}) > 0);
    CHECK(wrong({.ping_every = 15}) > 0);
}
