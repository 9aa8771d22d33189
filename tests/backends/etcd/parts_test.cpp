// Keys, messages and errors by themselves.
#include <boost/json/parse.hpp>
#include <holdfast/spi/settings.hpp>

#include "catch.hpp"
#include "errors.hpp"
#include "identity.hpp"
#include "keys.hpp"
#include "messages.hpp"
#include "unit_queue.hpp"

namespace etcd = holdfast::etcd;
using holdfast::errc;

namespace {

etcd::Options options(const std::string& path, const std::string& ns) {
    holdfast::spi::Settings s;
    s.scheme = "etcd";
    s.path = path;
    for (const auto* table : {&holdfast::spi::common_options(), &etcd::option_table()})
        for (const auto& o : *table)
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
    CHECK(!etcd::name_of(o, etcd::tombstone_of(o, "owner")));
    CHECK(!etcd::name_of(options("", ""), etcd::tombstone_of(o, "owner")));
    CHECK(etcd::marks_of(o, "a/b") == "/holdfast/%mark/app:a%2Fb/");
    CHECK(!etcd::name_of(options("", ""), etcd::marks_of(o, "a") + "owner"));
    CHECK(etcd::after("/holdfast/a/") == "/holdfast/a0");
}

TEST_CASE("keys: an entry says who stands there for what, or it is somebody else's") {
    using Flag = etcd::Entry::Flag;
    using holdfast::spi::Units;
    using namespace std::chrono_literals;
    const Units reader{1, Units::all, holdfast::Mode::shared}, permits{3, 5, {}};
    const std::pair<etcd::Entry, std::string> entries[] = {
        {{"o.h.1"}, "hf1 o.h.1"},
        {{"o.h.1", {}, 0ms, Flag::revoked}, "hf1! o.h.1"},
        {{"o.h.1", {}, 1500ms, Flag::asked}, "hf1d1500? o.h.1"},
        {{"o.h.1", reader}, "hf1s o.h.1"},
        {{"o.h.1", reader, 1ms, Flag::revoked}, "hf1sd1! o.h.1"},
        {{"o.h.1", permits}, "hf1p5:3 o.h.1"},
        {{"o.h.1", permits, 2ms, Flag::asked}, "hf1p5:3d2? o.h.1"}};
    for (const auto& [entry, text] : entries) {
        INFO(text);
        CHECK(etcd::write_entry(entry) == text);
        const auto read = etcd::read_entry(text);
        REQUIRE(read.has_value());
        CHECK(read->owner == entry.owner);
        CHECK(read->units == entry.units);
        CHECK(read->lock_delay == entry.lock_delay);
        CHECK(read->flag == entry.flag);
        if (!entry.units.exclusive()) {
            CHECK(text > etcd::compatible_prefix(entry.units));
            CHECK(text < etcd::after(etcd::compatible_prefix(entry.units)));
        }
    }
    for (const std::string other : {"", "hf1", "hf1 ", "hf1! ", "hf2 x", "x", "hf1p", "hf1p x",
                                    "hf1p5 x", "hf1p5: x", "hf1p5:6 x", "hf1p0:0 x", "hf1p5:-1 x",
                                    "hf1sp5:1 x", "hf1d x", "hf1!? x", "hf1p99999999999:1 x"}) {
        INFO(other);
        CHECK_FALSE(etcd::read_entry(other));
        CHECK(etcd::units_in(other).exclusive());
    }
}

namespace {

/// Keys in the order of their creation, from 1 on.
etcd::UnitQueue row_of(const std::vector<std::string>& values) {
    etcd::UnitQueue row;
    std::int64_t created = 0;
    for (const std::string& value : values) {
        ++created;
        row.add({"/k" + std::to_string(created), value, created, created, 1});
    }
    return row;
}

}  // namespace

TEST_CASE("row: a run of readers fits, and a writer alone; nobody passes a writer") {
    auto row = row_of({"hf1s a", "hf1s b", "hf1 w", "hf1s c", "hf1s d"});
    CHECK(row.reach() == 2);
    row.remove(1);
    CHECK(row.reach() == 2);
    CHECK_FALSE(row.fits(1));
    row.remove(2);
    CHECK(row.reach() == 3);
    CHECK_FALSE(row.fits(4));
    row.change(3, "hf1s w");  // a downgrade
    CHECK(row.reach() == 5);
    row.remove(5);
    CHECK(row.reach() == 4);
    row.add({"/k9", "", 9, 9, 1});  // another client's
    CHECK(row.reach() == 4);
    row.remove(3);
    row.remove(4);
    CHECK(row.fits(9));
    row.remove(9);
    CHECK(row.reach() == 0);
    CHECK(row.empty());
    row.remove(9);
    row.add({"/k10", "hf1s e", 10, 10, 1});
    CHECK(row.fits(10));
    CHECK(row.created("/k10") == 10);
    CHECK(row.created("/k9") == 0);
}

TEST_CASE("row: a writer that is cancelled lets those behind it in") {
    auto row = row_of({"hf1s a", "hf1 w", "hf1s b", "", "hf1s c"});
    CHECK(row.reach() == 1);
    std::int64_t ahead = 0;
    REQUIRE(row.ahead(3, &ahead) != nullptr);
    CHECK(ahead == 2);
    CHECK(row.ahead(1, &ahead) == nullptr);
    row.remove(2);
    CHECK(row.reach() == 3);
}

TEST_CASE("row: permits are counted up to the limit, in order") {
    auto row = row_of({"hf1p5:3 a", "hf1p5:2 b", "hf1p5:4 c", "hf1p5:1 d"});
    CHECK(row.reach() == 2);
    row.remove(2);
    CHECK(row.reach() == 1);  // two are free, and four are waited for before the one
    row.remove(1);
    CHECK(row.reach() == 4);
    row.add({"/other", "hf1p6:1 e", 7, 7, 1});
    CHECK(row.reach() == 4);
    row.remove(3);
    row.remove(4);
    CHECK(row.reach() == 7);
}

TEST_CASE("row: a list in any order is one line") {
    std::vector<etcd::KeyValue> list;
    for (const std::int64_t created : {5, 2, 9, 7})
        list.push_back({"/k" + std::to_string(created), created == 7 ? "hf1 w" : "hf1s r", created,
                        created, 1});
    const etcd::UnitQueue row(list);
    CHECK(row.reach() == 5);
    CHECK(row.fits(2));
    CHECK_FALSE(row.fits(9));
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
    CHECK(etcd::nothing_done(of(8, "etcdserver: too many requests")));
    CHECK(etcd::nothing_done(of(3, "etcdserver: duplicate key given in txn request")));
    // The request that raises the alarm is executed, and answered so.
    for (const auto& ec :
         {of(14, "etcdserver: no leader"), of(14, "etcdserver: request timed out"),
          of(4, "context deadline"), of(8, "etcdserver: mvcc: database space exceeded"),
          of(0, "no member"), of(2, "unknown"), of(13, "internal"), etcd::make(Error::closed),
          etcd::make(Error::no_answer)})
        CHECK_FALSE(etcd::nothing_done(ec));
}

TEST_CASE("identity: a host of another cluster is told from a cluster that was made anew") {
    using Says = etcd::Identity::Says;
    etcd::Identity hosts(3);
    CHECK(hosts.hear(0, "") == Says::same);
    CHECK(hosts.hear(0, "17") == Says::same);
    CHECK(hosts.hear(1, "18") == Says::other);
    CHECK(hosts.hear(1, "17") == Says::same);
    CHECK(hosts.hear(0, "18") == Says::anew);
    CHECK(hosts.hear(1, "18") == Says::same);
    CHECK(hosts.hear(2, "17") == Says::other);
    CHECK(hosts.hear(1, "17") == Says::other);  // behind one name are two clusters
    CHECK(hosts.hear(2, "18") == Says::same);
    CHECK(hosts.hear(2, "19") == Says::anew);
    CHECK(hosts.hear(0, "18") == Says::other);
}
