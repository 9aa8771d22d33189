// The pure parts: names and nodes, the line of one name, and how long a session surely lives.
#include <limits>
#include <random>

#include "catch.hpp"
#include "line.hpp"
#include "nodes.hpp"
#include "validity.hpp"

using namespace holdfast::zookeeper;
using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::milliseconds;

namespace {

PlacePtr place(Line& line, const std::string& node, std::uint64_t list) {
    auto p = std::make_shared<Place>();
    p->state = Place::State::queued;
    p->node = node;
    p->list = list;
    line.add(p);
    return p;
}

std::string node(std::int64_t sequence, char letter = 'a') {
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), "%010d", static_cast<int>(sequence));
    return "_c_" + std::string(8, letter) + "-0000-4000-8000-000000000000-lock-" + digits.data();
}

}  // namespace

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
    for (const char* foreign :
         {"", "readme", "lock-", "lock-1", "lock-000000000x", "x__rlock__0000000001",
          "_c_x-lease-0000000001", "lock-99999999999", "0000000001", "lock-0000000001 "})
        CHECK_FALSE(sequence_of(foreign));
    const auto guid = make_guid();
    CHECK(guid.size() == 36);
    CHECK(guid != make_guid());
    CHECK(made_by(node_prefix(guid) + "0000000001", guid));
    CHECK_FALSE(made_by(node_prefix(make_guid()) + "0000000001", guid));
}

TEST_CASE("what a node says of its maker", "[names]") {
    const NodeData d{"owner.host.7", 10'000, true};
    const auto read = read_data(write_data(d));
    REQUIRE(read);
    CHECK(read->owner == d.owner);
    CHECK(read->ttl_ms == 10'000);
    CHECK(read->revoked);
    for (const char* foreign : {"", "10.0.0.1", "hf1", "hf1 ", "hf1 x owner", "hf1 -5 o", "hf1 10 ",
                                "hf1 10 owner gone", "hf2 10 owner"})
        CHECK_FALSE(read_data(foreign));
}

TEST_CASE("the first is who has nobody ahead, after a list that may have shown them", "[line]") {
    Line line("/p");
    line.sent = 1;
    const auto mine = place(line, node(5), 1);
    CHECK_FALSE(line.first(*mine));  // no list yet: somebody may be ahead
    CHECK(line.apply({node(3, 'z'), node(5), "readme", node(6, 'b')}, 1).empty());
    CHECK_FALSE(line.first(*mine));
    REQUIRE(line.ahead(mine->key) != nullptr);
    CHECK(line.ahead(mine->key)->node == node(3, 'z'));
    auto* next = line.remove(*line.key_of(node(3, 'z')));
    REQUIRE(next != nullptr);
    CHECK(next->own == mine);
    CHECK(line.first(*mine));
    // A later one, whose list has not come.
    const auto later = place(line, node(9), 2);
    CHECK(line.apply({node(5), node(6, 'b')}, 1).empty());  // an older answer does not show it
    CHECK_FALSE(later->listed);
    CHECK(line.find(later->key) != nullptr);
    const auto vanished = line.apply({node(6, 'b')}, 2);
    CHECK(vanished.size() == 2);
    CHECK_FALSE(line.first(*mine));
}

TEST_CASE("T17: the order holds where the sequence wraps", "[line][T17]") {
    constexpr std::int64_t top = std::numeric_limits<std::int32_t>::max();
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 200; ++round) {
        Line line("/p");
        const std::int64_t start = top - static_cast<std::int64_t>(random() % 40);
        std::vector<std::string> nodes;
        for (int i = 0; i < 40; ++i) {
            const auto wrapped = static_cast<std::int32_t>(static_cast<std::uint32_t>(start + i));
            nodes.push_back(node(wrapped, static_cast<char>('a' + random() % 26)));
        }
        const std::size_t own = random() % nodes.size();
        auto shuffled = nodes;
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        line.sent = 1;
        const auto mine = place(line, nodes[own], 1);
        CHECK(line.apply(shuffled, 1).empty());
        std::vector<std::string> seen;
        for (const auto& [key, e] : line.entries())
            seen.push_back(e.node);
        REQUIRE(seen == nodes);
        CHECK(line.first(*mine) == (own == 0));
    }
}

TEST_CASE("a session lives from the write two back of the last acknowledged one", "[validity]") {
    const boot_clock::time_point t0(100s);
    Validity v;
    CHECK_FALSE(v.base());
    v.acknowledged(t0);  // nothing counts before the session is there
    v.acknowledged(t0 + 1s);
    v.acknowledged(t0 + 2s);
    CHECK_FALSE(v.base());
    v.created(t0);
    CHECK(v.base() == t0);
    v.acknowledged(t0 + 1s);
    v.acknowledged(t0 + 2s);
    CHECK(v.base() == t0);
    v.acknowledged(t0 + 3s);
    CHECK(v.base() == t0 + 1s);
    v.acknowledged(t0 + 4s);
    CHECK(v.base() == t0 + 2s);
    v.disconnected();
    v.acknowledged(t0 + 5s);
    v.acknowledged(t0 + 6s);
    CHECK(v.base() == t0 + 2s);  // the chain begins anew
    v.acknowledged(t0 + 7s);
    CHECK(v.base() == t0 + 5s);
}

namespace {

/// A leader, a follower and one client in discrete time: two streams between leader and follower,
/// of which the one down may stall and the one up may be cut; T = 40 steps, a ping each 10 steps.
/// Returns whether the client believed when the leader had ended the session. `back`: how many
/// writes back the belief counts from.
bool believes_wrongly(std::mt19937& random, int back) {
    constexpr int timeout = 40, ping_every = 5, spacing = 5;
    int left = timeout + 1;  // the session was created just before the first step
    bool closed = false, touched = false, cut = false;
    struct Up {
        bool write, touch;
    };
    std::vector<char> down;
    std::vector<Up> up;
    std::vector<int> acknowledged;  // send times
    int outstanding = -1, base = 0;
    const int stall_from = static_cast<int>(random() % 60), stall = static_cast<int>(random() % 60);
    const int cut_at = static_cast<int>(random() % 160);
    for (int now = 0; now < 240; ++now) {
        if (now == cut_at) cut = true;
        if (--left <= 0) closed = true;
        if (now % ping_every == 0) down.push_back('p');
        // The leader takes what comes up.
        while (!cut && !up.empty()) {
            const Up first = up.front();
            up.erase(up.begin());
            if (first.write) {
                if (!closed) down.push_back('c');
            } else if (first.touch && !closed) {
                left = timeout;
            }
        }
        // The follower takes what comes down, unless that stalls.
        if (now < stall_from || now >= stall_from + stall)
            while (!down.empty()) {
                const char first = down.front();
                down.erase(down.begin());
                if (first == 'p') {
                    up.push_back({false, touched});
                    touched = false;
                } else if (outstanding >= 0) {
                    acknowledged.push_back(outstanding);
                    outstanding = -1;
                    const auto n = static_cast<int>(acknowledged.size());
                    if (n > back)
                        base = std::max(base, acknowledged[static_cast<std::size_t>(n - 1 - back)]);
                }
            }
        if (outstanding < 0 && (acknowledged.empty() || now >= acknowledged.back() + spacing)) {
            outstanding = now;
            touched = true;
            up.push_back({true, false});
        }
        if (closed && base + timeout > now) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("the write two back is safe where the last one, or the one before, is not",
          "[validity]") {
    const auto seed = std::random_device{}();
    std::mt19937 random(seed);
    std::array<int, 3> wrong{};
    constexpr int runs = 20'000;
    for (std::size_t back = 0; back < wrong.size(); ++back)
        for (int i = 0; i < runs; ++i)
            wrong[back] += believes_wrongly(random, static_cast<int>(back)) ? 1 : 0;
    INFO("seed " << seed << ": " << wrong[0] << ", " << wrong[1] << ", " << wrong[2]);
    CHECK(wrong[2] == 0);
    CHECK(wrong[0] > 0);  // the model can tell
}
