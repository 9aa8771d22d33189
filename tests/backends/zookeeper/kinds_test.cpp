// Readers and writers, and permits, beside nodes that other libraries make: what counts, and what
// is refused because its maker would not count ours.
#include "rig.hpp"
#include "waiter.hpp"

using namespace zookeeper_tests;
using test_support::Waiter;

namespace {

const hf::LockOptions readers_and_writers{.kind = hf::Kind::shared_mutex};

hf::LockOptions up_to(std::uint32_t limit) {
    return {.kind = hf::Kind::semaphore, .limit = limit};
}

/// A name, a client of it, and somebody who makes nodes there by hand.
struct Beside {
    explicit Beside(std::string which, const std::string& ttl = "10s")
        : name(std::move(which)),
          client(open(server().url() + "?tick_time=100ms&ttl=" + ttl)),
          plain(server().connect_string()) {
        plain.create("/holdfast", "", ZOO_PERSISTENT);
        plain.create(parent(), "", ZOO_PERSISTENT);
    }
    std::string parent() const { return "/holdfast/" + name; }
    std::string stranger(const std::string& ending, const std::string& data = "10.0.0.1",
                         int mode = ZOO_EPHEMERAL_SEQUENTIAL) {
        const auto made = plain.create(parent() + "/" + ending, data, mode);
        REQUIRE(made.rc == ZOK);
        return made.text;
    }
    std::string curator(const std::string& ending) {
        return stranger("_c_11111111-1111-4111-8111-111111111111-" + ending);
    }
    void gone(const std::string& node) { CHECK(plain.remove(node).rc == ZOK); }
    std::unique_ptr<hf::Lock> lock(const hf::LockOptions& kind = {}) {
        return lock_of(client, name, kind);
    }
    auto waiting() { return waiters_of(client, name); }

    const std::string name;
    hf::Client client;
    ZooKeeperClient plain;
};

}  // namespace

TEST_CASE("kinds: Curator's and kazoo's readers and writers stand in one line with ours") {
    Beside here("kinds-foreign");
    const auto lock = here.lock(readers_and_writers);
    const auto reads = here.curator("__READ__"), kazoo_reads = here.stranger("ff__rlock__");
    auto beside = lock->try_acquire_shared().value();
    CHECK(lock->try_acquire().error() == errc::contended);
    const auto shown = here.client.inspect(here.name).value();
    CHECK(shown.kind == hf::Kind::shared_mutex);
    REQUIRE(shown.holders.size() == 3);
    CHECK(shown.holders[0].foreign);
    CHECK(shown.holders[0].mode == hf::Mode::shared);
    const auto writes = here.curator("__WRIT__");
    CHECK(lock->try_acquire_shared().error() == errc::contended);
    Waiter writer(*lock, {}), reader(*lock, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return here.waiting() == 3; }, 10s, "three wait");
    here.gone(reads);
    here.gone(kazoo_reads);
    beside.release();
    CHECK_FALSE(writer.done());
    here.gone(writes);
    writer.lease().release();
    reader.lease().release();
}

TEST_CASE("kinds: two nodes of one number are both ahead") {
    Beside here("kinds-twin");
    const auto lock = here.lock(readers_and_writers);
    const auto writes = here.curator("__WRIT__");
    const auto reads = here.stranger(
        "_c_22222222-2222-4222-8222-222222222222-__READ__" + writes.substr(writes.size() - 10),
        "10.0.0.1", ZOO_EPHEMERAL);
    CHECK(lock->try_acquire_shared().error() == errc::contended);
    Waiter reader(*lock, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return here.waiting() >= 1; }, 10s, "it waits");
    here.gone(writes);
    auto lease = reader.lease();
    CHECK(lock->try_acquire().error() == errc::contended);
    lease.release();
    CHECK(lock->try_acquire().error() == errc::contended);
    here.gone(reads);
    CHECK(hold(*lock).release() == hf::ReleaseResult::released);
}

TEST_CASE("kinds: a reader of Curator's that was a writer is ahead of those that waited for it") {
    Beside here("kinds-downgrade");
    const auto lock = here.lock(readers_and_writers);
    const auto writes = here.curator("__WRIT__");
    Waiter writer(*lock, {});
    lab::wait_until([&] { return here.waiting() == 1; }, 10s, "it waits");
    // Its node has the writer's number, and one of its own behind it.
    const auto reads = here.stranger("_c_22222222-2222-4222-8222-222222222222-__READ__" +
                                     writes.substr(writes.size() - 10));
    here.gone(writes);
    // What would be granted by a mistake is, long before this ends.
    CHECK(lock->acquire({.wait = 500ms}).error() == errc::timed_out);
    CHECK_FALSE(writer.done());
    CHECK(here.waiting() == 1);
    here.gone(reads);
    writer.lease().release();
    // One that comes while both nodes are there, and a reader.
    const auto writes_again = here.curator("__WRIT__");
    const auto reads_again = here.stranger("_c_22222222-2222-4222-8222-222222222222-__READ__" +
                                           writes_again.substr(writes_again.size() - 10));
    CHECK(lock->try_acquire_shared().error() == errc::contended);
    Waiter reader(*lock, {.mode = hf::Mode::shared});
    lab::wait_until([&] { return here.waiting() >= 1; }, 10s, "it waits");
    here.gone(writes_again);
    auto lease = reader.lease();
    CHECK(lock->try_acquire().error() == errc::contended);
    lease.release();
    CHECK(lock->try_acquire().error() == errc::contended);
    here.gone(reads_again);
    CHECK(hold(*lock).release() == hf::ReleaseResult::released);
}

TEST_CASE("kinds: whose maker does not count ours is no neighbour: kind_mismatch") {
    Beside here("kinds-blind");
    const auto mutex = here.curator("lock-");
    CHECK(here.lock(readers_and_writers)->acquire({.wait = 20s}).error() == errc::kind_mismatch);
    CHECK(here.lock(readers_and_writers)->acquire_shared({.wait = 20s}).error() ==
          errc::kind_mismatch);
    CHECK(here.lock(up_to(3))->try_acquire().error() == errc::kind_mismatch);
    here.gone(mutex);
    const auto writes = here.curator("__WRIT__");
    CHECK(here.lock()->acquire({.wait = 20s}).error() == errc::kind_mismatch);
    here.gone(writes);
    CHECK(hold(*here.lock()).release() == hf::ReleaseResult::released);
    // kazoo's Semaphore keeps its limit at the name itself.
    CHECK(here.plain.set(here.parent(), "3").rc == ZOK);
    CHECK(here.lock(up_to(3))->try_acquire().error() == errc::kind_mismatch);
}

TEST_CASE("kinds: what a session keeps there by another layout is refused, and nothing is left") {
    Beside here("kinds-stranger");
    struct Ask {
        hf::LockOptions kind;
        hf::Mode mode = hf::Mode::exclusive;
    };
    const Ask asks[] = {
        {}, {readers_and_writers}, {readers_and_writers, hf::Mode::shared}, {up_to(3)}};
    // A lease of kazoo's Semaphore, a queue of ZooKeeper's own recipe, and what is nobody's.
    const std::pair<const char*, int> strangers[] = {
        {"0123456789abcdef0123456789abcdef", ZOO_EPHEMERAL},
        {"x-72057594037927936-", ZOO_EPHEMERAL_SEQUENTIAL},
        {"leader", ZOO_EPHEMERAL}};
    // Nobody holds by what lives without a session.
    here.stranger("readme", "", ZOO_PERSISTENT);
    here.stranger("0000000000", "", ZOO_CONTAINER);
    const auto others = [&] { return here.plain.children(here.parent()).children.size(); };
    for (const auto& [ending, mode] : strangers) {
        for (const Ask& ask : asks)
            here.lock(ask.kind)->acquire({.wait = 10s, .mode = ask.mode}).value().release();
        const auto node = here.stranger(ending, "", mode);
        INFO(node);
        for (const Ask& ask : asks)
            for (const auto wait : {0ms, 20000ms}) {
                hf::Diagnostics words;
                const auto lock = here.lock(ask.kind);
                const auto refused =
                    lock->acquire({.wait = wait, .diagnostics = &words, .mode = ask.mode});
                CHECK(refused.error() == errc::kind_mismatch);
                CHECK(words.text().find(node) != std::string::npos);
            }
        hf::Diagnostics words;
        CHECK(here.client.inspect(here.name, &words).error() == errc::kind_mismatch);
        CHECK(words.text().find(node) != std::string::npos);
        CHECK(here.client.break_lock(here.name, {.now = true}).error() == errc::kind_mismatch);
        CHECK(here.client.request_release(here.name).error() == errc::kind_mismatch);
        CHECK(here.client.make_election(here.name)->leader().error() == errc::kind_mismatch);
        // Not even a folder, which kazoo would count as a lease.
        lab::wait_until([&] { return others() == 3; }, 10s, "nothing of ours is left");
        here.gone(node);
    }
}

TEST_CASE("kinds: a name that needs no list is listed again beside another layout's node") {
    Beside here("kinds-stranger-known");
    const auto lock = here.lock();
    for (int i = 0; i < 3; ++i)
        hold(*lock).release();
    const auto before = here.client.stats().requests;
    hold(*lock).release();
    REQUIRE(here.client.stats().requests - before == 2);
    const auto node = here.stranger("0123456789abcdef0123456789abcdef", "", ZOO_EPHEMERAL);
    // Its own node of the last try was the first in line; that says nothing here.
    for (int i = 0; i < 3; ++i)
        CHECK(lock->try_acquire().error() == errc::kind_mismatch);
    here.gone(node);
    hold(*lock).release();
}

TEST_CASE("kinds: another layout's node that comes while one waits is seen by the next look") {
    Beside here("kinds-stranger-late");
    auto holder = hold(*here.lock());
    Waiter writer(*here.lock(), {}),
        reader(*here.lock(readers_and_writers), {.mode = hf::Mode::shared});
    lab::wait_until([&] { return here.waiting() == 2; }, 10s, "both wait");
    const auto node = here.stranger("0123456789abcdef0123456789abcdef", "", ZOO_EPHEMERAL);
    CHECK(writer.why() == errc::kind_mismatch);
    CHECK(reader.why() == errc::kind_mismatch);
    CHECK(holder.renew().has_value());
    holder.release();
    CHECK(here.lock()->try_acquire().error() == errc::kind_mismatch);
    here.gone(node);
    CHECK(hold(*here.lock()).release() == hf::ReleaseResult::released);
}

TEST_CASE("kinds: Curator's word asks for the release, and does not stay") {
    Beside here("kinds-revoke");
    auto lease = here.lock(readers_and_writers)->try_acquire_shared().value();
    REQUIRE(lease.renew().has_value());
    const auto nodes = here.plain.children(here.parent()).children;
    REQUIRE(nodes.size() == 1);
    CHECK(here.plain.set(here.parent() + "/" + nodes[0], "__REVOKE__").rc == ZOK);
    lab::wait_until([&] { return lease.release_requested().stop_requested(); }, 10s, "asked");
    lab::wait_until(
        [&] {
            const auto shown = here.client.inspect(here.name).value().holders.at(0);
            return shown.owner == lease.owner_id() && shown.asked;
        },
        10s, "whose it is");
    CHECK(lease.valid());
    lease.release();
    // And it is what we write to Curator's.
    const auto theirs = here.curator("__WRIT__");
    REQUIRE(here.client.request_release(here.name).value().size() == 1);
    CHECK(here.plain.get(theirs).text == "__REVOKE__");
    here.gone(theirs);
    // Not to a latch, which would lose the id of its leader and never notice.
    const auto latch = here.curator("latch-");
    CHECK(here.client.request_release(here.name).error() == errc::not_supported);
    CHECK(here.plain.get(latch).text != "__REVOKE__");
    here.gone(latch);
}

TEST_CASE("kinds: permits of Curator's count, and its queue is ours") {
    Beside here("kinds-permits");
    const auto sem = here.lock(up_to(3));
    sem->try_acquire()->release();  // the folders are there
    const auto theirs = here.stranger("leases/_c_11111111-1111-4111-8111-111111111111-lease-");
    auto two = sem->acquire({.wait = 10s, .permits = 2}).value();
    CHECK(holders_of(here.client, here.name) == 2);
    CHECK(here.client.list(here.name).value().size() == 1);
    CHECK(sem->try_acquire().error() == errc::contended);
    here.gone(theirs);
    const auto turn = here.stranger("locks/_c_11111111-1111-4111-8111-111111111111-lock-");
    CHECK(sem->try_acquire().error() == errc::contended);  // though one is free
    here.gone(turn);
    auto one = sem->try_acquire().value();
    // Nothing is left when all have been given back.
    one.release();
    two.release();
    CHECK(here.plain.children(here.parent() + "/leases").children.empty());
    lab::wait_until([&] { return here.plain.children(here.parent() + "/locks").children.empty(); },
                    10s, "nobody stands in line");
}

TEST_CASE("kinds: Curator's word in the nodes of several permits leaves one holder") {
    Beside here("kinds-revoke-permits");
    const auto sem = here.lock(up_to(4));
    auto lease = sem->acquire({.wait = 10s, .permits = 3}).value();
    const auto folder = here.parent() + "/leases/";
    auto nodes = here.plain.children(here.parent() + "/leases").children;
    REQUIRE(nodes.size() == 3);
    std::sort(nodes.begin(), nodes.end(),
              [](auto& x, auto& y) { return x.substr(x.size() - 10) < y.substr(y.size() - 10); });
    const auto write = [&](std::size_t node) {
        CHECK(here.plain.set(folder + nodes.at(node), "__REVOKE__").rc == ZOK);
    };
    const auto whose = [&] {
        const auto seen = here.client.inspect(here.name).value();
        return seen.holders.size() == 1 && !seen.holders[0].foreign &&
               seen.holders[0].permits == 3 && seen.holders[0].owner == lease.owner_id();
    };
    // Nobody watches those behind the first, which says whose they are.
    write(1);
    write(2);
    CHECK(whose());
    REQUIRE(lease.renew().has_value());
    for (std::size_t i = 0; i < nodes.size(); ++i)
        write(i);
    lab::wait_until([&] { return lease.release_requested().stop_requested(); }, 10s, "asked");
    lab::wait_until(whose, 10s, "whose they are");
    CHECK(here.client.break_lock(here.name).value().size() == 1);
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "it is broken");
    CHECK(lease.lost_reason() == errc::revoked);
}

TEST_CASE("kinds: a holder of permits loses all with one") {
    Beside here("kinds-permit-loss", "2s");
    const auto sem = here.lock(up_to(6));
    const auto nodes = [&] {
        return here.plain.children(here.parent() + "/leases").children.size();
    };
    auto lease = sem->acquire({.wait = 10s, .permits = 3}).value();
    REQUIRE(lease.renew().has_value());
    // Somebody deletes the first of three: the others are no permits of anybody.
    auto all = here.plain.children(here.parent() + "/leases").children;
    const auto first = std::min_element(all.begin(), all.end(), [](auto& x, auto& y) {
        return x.substr(x.size() - 10) < y.substr(y.size() - 10);
    });
    here.gone(here.parent() + "/leases/" + *first);
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "it is lost");
    lab::wait_until([&] { return nodes() == 0; }, 10s, "nothing is left");
    auto now_all = sem->acquire({.wait = 10s, .permits = 6}).value();
    CHECK(here.client.break_lock(here.name, {.now = true}).value().size() == 1);
    CHECK(nodes() == 0);
}

TEST_CASE("kinds: a waiter whose permits somebody deletes waits on, and holds up nobody") {
    Beside here("kinds-permit-deleted");
    const auto sem = here.lock(up_to(2));
    auto first = sem->acquire({.wait = 10s, .permits = 2}).value();
    Waiter second(*sem, {}), third(*sem, {});
    const auto nodes = [&] { return here.plain.children(here.parent() + "/leases").children; };
    lab::wait_until([&] { return nodes().size() == 3; }, 10s, "the first waiter has a node there");
    const auto all = nodes();
    here.gone(here.parent() + "/leases/" +
              *std::max_element(all.begin(), all.end(), [](auto& x, auto& y) {
                  return x.substr(x.size() - 10) < y.substr(y.size() - 10);
              }));
    lab::wait_until([&] { return nodes().size() == 3; }, 10s, "the next one has one");
    first.release();
    second.lease().release();
    third.lease().release();
}

TEST_CASE("T1: kinds: a lost answer leaves no permits behind", "[T1]") {
    lab::Proxy proxy(server().port());
    const auto client = open("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) +
                             "?ttl=10s&tick_time=100ms&request_timeout=2s");
    ZooKeeperClient plain(server().connect_string());
    const std::string name = "kinds-lost-answer";
    const auto sem = lock_of(client, name, up_to(4));
    REQUIRE(sem->acquire({.wait = 10s, .permits = 3})->release() == hf::ReleaseResult::released);
    // Cut behind each of the first answers: of the place in line, of the permits, of what follows.
    for (std::uint64_t after = 0; after < 400; after += 80) {
        INFO(after << " bytes of answers");
        proxy.swallow_then_cut(lab::Direction::to_client, 1, after);
        auto lease = sem->acquire({.wait = 20s, .permits = 3});
        proxy.wait_fired();
        proxy.heal();
        REQUIRE(lease.has_value());
        CHECK(lock_of(client, name, up_to(4))->acquire({.wait = 0ms, .permits = 2}).error() ==
              errc::contended);
        lab::wait_until(
            [&] { return plain.children("/holdfast/" + name + "/leases").children.size() == 3; },
            20s, "its permits, and no others");
        lease->release();
        lab::wait_until(
            [&] { return plain.children("/holdfast/" + name + "/leases").children.empty(); }, 20s,
            "nothing is left");
    }
}

TEST_CASE("kinds: what the servers' sessions are too short for is refused") {
    const auto client = open(server().url() + "?ttl=10s&tick_time=100ms");
    hf::Diagnostics words;
    const auto lock = lock_of(client, "kinds-delay", {.lock_delay = 24h});
    const auto refused = lock->acquire({.wait = 5s, .diagnostics = &words});
    REQUIRE_FALSE(refused.has_value());
    CHECK(words.text().find("lock_delay of") != std::string::npos);
}
