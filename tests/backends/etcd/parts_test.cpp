// Keys, messages and errors by themselves.
#include <etcd.pb.h>

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
    for (const std::string other :
         {"", "hf1", "hf1 ", "hf1! ", "hf2 x", "x", "hf1p", "hf1p x", "hf1p5 x", "hf1p5: x",
          "hf1p5:6 x", "hf1p0:0 x", "hf1p5:-1 x", "hf1sp5:1 x", "hf1d x", "hf1d-5 x", "hf1!? x",
          "hf1p99999999999:1 x"}) {
        INFO(other);
        CHECK_FALSE(etcd::read_entry(other));
        CHECK(etcd::units_in(other).exclusive());
    }
    const auto damaged = etcd::read_entry("hf1d801796016158026 x");
    REQUIRE(damaged.has_value());
    CHECK(holdfast::boot_clock::now() + damaged->lock_delay > holdfast::boot_clock::now());
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

TEST_CASE("messages: what a server may answer is read, whatever it is") {
    namespace rpc = etcd::rpc;
    rpc::TxnResponse answer;
    answer.set_succeeded(true);
    answer.add_responses()->mutable_response_put();
    rpc::RangeResponse& range =
        *answer.add_responses()->mutable_response_txn()->add_responses()->mutable_response_range();
    range.set_more(true);
    rpc::KeyValue& there = *range.add_kvs();
    there.set_key("foo");
    there.set_value(std::string("b\0r", 3));
    there.set_create_revision(5);
    there.set_mod_revision(6);
    there.set_lease(9);
    answer.add_responses()->mutable_response_delete_range()->add_prev_kvs()->set_key("f");
    answer.add_responses();
    const auto r = etcd::read_transaction(answer);
    CHECK(r.succeeded);
    REQUIRE(r.results.size() == 4);
    const auto& inner = r.results[1];
    CHECK_FALSE(inner.succeeded);
    REQUIRE(inner.results.size() == 1);
    REQUIRE(inner.results[0].found.size() == 1);
    CHECK(inner.results[0].more);
    const auto& kv = inner.results[0].found[0];
    CHECK(kv.key == "foo");
    CHECK(kv.value == std::string("b\0r", 3));
    CHECK(kv.created == 5);
    CHECK(kv.modified == 6);
    CHECK(kv.lease == 9);
    CHECK(r.results[2].found.size() == 1);
    CHECK(r.results[3].found.empty());
}

TEST_CASE("errors: what was surely not done is told from what may have been") {
    using etcd::Error;
    const auto of = [](int status, const char* words) { return etcd::from_status(status, words); };
    CHECK(of(5, "etcdserver: requested lease not found") == etcd::make(Error::no_lease));
    CHECK(of(8, "etcdserver: mvcc: database space exceeded") == etcd::make(Error::no_space));
    CHECK(of(8, "etcdserver: too many requests") == etcd::make(Error::overloaded));
    CHECK(of(7, "etcdserver: permission denied") == errc::denied);
    CHECK(of(3, "etcdserver: user name is empty") == errc::denied);
    CHECK(of(14, "etcdserver: no leader") == etcd::make(Error::no_leader));
    CHECK(of(12, "unknown method") == errc::not_supported);
    CHECK(etcd::nothing_done(etcd::make(Error::no_grpc)));
    CHECK(etcd::nothing_done(of(5, "etcdserver: requested lease not found")));
    CHECK(etcd::nothing_done(of(8, "etcdserver: too many requests")));
    CHECK(etcd::nothing_done(of(3, "etcdserver: duplicate key given in txn request")));
    // The request that raises the alarm is executed, and answered so.
    for (const auto& ec :
         {of(14, "etcdserver: no leader"), of(14, "etcdserver: request timed out"),
          of(4, "context deadline"), of(8, "etcdserver: mvcc: database space exceeded"),
          of(99, "no member"), of(2, "unknown"), of(13, "internal"), etcd::make(Error::closed),
          etcd::make(Error::no_answer)})
        CHECK_FALSE(etcd::nothing_done(ec));
}

TEST_CASE("identity: a host of another cluster is told from a cluster that was made anew") {
    using Says = etcd::Identity::Says;
    etcd::Identity hosts(3);
    CHECK(hosts.hear(0, 0) == Says::same);
    CHECK(hosts.hear(0, 17) == Says::same);
    CHECK(hosts.hear(1, 18) == Says::other);
    CHECK(hosts.hear(1, 17) == Says::same);
    CHECK(hosts.hear(0, 18) == Says::anew);
    CHECK(hosts.hear(1, 18) == Says::same);
    CHECK(hosts.hear(2, 17) == Says::other);
    CHECK(hosts.hear(1, 17) == Says::other);  // behind one name are two clusters
    CHECK(hosts.hear(2, 18) == Says::same);
    CHECK(hosts.hear(2, 19) == Says::anew);
    CHECK(hosts.hear(0, 18) == Says::other);
}
