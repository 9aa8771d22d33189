// The list that an acquisition leaves out when the numbers say that nobody came in between: it must
// ask again as soon as they no longer prove that.
#include <atomic>

#include "rig.hpp"

using namespace zookeeper_tests;

namespace {

/// A client whose next acquisition of `name` would leave the list out: its last node was the first
/// one, is gone, and had the number `last`.
struct Foreseeing {
    explicit Foreseeing(std::string which)
        : name(std::move(which)),
          proxy(server().port()),
          client(open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) +
                      "?ttl=10s&tick_time=100ms")),
          lock(lock_of(client, name)),
          plain(server().connect_string()) {
        for (int i = 0; i <= last; ++i)
            CHECK(hold(*lock).release() == hf::ReleaseResult::released);
        // So it does: two requests, and heartbeats.
        proxy.record();
        hold(*lock).release();
        CHECK(proxy.recorded(lab::Direction::to_server).find("-lock-") != std::string::npos);
        CHECK(lists() == 0);
    }
    /// Lists of this line that were asked for since the last record().
    std::size_t lists() {
        // getChildren is request 8, whose path ends the request but for one byte.
        const std::string sent = proxy.recorded(lab::Direction::to_server);
        const std::string path = parent();
        std::size_t n = 0;
        for (auto at = sent.find(path); at != sent.npos; at = sent.find(path, at + 1))
            if (at >= 8 && sent.compare(at - 8, 4, std::string("\0\0\0\x08", 4)) == 0) ++n;
        return n;
    }
    std::string parent() const { return "/holdfast/" + name; }
    /// A node of somebody else, at the end of the line.
    std::string stranger() {
        const auto made = plain.create(parent() + "/_c_11111111-1111-4111-8111-111111111111-lock-",
                                       "", ZOO_EPHEMERAL_SEQUENTIAL);
        REQUIRE(made.rc == ZOK);
        return made.text;
    }
    /// The line's own node, gone and made anew, in which a stranger now holds the number after
    /// which this client's own would follow without a gap.
    std::string parent_anew() {
        CHECK(plain.remove(parent()).rc == ZOK);
        CHECK(plain.create(parent(), "", ZOO_PERSISTENT).rc == ZOK);
        std::string holds;
        for (int i = 0; i <= last + 1; ++i) {
            if (!holds.empty()) CHECK(plain.remove(holds).rc == ZOK);
            holds = stranger();
        }
        return holds;
    }
    void must_wait_for(const std::string& holder) {
        const auto refused = lock->acquire({.wait = 0ms});
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error() == errc::contended);
        CHECK(plain.remove(holder).rc == ZOK);
        hold(*lock).release();
    }

    static constexpr int last = 3;
    const std::string name;
    lab::Proxy proxy;
    hf::Client client;
    std::unique_ptr<hf::Lock> lock;
    ZooKeeperClient plain;
};

}  // namespace

TEST_CASE("no list where nobody came in between; a list where somebody did", "[ground]") {
    Foreseeing f("in-between");
    const std::string holds = f.stranger();
    f.proxy.record();
    f.must_wait_for(holds);
    CHECK(f.lists() > 0);
}

TEST_CASE("no trust in numbers of a line whose own node was made anew", "[ground]") {
    Foreseeing f("made-anew");
    f.must_wait_for(f.parent_anew());
}

TEST_CASE("no trust in numbers over a lost connection", "[ground]") {
    Foreseeing f("reconnected");
    f.proxy.black_hole();
    const std::string holds = f.parent_anew();
    f.proxy.cut_all();
    f.proxy.heal();
    f.must_wait_for(holds);
}

TEST_CASE("no trust in numbers once the watch was used up by a change", "[ground]") {
    Foreseeing f("changed");
    CHECK(f.plain.set(f.parent(), "somebody was here").rc == ZOK);
    f.must_wait_for(f.parent_anew());
    // And it learns to do without the list again.
    for (int i = 0; i < 3; ++i)
        hold(*f.lock).release();
    f.proxy.record();
    hold(*f.lock).release();
    CHECK(f.lists() == 0);
}

TEST_CASE("watches are asked for again after a lost connection: of the one ahead, of one's own",
          "[ground]") {
    lab::Proxy proxy(server().port());
    ZooKeeperClient plain(server().connect_string());
    const auto client =
        open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + "?ttl=10s&tick_time=100ms");
    // One that waits behind a stranger, and one that is held and was renewed.
    const auto lock = lock_of(client, "again-waits");
    hold(*lock).release();
    const auto made =
        plain.create("/holdfast/again-waits/_c_11111111-1111-4111-8111-111111111111-lock-", "",
                     ZOO_EPHEMERAL_SEQUENTIAL);
    REQUIRE(made.rc == ZOK);
    std::atomic<bool> granted{false};
    lock->async_acquire({.wait = 60s}, [&](hf::error_code ec, const hf::Lease&) { granted = !ec; });
    auto lease = hold(*lock_of(client, "again-held"));
    REQUIRE(lease.renew().has_value());
    const auto own =
        "/holdfast/again-held/" + plain.children("/holdfast/again-held").children.at(0);
    const auto seen = [&](const std::string& path) {
        const std::string sent = proxy.recorded(lab::Direction::to_server);
        return sent.find(path + '\x01') != sent.npos;  // getData, with a watch
    };
    for (int i = 0; i < 2; ++i) {
        proxy.record();
        CHECK(proxy.cut_all() > 0);
        CHECK(lab::reached([&] { return seen(made.text) && seen(own); }, 5s));
    }
    CHECK(plain.remove(made.text).rc == ZOK);
    CHECK(lab::reached([&] { return granted.load(); }, 5s));
    // It is told at once of what happens to its node, without a renewal.
    CHECK(plain.remove(own).rc == ZOK);
    CHECK(lab::reached([&] { return lease.lost().stop_requested(); }, 5s));
}

// The client library would set all its watches again in one request after a reconnect, and a server
// refuses one of more than a megabyte.
TEST_CASE("a session with many watches comes back after a lost connection", "[ground]") {
    lab::Proxy proxy(server().port());
    // A base of its own: other tests list the names in theirs.
    const auto client = open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) +
                             "/many?ttl=20s&tick_time=100ms");
    const bool held = GENERATE(false, true);
    std::vector<hf::Lease> all;
    for (int i = 0; i < 3000; ++i) {
        const auto lock = lock_of(client, std::to_string(i) + std::string(480, 'x'));
        if (held) {
            all.push_back(hold(*lock));
            REQUIRE(all.back().renew().has_value());
        } else {
            for (int times = 0; times < 2; ++times)
                hold(*lock).release();
        }
    }
    auto lease = hold(*lock_of(client, "held"));
    const auto accepted = proxy.counters().connections_accepted;
    CHECK(proxy.cut_all() > 0);
    lab::wait_until([&] { return proxy.counters().connections_accepted > accepted; }, 5s,
                    "it connects anew");
    lab::wait_until([&] { return lease.renew().has_value(); }, cap(5s), "it is back");
    // On a busy machine the first renewal may come before thousands of answers are worked off.
    const auto kept = [&](hf::Lease& l) {
        if (l.state() == hf::LeaseState::lost)
            FAIL("a lease was lost: " << l.lost_reason().message());
        return l.renew().has_value();
    };
    for (hf::Lease& l : all)
        lab::wait_until([&] { return kept(l); }, cap(5s), "the others are back");
    CHECK(proxy.counters().connections_accepted == accepted + 1);
    CHECK(lease.release() == hf::ReleaseResult::released);
}
