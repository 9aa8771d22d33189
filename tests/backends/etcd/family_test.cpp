// Readers, writers and permits at real servers: what the keys are, who is woken, what is left over,
// and what other clients and operators do among them.
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/process.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <thread>

#include "catch.hpp"
#include "client.hpp"
#include "waiter.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using hf::ReleaseResult;
using namespace std::chrono_literals;
using test_support::holders_of;
using test_support::waiters_of;

namespace {

const hf::LockOptions readers_and_writers{.ttl = 60s, .kind = hf::Kind::shared_mutex};
const hf::AcquireOptions reading{.wait = 180s, .mode = hf::Mode::shared};
const hf::AcquireOptions writing{.wait = 180s};

hf::LockOptions permits_of(std::uint32_t limit) {
    return {.ttl = 60s, .kind = hf::Kind::semaphore, .limit = limit};
}

/// One server and a client of it; others have theirs.
struct Family {
    lab::EtcdServers server = lab::EtcdServers::start({});
    hf::Client client = open();
    /// One more client. No test here is about a server that does not answer.
    hf::Client open() const {
        return hf::Client::open(server.url() + "?request_timeout=20s").value();
    }
    std::unique_ptr<hf::Lock> lock = client.make_lock("it", readers_and_writers).value();
    std::unique_ptr<hf::Lock> of(const hf::LockOptions& options) {
        return client.make_lock("it", options).value();
    }
    auto waiters() { return waiters_of(client, "it"); }
    auto holders() { return holders_of(client, "it"); }
    /// Everything below the path, keys only.
    /// Without the records of breaks, which end after a day.
    std::string keys() const {
        constexpr std::string_view record = "/holdfast/%revoked/it\n\n";
        std::string all = server.ctl({"get", "--prefix", "--keys-only", "/"});
        if (const auto at = all.find(record); at != all.npos) all.erase(at, record.size());
        return all;
    }
    std::string key_of(const hf::Lease& lease) const {
        return "/holdfast/it/" + std::string(lease.owner_id());
    }
    std::string value_of(const hf::Lease& lease) const {
        auto text = server.ctl({"get", "--print-value-only", key_of(lease)});
        while (text.ends_with('\n'))
            text.pop_back();
        return text;
    }
};

/// A client, and a lock of it.
struct OwnLock {
    OwnLock(hf::Client c, const hf::LockOptions& kind)
        : client(std::move(c)), lock(client.make_lock("it", kind).value()) {}
    hf::Client client;
    std::unique_ptr<hf::Lock> lock;
};

/// Waits in line, with a client of its own.
class InLine : OwnLock, public test_support::Waiter {
public:
    InLine(Family& f, const hf::LockOptions& kind, const hf::AcquireOptions& options)
        : InLine(f, f.open(), kind, options) {}
    InLine(Family& f, hf::Client own, const hf::LockOptions& kind,
           const hf::AcquireOptions& options)
        : InLine(f, f.waiters().value(), std::move(own), kind, options) {}
    std::uint64_t requests() const { return client.stats().requests; }

private:
    InLine(Family& f, std::size_t before, hf::Client own, const hf::LockOptions& kind,
           const hf::AcquireOptions& options)
        : OwnLock(std::move(own), kind), Waiter(*lock, options) {
        lab::wait_until([&] { return f.waiters() > before; }, 20s, "it is in line");
    }
};

}  // namespace

TEST_CASE("family: what stands in the keys, and nothing when all have left") {
    Family f;
    {
        auto writer = f.lock->acquire().value();
        CHECK(f.value_of(writer) == "hf1 " + std::string(writer.owner_id()));
        REQUIRE(writer.downgrade().has_value());
        CHECK(f.value_of(writer) == "hf1s " + std::string(writer.owner_id()));
        auto reader = f.lock->try_acquire_shared().value();
        CHECK(f.value_of(reader) == "hf1s " + std::string(reader.owner_id()));
        REQUIRE(f.client.request_release("it").has_value());
        CHECK(f.value_of(reader) == "hf1s? " + std::string(reader.owner_id()));
        REQUIRE(f.client.break_lock("it", {.owner = std::string(reader.owner_id())}).has_value());
        CHECK(f.value_of(reader) == "hf1s! " + std::string(reader.owner_id()));
        CHECK(reader.renew().error() == errc::revoked);
        CHECK(writer.release() == ReleaseResult::released);
        f.client.break_lock("it", {.now = true}).value();
    }
    {
        hf::LockOptions delayed = readers_and_writers;
        delayed.lock_delay = std::chrono::minutes(3);
        auto reader = f.of(delayed)->try_acquire_shared().value();
        CHECK(f.value_of(reader) == "hf1sd180000 " + std::string(reader.owner_id()));
        CHECK(*f.client.inspect("it").value().holders.front().ttl_left <= 61s);
        // The delay is not over earlier.
        CHECK(f.client.break_lock("it").value().front().free_in > 180s);
        f.client.break_lock("it", {.now = true}).value();
    }
    {
        auto three = f.of(permits_of(5))->acquire({.permits = 3}).value();
        CHECK(f.value_of(three) == "hf1p5:3 " + std::string(three.owner_id()));
        CHECK(f.server.ctl({"get", "--print-value-only", "/holdfast/it"}) == "hf1p\n");
        auto one = f.of(permits_of(5))->acquire().value();
        three.release();
        CHECK(f.keys().find("/holdfast/it\n") != std::string::npos);
        one.release();
    }
    CHECK(f.keys().empty());
    {
        // They leave in one request.
        std::vector<hf::Lease> several;
        for (int i = 0; i < 4; ++i)
            several.push_back(f.of(permits_of(5))->acquire().value());
        std::atomic<int> released{0};
        for (auto& lease : several)
            lease.async_release([&](hf::error_code, ReleaseResult r) {
                if (r == ReleaseResult::released) ++released;
            });
        lab::wait_until([&] { return released == 4; }, 10s, "all are released");
        CHECK(f.keys().empty());
        for (auto& lease : several)
            lease = f.of(permits_of(5))->acquire().value();
        CHECK(f.client.break_lock("it", {.now = true}).value().size() == 4);
        CHECK(f.keys().empty());
    }
}

TEST_CASE("family: a run of readers is granted together, and its writers are left asleep") {
    Family f;
    constexpr std::size_t many = 300;
    std::atomic<std::size_t> reads{0}, writes{0};
    std::vector<hf::Lease> leases(many);
    auto held = f.lock->acquire().value();
    const auto readers = f.open(), writers = f.open();
    const auto read = readers.make_lock("it", readers_and_writers).value(),
               write = writers.make_lock("it", readers_and_writers).value();
    for (auto& lease : leases)
        read->async_acquire(reading, [&](hf::error_code ec, hf::Lease l) {
            lease = std::move(l);
            if (!ec) ++reads;
        });
    lab::wait_until([&] { return f.waiters() == many; }, 120s, "readers wait");
    for (int i = 0; i < 20; ++i)
        write->async_acquire(writing, [&](hf::error_code, hf::Lease l) {
            ++writes;
            l.release();
        });
    lab::wait_until([&] { return f.waiters() == many + 20; }, 60s, "writers wait");
    const auto attempts = writers.stats().attempts, requests = readers.stats().requests;
    const auto looks = [&] { return writers.stats().attempts - attempts; };
    CHECK(held.release() == ReleaseResult::released);
    lab::wait_until([&] { return reads == many; }, 30s, "all readers are granted");
    CHECK(writes == 0);
    // A request for 32 of them, a lease now and then, and looks that found nothing.
    CHECK(readers.stats().requests - requests < many / 4);
    // Nobody woke a writer: all that they do is to look once a second.
    const auto before = looks();
    CHECK(lab::stays_true([&] { return looks() <= before + 20; }, 500ms));
    CHECK(holders_of(f.client, "it") == many);
    for (auto& lease : leases)
        lease.release();
    lab::wait_until([&] { return writes == 20; }, 30s, "all writers have had it");
    CHECK(f.keys().empty());
}

TEST_CASE("family: a writer that has become a reader and dies leaves the next writer") {
    Family f;
    auto w = f.lock->acquire().value();
    InLine reader(f, readers_and_writers, reading), next(f, readers_and_writers, writing);
    REQUIRE(w.downgrade().has_value());
    auto r = reader.lease();
    f.server.ctl({"del", f.key_of(w)});
    CHECK(w.renew().error() == errc::lost);
    CHECK_FALSE(next.done());
    r.release();
    next.lease().release();
}

TEST_CASE("family: what the watch missed is found out, by readers and permits too") {
    Family f;
    for (const bool counts : {false, true}) {
        const auto kind = counts ? permits_of(2) : readers_and_writers;
        const auto mode = counts ? hf::AcquireOptions{.wait = 60s, .permits = 2} : reading;
        auto held = f.of(kind)->acquire({.permits = counts ? 2U : 1U}).value();
        InLine behind(f, kind, mode);
        f.server.compact();
        f.server.restart_all();
        held.release();
        behind.lease().release();
        lab::wait_until([&] { return f.keys().empty(); }, 10s, "nothing is left");
    }
}

TEST_CASE("family: the marker of permits whose holders died is in nobody's way") {
    Family f;
    const auto leave_marker = [&] {
        auto dead = f.of(permits_of(5))->acquire().value();
        f.server.ctl({"del", f.key_of(dead)});
        CHECK(dead.release() != ReleaseResult::released);
        REQUIRE(f.keys() == "/holdfast/it\n\n");
    };
    for (const hf::LockOptions& kind :
         {hf::LockOptions{}, readers_and_writers, permits_of(5), permits_of(3)}) {
        leave_marker();
        CHECK(holders_of(f.client, "it") == 0U);
        CHECK(f.client.list().value().empty());
        CHECK(f.of(kind)->try_acquire().value().release() == ReleaseResult::released);
        CHECK(f.keys().empty());
    }
    leave_marker();
    CHECK(f.lock->try_acquire_shared().value().release() == ReleaseResult::released);
    // Several that come at once: none takes it for a reason to refuse.
    leave_marker();
    std::vector<std::thread> threads;
    std::atomic<int> refused{0};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto client = f.open();
            if (!client.make_lock("it").value()->acquire({.wait = 20s})) ++refused;
        });
    for (auto& t : threads)
        t.join();
    CHECK(refused == 0);
}

TEST_CASE("family: who waits while holders are broken or asked is neither") {
    Family f;
    std::vector<hf::Lease> held;
    for (int i = 0; i < 40; ++i)  // more than fit in one request
        held.push_back(f.lock->try_acquire_shared().value());
    InLine writer(f, readers_and_writers, writing), reader(f, readers_and_writers, reading);
    CHECK(f.client.request_release("it").value().size() == 40);
    CHECK(f.client.break_lock("it", {.now = true}).value().size() == 40);
    auto w = writer.lease();
    CHECK(w.renew().has_value());
    CHECK_FALSE(w.release_requested().stop_requested());
    CHECK(f.client.break_lock("it", {.now = true}).value().size() == 1);
    auto r = reader.lease();
    CHECK(r.renew().has_value());
    CHECK(r.release() == ReleaseResult::released);
}

TEST_CASE("family: who waited for it hears of a request at once, others with their renewal") {
    Family f;
    auto first = f.lock->acquire().value();
    InLine second(f, readers_and_writers, writing);
    first.release();
    auto waited = second.lease();
    CHECK(f.client.request_release("it", {.if_token = first.fencing_token()}).error() ==
          errc::not_held);
    CHECK(f.client.request_release("it", {.if_token = waited.fencing_token()}).value().size() == 1);
    CHECK(f.client.request_release("it").value().size() == 1);  // again: nothing new
    lab::wait_until([&] { return waited.release_requested().stop_requested(); }, 10s,
                    "the watch has told, long before its renewal");
    CHECK(waited.renew().has_value());
    CHECK(waited.downgrade().has_value());
    CHECK(f.client.inspect("it").value().holders.at(0).asked);
    CHECK(waited.release() == ReleaseResult::released);
    auto at_once = f.lock->acquire().value();
    CHECK(f.client.request_release("it").value().front().asked);
    CHECK(at_once.renew().has_value());
    CHECK(at_once.release_requested().stop_requested());
    CHECK(f.client.break_lock("it").value().front().holder.revoked);
    CHECK(f.client.request_release("it").value().front().revoked);  // it holds until its end
}

TEST_CASE("family: etcdctl lock stands in line among readers, and keeps permits away") {
    Family f;
    lab::TempDir folder;
    const auto etcdctl = [&](std::vector<std::string> command) {
        lab::ProcessOptions o;
        o.argv = {"env",  "ETCDCTL_API=3", "etcdctl", "--endpoints", f.server.endpoints(),
                  "lock", "/holdfast/it"};
        o.argv.insert(o.argv.end(), command.begin(), command.end());
        o.package = "etcd-client";
        o.log = folder / "log";
        return std::make_unique<lab::Process>(o);
    };
    auto a = f.lock->try_acquire_shared().value(), b = f.lock->try_acquire_shared().value();
    auto theirs = etcdctl({});
    lab::wait_until([&] { return f.waiters() == 1; }, 10s, "it waits for the readers");
    InLine behind(f, readers_and_writers, reading);
    a.release();
    CHECK(theirs->alive());
    CHECK(f.holders() == 1);
    b.release();
    lab::wait_until(
        [&] {
            const auto seen = f.client.inspect("it");
            return seen && !seen->holders.empty() && seen->holders[0].foreign;
        },
        10s, "it holds");
    CHECK_FALSE(behind.done());
    CHECK(f.client.request_release("it").error() == errc::not_supported);
    CHECK(f.of(permits_of(2))->try_acquire().error() == errc::kind_mismatch);
    theirs->signal(SIGTERM);
    auto reader = behind.lease();
    reader.release();
    auto permit = f.of(permits_of(2))->acquire({.wait = 10s}).value();
    theirs = etcdctl({"true"});
    lab::wait_until([&] { return f.waiters() == 1; }, 10s, "it waits for the permit");
    CHECK(permit.release() == ReleaseResult::released);
    CHECK(theirs->wait(20s)->code == 0);
}
