// Rows of other libraries follow from what their programs say, and a program that is missing, fails
// or makes no sense becomes that and no figure.
#include <unistd.h>

#include "catch.hpp"

#include "measure/peer_rows.hpp"
#include "processes/peer.hpp"
#include "report/compare.hpp"
#include "verdict.hpp"

using namespace holdfast::bench;
using Kind = PeerSaid::Kind;

namespace {

/// Whether it throws a PeerError that says so.
template <class Work>
bool says(const std::string& words, Work work) {
    try {
        work();
    } catch (const PeerError& error) {
        if (std::string(error.what()).find(words) != std::string::npos) return true;
        UNSCOPED_INFO("it said: " << error.what());
    }
    return false;
}

PeerFigures measured(const PeerSaid& ready, const PeerSaid& block) {
    PeerFigures figures{"redis", peer_variant("redis-py", ready.version), ready.settings, {}, {},
                        {}};
    for (const double us : block.us)
        figures.all.add_us(us);
    figures.p50_us = {60, 58, 64};
    figures.over_floor = {2.0, 1.9, 2.2};
    return figures;
}

PeerStart shell(const std::string& script) {
    static int count = 0;
    const auto log = std::filesystem::temp_directory_path() /
                     ("holdfast-peer-" + std::to_string(getpid()) + "-" + std::to_string(++count));
    return {{"sh", "-c", script}, "Debian: dash", log};
}

/// A peer of the test's own, and its log's end.
struct Fake {
    explicit Fake(const std::string& script) : start(shell(script)), process(start) {}
    ~Fake() { std::filesystem::remove(start.log); }
    PeerStart start;
    PeerProcess process;
};

constexpr const char* ready = R"(echo '{"version":"1.2","settings":"plain"}';)";

}  // namespace

TEST_CASE("every line of a peer is read as what it is") {
    const PeerSaid hello = parse_peer(R"({"version": "4.3.4", "settings": "timeout=10"})");
    CHECK(hello.kind == Kind::ready);
    CHECK(hello.version == "4.3.4");
    CHECK(hello.settings == "timeout=10");
    CHECK(parse_peer(R"({"missing": "Debian: python3-redis"})").words == "Debian: python3-redis");
    CHECK(parse_peer(R"({"held": true})").kind == Kind::held);
    CHECK(parse_peer(R"({"held": false})").kind == Kind::freed);
    CHECK(parse_peer(R"({"us": [12.5, 3]})").us == std::vector<double>{12.5, 3});
    CHECK(parse_peer(R"({"failed": "LockNotOwnedError: gone"})").kind == Kind::failed);
}

TEST_CASE("what is no answer of a peer is refused, with what it said") {
    for (const char* line :
         {"", "ready", "[]", "{}", R"({"us": 3})", R"({"us": ["fast"]})", R"({"held": 1})",
          R"({"version": "4.3.4"})", R"({"version": "", "settings": ""})", R"({"us": []})",
          R"({"us": [12, 0]})", R"({"us": [-1]})", R"({"us": [1e999]})"}) {
        INFO(line);
        CHECK(says(line, [&] { parse_peer(line); }));
    }
    CHECK_NOTHROW(parse_peer(R"({"us": [1]})", Kind::block));
    CHECK(says("LockNotOwnedError: gone",
               [] { parse_peer(R"({"failed": "LockNotOwnedError: gone"})", Kind::block); }));
    CHECK(says("something else", [] { parse_peer(R"({"held": false})", Kind::held); }));
}

TEST_CASE("a peer's rows carry its version, its settings and the ratios of its rounds") {
    const auto figures = measured(parse_peer(R"({"version": "4.3.4", "settings": "timeout=10"})"),
                                  parse_peer(R"({"us": [50, 60, 70, 60]})"));
    const Rows rows = peer_rows(figures);
    REQUIRE(rows.size() == 3);
    for (const Row& row : rows) {
        CHECK(row.scenario == "peers");
        CHECK(row.variant == "peer: redis-py 4.3.4");
        CHECK(row.note == "timeout=10");
        CHECK(row.n == 4);
        CHECK(row.status == Status::ok);
    }
    const Row* p50 = find(rows, {{}, {}, {}, "p50"});
    REQUIRE(p50 != nullptr);
    CHECK(p50->value == 60);
    CHECK(p50->min == 58);
    CHECK(p50->max == 64);
    const Row* ratio = find(rows, {{}, {}, {}, peer_over_floor});
    REQUIRE(ratio != nullptr);
    CHECK(ratio->value == 2.0);
    CHECK(ratio->min == 1.9);
    CHECK(ratio->max == 2.2);
    CHECK(exit_code(rows) == 0);
}

TEST_CASE("the floor has no ratio, and who was not measured has no row") {
    auto figures = measured({}, parse_peer(R"({"us": [50]})"));
    figures.over_floor.clear();
    CHECK(find(peer_rows(figures), {{}, {}, {}, peer_over_floor}) == nullptr);
    CHECK(peer_rows(figures).size() == 2);
    figures.p50_us.clear();
    CHECK(peer_rows(figures).empty());
}

TEST_CASE("a peer that is not installed is neither an error nor a figure") {
    const Row row = missing_peer("redis", "redis-py", "Debian: python3-redis");
    CHECK(row.variant == "peer: redis-py");
    CHECK(row.metric == "not installed");
    CHECK(row.note == "not installed (Debian: python3-redis)");
    CHECK(row.value != 0);
    CHECK(row.status == Status::ok);
    CHECK(exit_code({row}) == 0);
}

TEST_CASE("a peer that became slower does not count against Holdfast") {
    Report before, after;
    before.rows = peer_rows(measured(parse_peer(R"({"version": "4.3.4", "settings": ""})"),
                                     parse_peer(R"({"us": [50]})")));
    after.rows = before.rows;
    for (Row& row : after.rows)
        for (double* v : {&row.value, &row.min, &row.max})
            *v *= 3;
    CHECK(compare(before, after, 10).slower() == 0);
    for (Report* report : {&before, &after})
        for (Row& row : report->rows)
            row.variant = "plain";
    CHECK(compare(before, after, 10).slower() == 1);
}

TEST_CASE("a program that plays along is driven block by block") {
    Fake peer(std::string(ready) + R"(while read -r word; do case $word in
        hold) echo '{"held":true}';; free) echo '{"held":false}';; *) echo '{"us":[3,4]}';;
        esac; done)");
    const PeerSaid said = peer.process.hello();
    CHECK(said.kind == Kind::ready);
    CHECK(said.version == "1.2");
    CHECK_NOTHROW(peer.process.hold());
    CHECK_NOTHROW(peer.process.free());
    CHECK(peer.process.block(0.01) == std::vector<double>{3, 4});
}

TEST_CASE("a program that does not play along says why") {
    SECTION("it is not there") {
        PeerProcess peer({{"holdfast-no-such-program"}, "Debian: nothing", "/dev/null"});
        CHECK(peer.hello().kind == Kind::missing);
        CHECK(peer.hello().words == "Debian: nothing");
    }
    SECTION("its library is not there") {
        Fake peer(R"(echo '{"missing":"Debian: python3-kazoo"}')");
        CHECK(peer.process.hello().kind == Kind::missing);
    }
    SECTION("it dies with a trace") {
        Fake peer("echo 'Traceback:' >&2; echo 'ImportError: no luck' >&2; exit 1");
        CHECK(says("ImportError: no luck", [&] { peer.process.hello(); }));
    }
    SECTION("it dies between two blocks") {
        Fake peer(std::string(ready) + R"(read -r word; echo '{"us":[3]}')");
        peer.process.hello();
        peer.process.block(0.01);
        CHECK_THROWS_AS(peer.process.block(0.01), PeerError);
    }
    SECTION("a cycle fails") {
        Fake peer(std::string(ready) + R"(read -r word; echo '{"failed":"LockError: not owned"}')");
        peer.process.hello();
        CHECK(says("LockError: not owned", [&] { peer.process.block(0.01); }));
    }
    SECTION("it says nothing, and does not end by itself either") {
        Fake peer("trap '' TERM; exec sleep 600");
        CHECK(says("nothing in time", [&] { peer.process.hello(0.05); }));
    }
}
