// What a node says of itself when it is connected to, and whether it may vote then.
#include "nodes.hpp"
#include "resp/errors.hpp"

#include "errors.hpp"
#include "five.hpp"
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"
#include "node.hpp"

using namespace redlock_tests;
namespace resp = holdfast::resp;

namespace {

/// Three nodes that nobody connects to.
struct Met {
    explicit Met(const std::string& query) {
        hf::Diagnostics said;
        const auto chosen =
            hf::parse_url("redlock://a,b,c?max_ttl=10s" + query, hf::spi::Registry::linked(), said);
        INFO(said.text());
        REQUIRE(chosen.has_value());
        set.emplace(chosen->settings);
    }
    hf::error_code info(const std::string& run_id, long long uptime, std::size_t node = 0) {
        return say(
            0,
            text("run_id:" + run_id + "\r\nuptime_in_seconds:" + std::to_string(uptime) + "\r\n"),
            node);
    }
    hf::error_code say(unsigned which, const Reply& r, std::size_t node = 0) {
        const auto failed = set->nodes[node]->answered(which, r);
        words = failed.detail;
        return failed.why;
    }
    bool votes(hf::milliseconds later = 0ms) const { return set->votes(0, now() + later); }
    std::optional<rl::NodeSet> set;
    std::string words;
};

}  // namespace

TEST_CASE("nodes: a clock that was set back behind the start is no reason to refuse a node") {
    Met durable("&durable=yes"), other("");
    REQUIRE_FALSE(durable.info("one", -3600));
    CHECK(durable.votes());
    REQUIRE_FALSE(other.info("one", -3600));
    CHECK_FALSE(other.votes(10s));
    CHECK(other.votes(12s));
    CHECK(other.say(0, text("run_id:one\r\nuptime_in_seconds:x\r\n")) ==
          resp::make(resp::Error::protocol));
}

TEST_CASE(
    "nodes: a server that has taken the place of another does not vote at once, however long "
    "it has been up") {
    Met nodes("");
    REQUIRE_FALSE(nodes.info("one", 100'000));
    CHECK(nodes.votes());
    REQUIRE_FALSE(nodes.info("one", 100'001));  // the same one, at the next connect
    CHECK(nodes.votes());
    REQUIRE_FALSE(nodes.info("promoted", 100'002));
    CHECK_FALSE(nodes.votes(10s));
    CHECK(nodes.votes(12s));
    Met durable("&durable=yes");
    REQUIRE_FALSE(durable.info("one", 100'000));
    REQUIRE_FALSE(durable.info("promoted", 100'000));
    CHECK(durable.votes());
}

TEST_CASE("nodes: a cluster of Redis or of Valkey is refused, and a replica") {
    Met nodes("");
    for (const char* mode : {"redis_mode", "server_mode"}) {
        INFO(mode);
        const std::string id = "run_id:one\r\nuptime_in_seconds:100\r\n";
        CHECK(nodes.say(0, text(id + mode + ":cluster\r\n")) == errc::not_supported);
        CHECK_FALSE(nodes.say(0, text(id + mode + ":standalone\r\n")));
    }
    Reply refusal;
    refusal.type = Reply::Type::error;
    refusal.text = "READONLY You can't write against a read only replica.";
    CHECK(nodes.say(1, refusal) == resp::make(resp::Error::read_only));
    CHECK(nodes.words.find("primary") != std::string::npos);
    refusal.text = "OOM command not allowed when used memory > 'maxmemory'.";
    CHECK_FALSE(nodes.say(1, refusal));  // it can still be read, and be given releases
}
