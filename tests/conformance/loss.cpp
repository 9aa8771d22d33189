// Leases that end against their holder's will, and what is told about it.
#include <dirent.h>

#include <future>
#include <thread>

#include "stalls.hpp"
#include "suite.hpp"

using namespace suite;

namespace {

std::size_t entries_of(const char* folder) {
    std::size_t n = 0;
    DIR* d = ::opendir(folder);
    while (::readdir(d) != nullptr)
        ++n;
    ::closedir(d);
    return n;
}
std::size_t threads_now() {
    return entries_of("/proc/self/task");
}
std::size_t descriptors_now() {
    return entries_of("/proc/self/fd");
}

}  // namespace

TEST_CASE("renewal keeps a lease beyond its ttl; a fixed lease ends at it", "[basics][T6]") {
    const auto client = open();
    const auto kept_name = fresh_name("kept"), fixed_name = fresh_name("fixed");
    const auto kept = lock_of(client, kept_name, {.ttl = 2s});
    const auto fixed = lock_of(client, fixed_name, {.ttl = 1200ms, .renew = false});
    auto a = hold(*kept), b = hold(*fixed);
    const auto other = lock_of(open(), fixed_name);
    const test_support::Stalls stalls;
    std::atomic<long long> told_late{-1000};
    const auto until = b.valid_until();
    const std::stop_callback lost(b.lost(), [&] { told_late = ms(now() - until); });
    auto next = hold(*other);  // nobody else gets it before it is lost
    CHECK(now() >= until);
    CHECK_FALSE(b.valid());
    lab::wait_until([&] { return told_late > -1000; }, 5s, "lost() is told");
    CHECK(told_late >= 0);
    CHECK(told_late < patience * 100 + stalls.of_two());
    CHECK(b.lost_reason() == errc::lost);
    CHECK(b.renew().error() == errc::lost);
    if (has(Capability::previous_holder)) {
        const auto previous = next.previous_holder();
        CHECK(
            (previous == hf::PreviousHolder::crashed || previous == hf::PreviousHolder::abandoned));
    }
    CHECK(lab::stays_true([&] { return a.valid(); }, 2s));
    lab::wait_until([&] { return client.stats().renewals >= 4; }, 20s, "renewals go on");
    CHECK(a.valid());
    a.release();
    next.release();
    require_clean(kept_name);
    require_clean(fixed_name);
}

TEST_CASE("T5: after a loss the same Lock works, and the old lease frees nothing", "[T5]") {
    const auto client = open();
    const auto name = fresh_name("again");
    const auto lock = lock_of(client, name, {.ttl = 1200ms, .renew = false});
    auto old = hold(*lock);
    lab::wait_until([&] { return old.state() == hf::LeaseState::lost; }, 5s, "lost");
    const auto keeper = lock_of(client, name);
    auto fresh = hold(*keeper);
    CHECK(old.state() == hf::LeaseState::lost);
    CHECK(old.release() != hf::ReleaseResult::released);
    CHECK(fresh.renew().has_value());
    CHECK(fresh.valid());
    if (has(Capability::fencing)) CHECK(fresh.fencing_token() > old.fencing_token());
    old = {};
    CHECK(fresh.renew().has_value());
    fresh.release();
    require_clean(name);
}

TEST_CASE("T6: after release nothing is renewed, and after close nothing stays behind", "[T6]") {
    const auto name = fresh_name("quiet");
    const auto threads = threads_now();
    const auto descriptors = descriptors_now();
    {
        auto client = open("ttl=2s");
        const auto lock = lock_of(client, name);
        auto lease = hold(*lock);
        lab::wait_until([&] { return client.stats().renewals >= 1; }, 5s, "a renewal");
        lease.release();
        const auto before = client.stats();
        CHECK(lab::stays_true([&] { return client.stats().renewals == before.renewals; }, 800ms));
        CHECK(client.stats().held == 0);
        // cancelled while it waits
        const auto holder = lock_of(client, name);
        auto held = hold(*holder);
        std::stop_source stop;
        std::thread waiting(
            [&] { CHECK(lock->acquire({}, stop.get_token()).error() == errc::cancelled); });
        lab::wait_until([&] { return client.stats().waiting == 1; }, 5s, "it waits");
        stop.request_stop();
        waiting.join();
        held.release();
        require_clean(name);
        client.close();
        CHECK(lock->acquire().error() == errc::closed);
        CHECK(client.lock(name).error() == errc::closed);
        client.close();
    }
    CHECK(lab::reached([&] { return threads_now() <= threads; }, 5s));
    CHECK(lab::reached([&] { return descriptors_now() <= descriptors; }, 5s));
}

TEST_CASE("T29: a slow callback on lost() delays no other lease", "[T29]") {
    const auto client = open();
    const auto slow_name = fresh_name("slow"), quick_name = fresh_name("quick"),
               kept_name = fresh_name("kept");
    const auto slow = lock_of(client, slow_name, {.ttl = 1200ms, .renew = false});
    const auto quick = lock_of(client, quick_name, {.ttl = 1400ms, .renew = false});
    // Longer than a disk that is busy with others keeps a renewal.
    const auto kept = lock_of(client, kept_name, {.ttl = 3s});
    auto a = hold(*slow), b = hold(*quick), c = hold(*kept);
    std::promise<void> entered, leave;
    auto may_leave = leave.get_future();
    const test_support::Stalls stalls;
    std::atomic<long long> late{-1};
    const std::stop_callback blocks(a.lost(), [&] {
        entered.set_value();
        may_leave.wait();
    });
    const auto until = b.valid_until();
    const std::stop_callback told(b.lost(), [&] { late = ms(now() - until); });
    entered.get_future().wait();
    lab::wait_until([&] { return late >= 0; }, 5s, "the other is told while the first blocks");
    CHECK(late < patience * 150 + stalls.of_two());
    CHECK(lab::stays_true([&] { return c.valid(); }, 3500ms));
    CHECK(hold(*lock_of(client, fresh_name("grant"))).valid());
    leave.set_value();
}

TEST_CASE("T31: max_hold ends a lease whose process is alive and renews", "[T31]") {
    const auto client = open();
    const auto name = fresh_name("max-hold");
    const auto lock = lock_of(client, name, {.ttl = 2s, .max_hold = 3s});
    const auto start = now();
    auto lease = hold(*lock);
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "max_hold");
    CHECK(ms(now() - start) >= 2990);
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(lease.lost_reason().message() == "held for longer than max_hold");
    CHECK(client.stats().renewals >= 2);
    auto next = hold(*lock_of(open(), name));  // by the ttl: the work had time to stop
    CHECK(next.valid());
    CHECK(now() >= lease.valid_until());
    next.release();
    // without it, inspect says who and since when
    auto hung = hold(*lock);
    const auto seen = client.inspect(name);
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].pid == ::getpid());
    hung.release();
    require_clean(name);
}

TEST_CASE("T33: break revokes: told, never two holders; with `now` free at once", "[T33]") {
    const auto client = open();
    const auto name = fresh_name("break");
    const auto lock = lock_of(client, name, {.ttl = 2s});
    auto lease = hold(*lock);
    CHECK(client.break_lock(name, hf::FencingToken{lease.fencing_token().value + 1}).error() ==
          errc::not_held);
    CHECK(lease.renew().has_value());
    const auto broken = client.break_lock(name);
    REQUIRE(broken.has_value());
    CHECK(broken->holder.owner == lease.owner_id());
    CHECK(broken->free_in > 0ms);
    CHECK(broken->free_in <= 2s);
    CHECK(lock_of(client, name)->try_acquire().error() == errc::contended);
    auto next = hold(*lock_of(open(), name));
    CHECK_FALSE(lease.valid());
    CHECK(now() >= lease.valid_until());
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 5s, "the holder is told");
    CHECK(lease.lost_reason() == errc::revoked);
    next.release();
    require_clean(name);

    auto again = hold(*lock_of(client, name, {.ttl = 30s}));
    if (has(Capability::fencing))
        REQUIRE(client.break_lock(name, again.fencing_token(), true).has_value());
    else
        REQUIRE(client.break_lock(name, {}, true).has_value());
    auto taken = hold(*lock_of(open(), name), 2s);
    CHECK(taken.valid());
    const auto renewal = again.renew();
    CHECK(!renewal);
    CHECK((again.lost_reason() == errc::lost || again.lost_reason() == errc::revoked));
    taken.release();
    require_clean(name);
}

TEST_CASE("a key that vanished is a loss at the next renewal, and tokens go on", "[T27][T15]") {
    const auto name = fresh_name("vanished");
    const auto client = open();
    const auto lock = lock_of(client, name, {.ttl = 2s});
    auto lease = hold(*lock);
    const auto token = lease.fencing_token();
    wait_held_everywhere(name);
    if (!backend().erase_behind(name)) {
        CHECK(backend().name() == "memory");  // nobody can get behind its back
        return;
    }
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 5s, "the loss is told");
    CHECK(lease.lost_reason() == errc::lost);
    auto next = hold(*lock);
    if (has(Capability::fencing)) CHECK(next.fencing_token() > token);
    next.release();
    require_clean(name);
}

TEST_CASE("events tell the story in order, and stats count it", "[basics]") {
    using Kind = hf::Event::Kind;
    std::mutex mutex;
    std::vector<hf::Event> told;
    hf::ClientOptions options;
    options.events = [&](const hf::Event& e) {
        const std::lock_guard hold_it(mutex);
        told.push_back(e);
    };
    const auto name = fresh_name("events");
    {
        const auto client = open({}, options);
        const auto lock = lock_of(client, name, {.ttl = 1200ms, .renew = false});
        auto lease = hold(*lock);
        CHECK(client.stats().held == 1);
        lab::wait_until([&] { return client.stats().lost == 1; }, 5s, "lost");
        auto second = hold(*lock_of(client, name));
        second.release();
        CHECK(client.stats().acquired == 2);
        lab::wait_until(
            [&] {
                const std::lock_guard hold_it(mutex);
                return !told.empty() && told.back().kind == Kind::released;
            },
            5s, "the last event");
    }
    std::string story;
    for (const auto& e : told)
        if (e.kind != Kind::waiting && e.kind != Kind::warning && e.kind != Kind::at_risk &&
            e.kind != Kind::recovered)  // what the way to the server adds
            story += std::string(to_string(e.kind)) + ' ';
    CHECK(story == "acquired lost acquired released ");
}
