// What two places say about each other, for backends that say little about themselves.
#include "places.hpp"
#include "../support/catch.hpp"
#include "config_fixture.hpp"
#include "holdfast/spi/identity.hpp"

using namespace config_test;
using spi::Identity;
using spi::IdentityText;

namespace {

/// A backend without a text of its own.
Registry plain() {
    Descriptor d;
    d.name = "plain";
    d.schemes = {"plain", "plains"};
    d.example = "plain://h";
    d.hosts = Descriptor::Hosts::many;
    d.default_port = 7;
    const std::pair<const char*, Identity> options[] = {
        {"tenant", Identity::part}, {"pool", Identity::apart}, {"mode", Identity::undeclared}};
    for (const auto& [name, identity] : options)
        d.options.push_back({.name = name,
                             .type = OptionType::text,
                             .fallback = "",
                             .meaning = "A text.",
                             .identity = identity});
    Registry r;
    r.add(std::move(d));
    return r;
}

std::string place(const std::string& url) {
    static const Registry registry = plain();
    Diagnostics said;
    return place_before_name(parse_url(url, registry, said).value()) + "x";
}

std::string place_with(const IdentityText& facts) {
    return facts.text() + "\nx";
}

}  // namespace

TEST_CASE("places: without a text of its own a backend has its hosts, path and options",
          "[places]") {
    CHECK(place("plain://b,a/p?pool=1") == place("plains://a:7,b/p"));
    CHECK(place("plain://a?namespace=app:") == place("plain://a?namespace=app:&ttl=3s"));
    CHECK(name_in(place("plain://a?namespace=app:")) == "app:x");
    CHECK(left_open(place("plain://a/p"), place("plain://a/q")).empty());
    CHECK(left_open(place("plain://a?tenant=1"), place("plain://a?tenant=2")).empty());
    CHECK(left_open(place("plain://a?mode=1"), place("plain://a?mode=2")) == "mode");
    // What surely differs settles it.
    CHECK(left_open(place("plain://a?mode=1&tenant=1"), place("plain://a?mode=2")).empty());
}

TEST_CASE("places: hosts that may be one server", "[places]") {
    const auto apart = [](const std::string& a, const std::string& b) {
        return left_open(place("plain://" + a), place("plain://" + b)).empty();
    };
    CHECK(apart("a", "b"));
    CHECK(apart("10.0.0.1", "10.0.0.1:8"));
    CHECK(apart("a,b", "c,d"));
    CHECK_FALSE(apart("a,b", "b,c"));
    CHECK_FALSE(apart("localhost", "127.0.0.1"));
    CHECK_FALSE(apart("[::1]", "a"));
    CHECK(apart("localhost:8", "127.0.0.1:9"));
}

TEST_CASE("places: facts that the server decides, and facts that only one text has", "[places]") {
    const auto open = [](const IdentityText& a, const IdentityText& b) {
        return left_open(place_with(a), place_with(b));
    };
    CHECK(open(IdentityText().part("k", "1"), IdentityText().open("k", "1")) == "k");
    CHECK(open(IdentityText().part("k", "1"), IdentityText().part("k", "1").part("l", "2")) == "l");
    CHECK(
        open(IdentityText().part("k", "1"), IdentityText().part("k", "2").open("l", "2")).empty());
    // A value may have any bytes.
    CHECK(open(IdentityText().part("k", "1\nl=2"), IdentityText().part("k", "1")).empty());
    CHECK(IdentityText().part("k", "a\nb%").text() == "k=a%0Ab%25\n");
    // Places of decorators' own.
    CHECK(left_open("one", "another").empty());
    CHECK(name_in("one") == "one");
}
