// What a Redis Cluster says, without servers: slots of keys, redirections, who has which slot.
#include <cstdint>
#include <random>

#include "catch.hpp"
#include "cluster/slots.hpp"
#include "protocol/keys.hpp"
#include "resp/errors.hpp"

using namespace holdfast::redis;
namespace resp = holdfast::resp;
namespace spi = holdfast::spi;

namespace {

resp::Reply parsed(std::string_view bytes) {
    resp::Codec codec(1U << 20U);
    REQUIRE(codec.feed(bytes));
    REQUIRE(codec.next() == resp::Codec::Next::reply);
    return codec.reply();
}

ClusterView view(std::vector<std::tuple<Slot, Slot, int>> ranges,
                 std::vector<std::pair<int, std::uint64_t>> epochs) {
    ClusterView v;
    for (const auto& [first, last, port] : ranges)
        v.ranges.push_back(
            {first, last, {"h", static_cast<std::uint16_t>(port)}, "id" + std::to_string(port), 0});
    for (const auto& [port, epoch] : epochs)
        v.epochs["id" + std::to_string(port)] = epoch;
    return v;
}

std::string owner(const SlotTable& table, Slot slot) {
    const auto at = table.owner[slot];
    return at == SlotTable::none ? "none" : std::to_string(table.primaries.at(at).port);
}

}  // namespace

TEST_CASE("slots: those that Redis computes", "[slots]") {
    // Each as CLUSTER KEYSLOT of Redis 7.0 has it.
    CHECK(slot_of("123456789") == 0x31C3);
    CHECK(slot_of("foo") == 12182);
    CHECK(slot_of("") == 0);
    CHECK(slot_of("{foo}:hf:s") == 12182);
    CHECK(slot_of("a{foo}b{bar}") == 12182);
    CHECK(slot_of("a}b") == 7866);
    CHECK(slot_of("{a}b}:hf:s") == 15495);
    CHECK(slot_of("{}x") == 10595);
    CHECK(slot_of("{{}x}:hf:s") == 4092);
}

TEST_CASE("slots: the two kinds of names whose keys hash apart are known", "[slots]") {
    for (const char* name : {"a", "a b", "{a}", "x{a}y", "{a", "{{a}}", "{a}{b}", "{", "}:h{a}"})
        CHECK_FALSE(in_two_slots("", name));
    for (const char* name : {"a}b", "{}x", "}", "{}", "}{"})
        CHECK(in_two_slots("", name));
    CHECK_FALSE(in_two_slots("{app}:", "a}b"));
    CHECK(in_two_slots("a}", "b"));
}

TEST_CASE("slots: redirections are read, and nothing else is one", "[slots]") {
    const auto moved = redirect_of("MOVED 3999 127.0.0.1:6381");
    REQUIRE(moved);
    CHECK_FALSE(moved->once);
    CHECK(moved->slot == 3999);
    CHECK(moved->to == spi::Endpoint{"127.0.0.1", 6381});
    const auto ask = redirect_of("ASK 16383 ::1:7000");
    REQUIRE(ask);
    CHECK(ask->once);
    CHECK(ask->to == spi::Endpoint{"::1", 7000});
    // cluster-preferred-endpoint-type unknown-endpoint: the server that was asked.
    CHECK(redirect_of("MOVED 1 :6381")->to == spi::Endpoint{"", 6381});
    CHECK(redirect_of("MOVED 1 ?:6381")->to == spi::Endpoint{"", 6381});
    for (const char* other :
         {"", "MOVED", "MOVED 1", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1",
          "MOVED 1 127.0.0.1:0", "MOVED 1 127.0.0.1:65536", "MOVED 1 127.0.0.1", "MOVED -1 h:1",
          "TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster",
          "ERR MOVED 1 h:1", "CROSSSLOT Keys in request"})
        CHECK_FALSE(redirect_of(other));
}

TEST_CASE("slots: what is refused for now is told from what is not", "[slots]") {
    using resp::Error;
    CHECK(resp::from_reply("TRYAGAIN Multiple keys") == resp::make(Error::moving));
    CHECK(resp::from_reply("CLUSTERDOWN Hash slot not served") == resp::make(Error::uncovered));
    for (const auto error : {Error::moving, Error::uncovered}) {
        CHECK(resp::for_now(resp::make(error)));
        CHECK(resp::nothing_done(resp::make(error)));
        CHECK(resp::make(error) == holdfast::errc::unavailable);
    }
    // Redis 7.0 and 6.2.
    for (const char* words :
         {"ERR Script attempted to access a non local key in a cluster node script: 1f, on "
          "@user_script:7.",
          "ERR Error running script (call to f_1f): @user_script:7: @user_script: 7: Lua script "
          "attempted to access a non local key in a cluster node"}) {
        const auto cut_short = resp::from_reply(words);
        CHECK(cut_short == resp::make(Error::cut_short));
        CHECK(resp::for_now(cut_short));
        CHECK_FALSE(resp::nothing_done(cut_short));
    }
}

TEST_CASE("slots: CLUSTER SLOTS is read as servers write it", "[slots]") {
    // Redis 7.0: two ranges, a replica; an unknown host; a name with its address beside it.
    const auto ranges =
        ranges_of(parsed("*2\r\n"
                         "*4\r\n:0\r\n:5460\r\n"
                         "*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\naa\r\n*0\r\n"
                         "*4\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nbb\r\n*0\r\n"
                         "*3\r\n:5461\r\n:16383\r\n"
                         "*4\r\n$-1\r\n:7001\r\n$2\r\ncc\r\n*2\r\n$8\r\nhostname\r\n$2\r\nh1\r\n"),
                  "asked");
    REQUIRE(ranges);
    REQUIRE(ranges->size() == 2);
    CHECK(ranges->at(0).first == 0);
    CHECK(ranges->at(0).last == 5460);
    CHECK(ranges->at(0).primary == spi::Endpoint{"127.0.0.1", 7000});
    CHECK(ranges->at(0).id == "aa");
    CHECK(ranges->at(0).replicas == 1);
    CHECK(ranges->at(1).primary == spi::Endpoint{"asked", 7001});
    CHECK(ranges_of(parsed("*0\r\n"), "asked")->empty());
    for (const char* bad : {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
                            "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                            "*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                            "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                            "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:0\r\n",
                            "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:65536\r\n",
                            "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n"})
        CHECK_FALSE(ranges_of(parsed(bad), "asked"));
}

TEST_CASE("slots: CLUSTER NODES is read as servers write it", "[slots]") {
    const std::string nodes =
        "aa 127.0.0.1:7000@17000 myself,master - 0 0 3 connected 0-5460 [93->-cc] [77-<-bb]\n"
        "bb 127.0.0.1:7003@17003,name slave aa 0 1 3 connected\n"
        "cc 127.0.0.1:7001@17001 master,fail - 0 1 12 disconnected 5461-16383\n"
        "dd nonsense\n";
    const auto epochs = epochs_of(nodes);
    CHECK(epochs.size() == 2);
    CHECK(epochs.at("aa") == 3);
    CHECK(epochs.at("cc") == 12);
    CHECK(moving_slots_of(nodes) == 2);
    CHECK(epochs_of("").empty());
}

TEST_CASE("slots: of several claims the one with the highest epoch counts", "[slots]") {
    const auto before = view({{0, 99, 1}, {100, 16383, 2}}, {{1, 1}, {2, 2}});
    const auto after = view({{0, 99, 3}, {100, 16383, 2}}, {{3, 7}, {2, 2}});
    for (const auto& views :
         {std::vector{before, after}, std::vector{after, before}, std::vector{after}}) {
        const auto table = merged(views);
        CHECK(owner(table, 0) == "3");
        CHECK(owner(table, 99) == "3");
        CHECK(owner(table, 100) == "2");
        CHECK(table.whole);
        // The one that was replaced has nothing any more.
        CHECK(table.primaries.size() == 2);
    }
    // Each knows one slot better than the other.
    const auto both = merged(std::vector{view({{0, 0, 1}, {1, 1, 2}}, {{1, 9}, {2, 1}}),
                                         view({{0, 0, 2}, {1, 1, 1}}, {{1, 2}, {2, 3}})});
    CHECK(owner(both, 0) == "1");
    CHECK(owner(both, 1) == "1");
    CHECK_FALSE(both.whole);
    CHECK(owner(both, 2) == "none");
    // Without the permission for CLUSTER NODES.
    CHECK(owner(merged(std::vector{view({{0, 16383, 1}}, {})}), 5) == "1");
    CHECK(merged({}).primaries.empty());
}

TEST_CASE("slots: no answer breaks the reader", "[slots]") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::string whole =
        "*2\r\n*3\r\n:0\r\n:5460\r\n*2\r\n$1\r\nh\r\n:7000\r\n*3\r\n:5461\r\n:16383\r\n"
        "*3\r\n$-1\r\n:7001\r\n$2\r\ncc\r\n";
    int read = 0;
    for (int i = 0; i < 2000; ++i) {
        std::string bytes = whole;
        for (int n = 0; n < 2; ++n)
            bytes[random() % bytes.size()] = "0123456789:*$-\r\nx"[random() % 17];
        resp::Codec codec(1U << 16U);
        if (!codec.feed(bytes) || codec.next() != resp::Codec::Next::reply) continue;
        ++read;
        if (const auto ranges = ranges_of(codec.reply(), "asked")) {
            const auto table = merged(std::vector{ClusterView{*ranges, {}}});
            for (const auto at : table.owner)
                REQUIRE((at == SlotTable::none || at < table.primaries.size()));
        }
    }
    CHECK(read > 0);
}
