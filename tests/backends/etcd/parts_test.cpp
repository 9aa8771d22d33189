// Keys, messages and errors by themselves.
#include <boost/json/parse.hpp>
#include <holdfast/spi/settings.hpp>

#include "catch.hpp"
#include "errors.hpp"
#include "keys.hpp"
#include "messages.hpp"

namespace etcd = holdfast::etcd;
using holdfast::errc;

namespace {

etcd::Options options(const std::string& path, const std::string& ns) {
    holdfast::spi::Settings s;
    s.scheme = "etcd";
    s.path = path;
    for (const auto& o : holdfast::spi::common_options())
        s.values[std::string(o.name)] = std::string(o.fallback);
    s.values["namespace"] = ns;
    return etcd::Options(s);
}

}  // namespace

TEST_CASE("keys: no lock's keys are among those of another") {
    const auto o = options("", "app:");
    CHECK(etcd::line_of(o, "a") == "/holdfast/app:a/");
    CHECK(etcd::line_of(o, "a/b") == "/holdfast/app:a%2Fb/");
    CHECK(etcd::line_of(options("/locks/", ""), "50% \xC3\xA9") == "/locks/50%25 %C3%A9/");
    for (const std::string name : {"a", "a/b", "%2F", "gone", "\xC3\xA9", "a b"}) {
        const auto key = etcd::line_of(o, name) + "owner.host.1";
        CHECK(etcd::name_of(o, key) == name);
        CHECK(!etcd::name_of(options("", "other:"), key));
    }
    CHECK(!etcd::name_of(o, "/holdfast/app:a/b/c"));
    CHECK(!etcd::name_of(o, "/holdfast/app:a"));
    CHECK(!etcd::name_of(o, "/elsewhere/app:a/x"));
    CHECK(!etcd::name_of(o, etcd::grave_of(o, "owner")));
    CHECK(!etcd::name_of(options("", ""), etcd::grave_of(o, "owner")));
    CHECK(etcd::after("/holdfast/a/") == "/holdfast/a0");
}

TEST_CASE("keys: an entry is ours, revoked, or somebody else's") {
    CHECK(etcd::read_entry(etcd::write_entry("o.h.1", false))->owner == "o.h.1");
    CHECK_FALSE(etcd::read_entry(etcd::write_entry("o.h.1", false))->revoked);
    CHECK(etcd::read_entry(etcd::write_entry("o.h.1", true))->revoked);
    for (const std::string other : {"", "hf1", "hf1 ", "hf1! ", "hf2 x", "x"})
        CHECK_FALSE(etcd::read_entry(other));
}

TEST_CASE("messages: base64 as RFC 4648 has it") {
    const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                           {"f", "Zg=="},
                                                           {"fo", "Zm8="},
                                                           {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="},
                                                           {"fooba", "Zm9vYmE="},
                                                           {"foobar", "Zm9vYmFy"}};
    for (const auto& [plain, encoded] : vectors) {
        CHECK(etcd::base64(plain) == encoded);
        CHECK(etcd::from_base64(encoded) == plain);
    }
    std::string all;
    for (int i = 0; i < 256; ++i)
        all += static_cast<char>(i);
    CHECK(etcd::from_base64(etcd::base64(all)) == all);
    CHECK(etcd::from_base64("Zm9v!Zm9v") == "foo");
}

TEST_CASE("messages: what a server may answer is read, whatever it is") {
    const auto read = [](const char* text) {
        return etcd::read_transaction(boost::json::parse(text).as_object());
    };
    const auto r = read(
        R"({"header":{"revision":"7"},"succeeded":true,"responses":[
            {"response_put":{}},
            {"response_txn":{"responses":[{"response_range":{"kvs":[
                {"key":"Zm9v","value":"YmFy","create_revision":"5","mod_revision":6,"lease":"9"}],
                "count":"1","more":true}}]}},
            {"response_delete_range":{"deleted":"2","prev_kvs":[{"key":"Zg=="},3]}},
            {"unknown":1}, 17]})");
    CHECK(r.succeeded);
    REQUIRE(r.results.size() == 5);
    const auto& inner = r.results[1];
    CHECK_FALSE(inner.succeeded);
    REQUIRE(inner.results.size() == 1);
    REQUIRE(inner.results[0].found.size() == 1);
    CHECK(inner.results[0].more);
    const auto& kv = inner.results[0].found[0];
    CHECK(kv.key == "foo");
    CHECK(kv.value == "bar");
    CHECK(kv.created == 5);
    CHECK(kv.modified == 6);
    CHECK(kv.lease == 9);
    CHECK(r.results[2].count == 2);
    CHECK(r.results[2].found.size() == 1);
    for (const char* nonsense :
         {R"({})", R"({"succeeded":1,"responses":{}})", R"({"responses":[{"response_range":[]}]})",
          R"({"responses":[{"response_range":{"kvs":[{"key":5,"create_revision":{}}]}}]})"}) {
        INFO(nonsense);
        const auto n = read(nonsense);
        CHECK_FALSE(n.succeeded);
    }
    CHECK(etcd::revision_of(boost::json::parse(R"({"header":[]})").as_object()) == 0);
}

TEST_CASE("errors: what was surely not done is told from what may have been") {
    using etcd::Error;
    const auto of = [](long long code, const char* words) {
        return etcd::from_answer(code, 500, words);
    };
    CHECK(of(5, "etcdserver: requested lease not found") == etcd::make(Error::no_lease));
    CHECK(of(8, "etcdserver: mvcc: database space exceeded") == etcd::make(Error::no_space));
    CHECK(of(8, "etcdserver: too many requests") == etcd::make(Error::overloaded));
    CHECK(of(7, "etcdserver: permission denied") == errc::denied);
    CHECK(of(3, "etcdserver: user name is empty") == errc::denied);
    CHECK(of(14, "etcdserver: no leader") == etcd::make(Error::no_leader));
    CHECK(etcd::from_answer(0, 404, "Not Found") == errc::not_supported);
    CHECK(etcd::nothing_done(of(5, "etcdserver: requested lease not found")));
    CHECK(etcd::nothing_done(of(8, "etcdserver: mvcc: database space exceeded")));
    for (const auto& ec :
         {of(14, "etcdserver: no leader"), of(14, "etcdserver: request timed out"),
          of(4, "context deadline"), etcd::make(Error::closed), etcd::make(Error::no_answer)})
        CHECK_FALSE(etcd::nothing_done(ec));
}
