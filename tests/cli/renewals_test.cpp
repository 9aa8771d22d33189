// Renewals: what two looks or more say of a holder's last renewal, and what they do not.
#include "renewals.hpp"

#include "catch.hpp"

using namespace holdfast;
using namespace holdfast::cli;

namespace {

using std::chrono::milliseconds;

boot_clock::time_point at(int ms) {
    return boot_clock::time_point{} + milliseconds(1'000'000 + ms);
}

Holder holder(int left_ms, std::string owner = "a") {
    Holder h;
    h.owner = std::move(owner);
    h.ttl_left = milliseconds(left_ms);
    return h;
}

/// Looks that are answered 5 ms after they were sent.
void look(Renewals& r, int ms, std::vector<Holder> holders) {
    r.look(holders, at(ms), at(ms + 5));
}

}  // namespace

TEST_CASE("one look says nothing of renewals", "[cli][renewals]") {
    Renewals r;
    CHECK_FALSE(r.of("a"));
    look(r, 0, {holder(9000)});
    CHECK_FALSE(r.of("a"));
}

TEST_CASE("a time left that only goes down is no renewal", "[cli][renewals]") {
    Renewals r;
    look(r, 0, {holder(9000)});
    look(r, 1000, {holder(8000)});
    look(r, 4000, {holder(5003)});  // within what the answer took
    REQUIRE(r.of("a"));
    CHECK_FALSE(r.of("a")->renewed);
    CHECK(r.of("a")->ago == milliseconds(3995));
}

TEST_CASE("an end that moves is a renewal since the look before", "[cli][renewals]") {
    Renewals r;
    look(r, 0, {holder(7001)});
    look(r, 1000, {holder(9502)});
    REQUIRE(r.of("a"));
    CHECK(r.of("a")->renewed);
    CHECK(r.of("a")->ago == milliseconds(1005));
    look(r, 2000, {holder(8502)});
    CHECK(r.of("a")->renewed);
    CHECK(r.of("a")->ago == milliseconds(2005));
    look(r, 3000, {holder(9801)});
    CHECK(r.of("a")->ago == milliseconds(1005));
}

TEST_CASE("whole seconds are no renewal", "[cli][renewals]") {
    Renewals r;
    look(r, 0, {holder(9000)});
    look(r, 900, {holder(8000)});
    look(r, 1800, {holder(8000)});
    CHECK_FALSE(r.of("a"));
    look(r, 2700, {holder(7000)});
    REQUIRE(r.of("a"));
    CHECK_FALSE(r.of("a")->renewed);
    look(r, 3600, {holder(9000)});
    CHECK(r.of("a")->renewed);
}

TEST_CASE("a server that does not count down says nothing", "[cli][renewals]") {
    Renewals r;
    for (int i = 0; i < 5; ++i) {
        look(r, i * 1000, {holder(10000)});
        CHECK_FALSE(r.of("a"));
    }
    Holder endless = holder(0);
    endless.ttl_left.reset();
    look(r, 5000, {endless});
    CHECK_FALSE(r.of("a"));
}

TEST_CASE("each holder is looked at by itself, and a new one from its first look",
          "[cli][renewals]") {
    Renewals r;
    look(r, 0, {holder(7001, "a"), holder(7001, "b")});
    look(r, 1000, {holder(9801, "a"), holder(6001, "b"), holder(9801, "c")});
    CHECK(r.of("a")->renewed);
    CHECK_FALSE(r.of("b")->renewed);
    CHECK_FALSE(r.of("c"));
    look(r, 2000, {holder(8801, "c")});
    CHECK_FALSE(r.of("a"));
}
