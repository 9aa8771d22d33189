// Leases that end against their holder's will, and what is told about it.
#include <future>
#include <thread>

#include "after_break.hpp"
#include "suite.hpp"

using namespace suite;

TEST_CASE("renewal keeps a lease beyond its ttl; a fixed lease ends at it", "[basics][T6][races]") {
    Trial& trial = this_trial();
    const auto client = open();
    const auto kept_name = fresh_name("kept"), fixed_name = fresh_name("fixed");
    const auto kept = lock_of(client, kept_name, {.ttl = 2s});
    const auto fixed = lock_of(client, fixed_name, {.ttl = 1200ms, .renew = false});
    auto a = hold(*kept), b = hold(*fixed);
    const auto other = lock_of(open(), fixed_name);
    std::atomic<long long> told_late{-1000};
    const auto until = b.valid_until();
    const std::stop_callback lost(b.lost(), [&] { told_late = ms(now() - until); });
    auto next = hold(*other);  // nobody else gets it before it is lost
    CHECK(now() >= until);
    CHECK_FALSE(b.valid());
    lab::wait_until([&] { return told_late > -1000; }, 5s, "lost() is told");
    CHECK(told_late >= 0);
    trial.within(hf::milliseconds(told_late), 100ms, "lost(), from the lease's end");
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

TEST_CASE("T6: after release nothing is renewed, and after close nothing stays behind",
          "[T6][races]") {
    const auto name = fresh_name("quiet");
    const auto threads = threads_now();
    const auto descriptors = descriptors_now();
    {
        // What is sent tells more than the client's own count. ZooKeeper's paths have no "suite/".
        auto* proxy = backend().proxy();
        const auto speaks_of_it = [&] {
            return proxy != nullptr &&
                   proxy->recorded(lab::Direction::to_server).find(name.substr(6)) !=
                       std::string::npos;
        };
        auto client = proxy == nullptr ? open("ttl=2s") : open_proxied("ttl=2s");
        const auto lock = lock_of(client, name);
        auto lease = hold(*lock);
        lab::wait_until([&] { return client.stats().renewals >= 1; }, 5s, "a renewal");
        if (proxy != nullptr) proxy->record();
        const auto renewals = client.stats().renewals;
        lab::wait_until([&] { return client.stats().renewals > renewals; }, 5s, "another");
        CHECK((proxy == nullptr || backend().renews_sessions() || speaks_of_it()));
        lease.release();
        if (proxy != nullptr) proxy->record();
        const auto before = client.stats();
        CHECK(lab::stays_true([&] { return client.stats().renewals == before.renewals; }, 800ms));
        CHECK_FALSE(speaks_of_it());
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
        CHECK(client.make_lock(name).error() == errc::closed);
        client.close();
    }
    CHECK(lab::reached([&] { return threads_now() <= threads; }, 5s));
    CHECK(lab::reached([&] { return descriptors_now() <= descriptors; }, 5s));
}

TEST_CASE("T29: a slow callback on lost() delays no other lease", "[T29][races]") {
    Trial& trial = this_trial();
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
    std::atomic<long long> late{-1};
    const std::stop_callback blocks(a.lost(), [&] {
        entered.set_value();
        may_leave.wait();
    });
    const auto until = b.valid_until();
    const std::stop_callback told(b.lost(), [&] { late = ms(now() - until); });
    entered.get_future().wait();
    const bool other_told = lab::reached([&] { return late >= 0; }, 5s);
    if (!other_told) leave.set_value();  // or the failure would wait for the callback
    REQUIRE(other_told);
    trial.within(hf::milliseconds(late), 150ms, "lost() beside a callback that blocks");
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

namespace {

/// Who broke it: seen by another client. A Redis server in plain mode has no room for it.
void check_record(const std::string& name, const hf::Lease& lease, std::string_view note,
                  bool at_once) {
    const auto seen = open().inspect(name);
    REQUIRE(seen.has_value());
    const auto& record = seen->last_break;
    if (!record && !has(Capability::fencing)) return;
    REQUIRE(record.has_value());
    CHECK(record->owner == lease.owner_id());
    if (has(Capability::fencing)) CHECK(record->token == lease.fencing_token());
    CHECK(record->pid == ::getpid());
    CHECK_FALSE(record->host.empty());
    if (note.empty())
        CHECK_FALSE(record->note.empty());  // the user's name
    else
        CHECK(record->note == note);
    CHECK(record->now == at_once);
    CHECK(std::chrono::system_clock::now() - record->at < 60s);
    CHECK(std::chrono::system_clock::now() >= record->at);
}

}  // namespace

TEST_CASE("T33: break revokes: told, never two holders; with `now` free at once", "[T33][races]") {
    const auto client = open();
    const auto name = fresh_name("break");
    const auto lock = lock_of(client, name, {.ttl = 2s});
    auto lease = hold(*lock);
    CHECK(client.break_lock(name, {.if_token = {{lease.fencing_token().value + 1}}}).error() ==
          errc::not_held);
    CHECK(lease.renew().has_value());
    CHECK_FALSE(client.inspect(name).value().last_break);
    const auto broken = client.break_lock(name, {.note = "on call"});
    REQUIRE(broken.has_value());
    CHECK(broken->front().holder.owner == lease.owner_id());
    check_record(name, lease, "on call", false);
    CHECK(broken->front().free_in > 0ms);
    CHECK(broken->front().free_in <= 2s);
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
        REQUIRE(
            client.break_lock(name, {.if_token = again.fencing_token(), .now = true}).has_value());
    else
        REQUIRE(client.break_lock(name, {.now = true}).has_value());
    check_record(name, again, {}, true);
    auto taken = hold(*lock_of(open(), name), 2s);
    CHECK(taken.valid());
    const auto renewal = again.renew();
    CHECK(!renewal);
    CHECK(again.lost_reason() == after_break().lost_reason);
    taken.release();
    require_clean(name);
}

TEST_CASE("T33: after a break with `now` the broken holder and the next one hear what it was",
          "[T33]") {
    const auto client = open(), other = open();
    for (const hf::Mode mode : {hf::Mode::exclusive, hf::Mode::shared}) {
        const bool reads = mode == hf::Mode::shared;
        if (reads && !has(Capability::shared)) continue;
        hf::LockOptions options{.ttl = 30s};
        if (reads) options.kind = hf::Kind::shared_mutex;
        for (const bool renews : {true, false}) {
            INFO((reads ? "a reader" : "a mutex") << (renews ? " renews" : " releases"));
            const auto name = fresh_name("after-break");
            auto lease = lock_of(client, name, options)->acquire({.wait = 10s, .mode = mode});
            REQUIRE(lease.has_value());
            wait_held_everywhere(*lease);
            REQUIRE(other.break_lock(name, {.now = true}).has_value());
            if (renews) {
                CHECK_FALSE(lease->renew().has_value());
                CHECK(lease->lost_reason() == after_break().lost_reason);
            } else {
                CHECK(lease->release() == after_break().release);
            }
            auto next = hold(*lock_of(other, name, options));
            const auto told = reads ? after_break().after_reader : hf::PreviousHolder::crashed;
            CHECK(next.previous_holder() ==
                  (has(Capability::previous_holder) ? told : hf::PreviousHolder::unknown));
            next.release();
            require_clean(name);
        }
    }
}

TEST_CASE("T33: break revokes a holder that is cut off, and never makes two", "[T33]") {
    auto* proxy = backend().proxy();
    if (proxy == nullptr) return;
    const auto name = fresh_name("break-cut-off");
    const auto client = open_proxied("ttl=3s");
    auto lease = hold(*lock_of(client, name));
    proxy->black_hole();
    const auto operators = open();
    REQUIRE(operators.break_lock(name).has_value());
    auto next = hold(*lock_of(operators, name));
    CHECK(now() >= lease.valid_until());
    CHECK_FALSE(lease.valid());
    CHECK(next.valid());
    const bool told = lab::reached([&] { return lease.lost().stop_requested(); }, 5s);
    proxy->heal();
    CHECK(told);
    CHECK((lease.lost_reason() == errc::lost || lease.lost_reason() == errc::revoked));
    CHECK(next.renew().has_value());
    next.release();
    require_clean(name);
}

TEST_CASE("a key that vanished is a loss at the next renewal, and tokens go on", "[T27][T15]") {
    const auto name = fresh_name("vanished");
    const auto client = open();
    const auto lock = lock_of(client, name, {.ttl = 2s});
    auto lease = hold(*lock);
    const auto token = lease.fencing_token();
    wait_held_everywhere(lease);
    if (!backend().erase_behind(name)) return;  // nobody can get behind its back
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 5s, "the loss is told");
    CHECK(lease.lost_reason() == errc::lost);
    auto next = hold(*lock);
    if (has(Capability::fencing)) CHECK(next.fencing_token() > token);
    next.release();
    require_clean(name);
}

TEST_CASE("events tell the story in order, and stats count it", "[basics][races]") {
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
