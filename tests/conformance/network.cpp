// What a network and a server can do to a request. Only backends with a network have these faults;
// for the others tests/conformance/blank.txt says why the cell is empty.
#include <future>
#include <iostream>
#include <limits>
#include <random>
#include <thread>

#include "heard.hpp"
#include "suite.hpp"

using namespace suite;
using lab::Direction;

namespace {

/// No answer, or none of a majority.
bool unreachable(const hf::error_code& ec) {
    return ec == errc::unavailable || ec == errc::no_quorum;
}

Proxies* proxy_or_none() {
    return backend().proxy();
}

/// One exchange that is cut at a position, on a client whose connections are warm.
struct Exchange {
    std::string what;
    std::function<void(hf::Client&, const std::string&name)> prepare, run;
};

/// Cuts at each byte of what a blocking caller sends and is sent, or at `most` of a longer
/// exchange; of the other ways' at one in `others`. From a byte on that differs from run to run.
void cut_everywhere(std::size_t others, std::size_t most) {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("cut");
    const auto watcher = open();
    std::size_t positions = 0;
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);

    for (const std::string way : {"on a lane", "on the engine"})
        for (const std::string what : {"acquire", "renew", "release"})
            for (const Direction direction : {Direction::to_server, Direction::to_client}) {
                // A long ttl: no renewal but those that are asked for falls into an exchange. What
                // is cut is known at once; only a machine that stands still needs a time-out.
                auto client = open_proxied("ttl=60s&request_timeout=20s");
                const auto lock = lock_of(client, name);
                const auto acquire = [&]() -> hf::result<hf::Lease> {
                    if (way == "on a lane") return lock->acquire({.wait = 5s});
                    std::promise<std::pair<hf::error_code, hf::Lease>> got;
                    const auto handler = [&](hf::error_code ec, hf::Lease l) {
                        got.set_value({ec, std::move(l)});
                    };
                    lock->async_acquire({.wait = 5s}, handler);
                    auto [ec, lease] = got.get_future().get();
                    if (ec) return ec;
                    return std::move(lease);
                };
                const auto release = [&](hf::Lease& lease) {
                    if (way == "on a lane") return lease.release();
                    std::promise<hf::ReleaseResult> got;
                    const auto handler = [&](hf::error_code, hf::ReleaseResult r) {
                        got.set_value(r);
                    };
                    lease.async_release(hf::Outcome::done, handler);
                    return got.get_future().get();
                };
                // The size of one exchange on warm connections: the least of three, since a
                // heartbeat may fall into one of them.
                const auto measure = [&] {
                    for (int i = 0; i < 2; ++i) {
                        auto warm = acquire();
                        REQUIRE(warm.has_value());
                        REQUIRE(warm->renew().has_value());
                        release(*warm);
                    }
                    if (what == "acquire") proxy->record();
                    auto lease = acquire();
                    REQUIRE(lease.has_value());
                    const auto acquired = proxy->recorded(direction).size();
                    if (what == "renew") proxy->record();
                    if (what != "release") REQUIRE(lease->renew().has_value());
                    if (what == "renew") return proxy->recorded(direction).size();
                    if (what == "release") proxy->record();
                    release(*lease);
                    return what == "acquire" ? acquired : proxy->recorded(direction).size();
                };
                const auto size = std::min({measure(), measure(), measure()});
                const std::size_t step = (size / most + 1) * (way == "on a lane" ? 1 : others);
                for (std::size_t n = random() % step; n < size; n += step) {
                    INFO(what << ' ' << way << ", cut after " << n << " of " << size << " bytes "
                              << (direction == Direction::to_server ? "to the server"
                                                                    : "to the client"));
                    const auto cut = [&] { proxy->cut_after(direction, n); };
                    if (what == "acquire") cut();
                    auto lease = acquire();
                    REQUIRE(lease.has_value());  // resolved: found again or tried again
                    REQUIRE(lease->valid());
                    if (what == "renew") {
                        cut();
                        (void)lease->renew();
                        REQUIRE(lease->valid());
                    }
                    if (what == "release") cut();
                    const auto answer = release(*lease);
                    REQUIRE(answer == hf::ReleaseResult::released);
                    // A cut that the exchange did not reach proves nothing. Lengths vary by a few
                    // bytes with the numbers in an answer, and by what the server asks in between;
                    // further from the end each cut must take effect.
                    const bool took_effect = proxy->fired();
                    if (n + 8 + backend().asked_between() < size) REQUIRE(took_effect);
                    proxy->heal();
                    const auto nothing_left = [&] {
                        const auto seen = watcher.inspect(name);
                        return seen && seen->holders.empty() && seen->waiters.empty();
                    };
                    REQUIRE((nothing_left() ||
                             (backend().reads_lag() && lab::reached(nothing_left, 1s))));
                    positions += took_effect ? 1 : 0;
                }
                // Not at a single node, either. A client that is closed gives back what it still
                // owes for a moment only.
                require_clean(name);
            }
    std::cout << backend().name() << ": T1 cut at " << positions << " positions, seed " << seed
              << "\n";
    CHECK(positions > 300);
}

/// A message of an acquisition, and what is so before it is sent.
struct Boundary {
    const char* message;
    bool held, released;
    Direction direction;
};

/// Cancels an acquisition while that message is on its way. False, unless this is the last try: it
/// was granted before.
bool cancelled_at(Proxies& proxy, const std::string& name, const Boundary& at, bool last) {
    // A blocking caller may be at its own request, for the request's time and not longer.
    const auto client = open_proxied("ttl=60s&request_timeout=3s");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 3; ++i)
        hold(*lock).release(hf::Outcome::abandoned);  // its connections are there
    const auto others = open("ttl=60s");
    hf::Lease holder;
    if (at.held) holder = hold(*lock_of(others, name));
    const auto attempts = client.stats().attempts;
    const auto before = proxy.counters().delayed;
    // Held back until it is healed.
    const auto hold_back = [&] { proxy.delay(at.direction, 30s); };
    if (!at.released) hold_back();
    std::stop_source stop;
    auto asked = std::async(std::launch::async,
                            [&] { return lock->acquire({.wait = 20s}, stop.get_token()); });
    if (at.released) {
        // Where one request is all that a free lock costs, it has been answered that it is not.
        const bool answered = backend().grants_by_one_request();
        CHECK(lab::reached(
            [&] {
                return client.stats().attempts > attempts && (!answered || waiters_of(name) == 1);
            },
            5s));
        hold_back();
        holder.release();
    }
    const bool on_its_way = lab::reached([&] { return proxy.counters().delayed > before; }, 5s);
    stop.request_stop();
    const bool at_once = asked.wait_for(5s) == std::future_status::ready;
    proxy.heal();
    const auto got = asked.get();
    if (!on_its_way && got && !last) return false;
    CHECK(on_its_way);
    CHECK(at_once);  // who cancels waits for no more than one request
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error() == errc::cancelled);
    holder.release();
    require_clean(name);
    // What was granted and never used is no holder of which the next one is told.
    auto next = hold(*lock_of(others, name));
    if (has(Capability::previous_holder))
        CHECK(next.previous_holder() ==
              (at.held ? hf::PreviousHolder::released : hf::PreviousHolder::abandoned));
    next.release();
    return true;
}

}  // namespace

TEST_CASE("T1: a connection cut anywhere in acquire, renew and release", "[T1]") {
    cut_everywhere(7, 400);
}

TEST_CASE("T1: the same at every byte, in every way to ask", "[.][long]") {
    cut_everywhere(1, std::numeric_limits<std::size_t>::max());
}

TEST_CASE("T9: an acquire that fails leaves nothing, wherever it is cut off", "[T9][races]") {
    auto* proxy = proxy_or_none();
    const auto name = fresh_name("cancel");
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    // What is left behind outlives the test.
    const std::string query = "ttl=60s&request_timeout=10s";
    const auto client = proxy == nullptr ? open(query) : open_proxied(query);
    const auto lock = lock_of(client, name);
    int cancelled = 0, granted = 0;
    // Cancellation at random moments around the grant, the holder letting go meanwhile.
    for (int i = 0; i < 60; ++i) {
        INFO("round " << i);
        auto holder = hold(*lock_of(client, name));
        std::stop_source stop;
        hf::result<hf::Lease> got = hf::Lease();
        std::thread waiting([&] { got = lock->acquire({.wait = 5s}, stop.get_token()); });
        const auto pause = std::chrono::microseconds(random() % 3000);
        std::thread releasing([&] { holder.release(); });
        const auto until = now() + pause;
        while (now() < until) {
        }
        stop.request_stop();
        waiting.join();
        releasing.join();
        if (got) {
            ++granted;
            CHECK(got->valid());
            got->release();
        } else {
            ++cancelled;
            CHECK(got.error() == errc::cancelled);
        }
        require_clean(name);  // after each of them
    }
    std::cout << backend().name() << ": T9 seed " << seed << ": " << cancelled << " cancelled, "
              << granted << " granted\n";
    CHECK(cancelled > 0);
    if (proxy == nullptr) return;
    // The answer is swallowed and the caller's wait ends: a grant may be at the server.
    // The time of a request has to do for a new connection on a busy machine, too.
    for (int i = 0; i < 8; ++i) {
        const auto fresh = open_proxied("request_timeout=500ms&ttl=60s");
        const auto victim = lock_of(fresh, name);
        // A machine that stalls for as long as this request may last needs more than one.
        lab::wait_until(
            [&] {
                auto lease = victim->acquire({.wait = 5s});
                return lease && lease->release() == hf::ReleaseResult::released;
            },
            20s, "it is connected");
        const auto before = proxy->counters().swallowed_to_client;
        proxy->swallow(Direction::to_client);
        const auto failed = victim->acquire({.wait = 550ms});
        CHECK_FALSE(failed.has_value());
        lab::wait_until([&] { return proxy->counters().swallowed_to_client > before; }, 5s,
                        "the fault to take effect");
        proxy->heal();
        require_clean(name);
    }
}

TEST_CASE("T9: cancelled while a message of it is on its way, an acquire leaves nothing",
          "[T9][races]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("boundary");
    for (const Boundary& at :
         {Boundary{"the request for a free lock", false, false, Direction::to_server},
          Boundary{"the grant", false, false, Direction::to_client},
          Boundary{"the request for a held lock", true, false, Direction::to_server},
          Boundary{"the answer that it is held", true, false, Direction::to_client},
          Boundary{"the word that it is free", true, true, Direction::to_client},
          Boundary{"what follows that word", true, true, Direction::to_server}}) {
        INFO(at.message);
        // Granted before that message was on its way: this run shows nothing, and is made again.
        for (int left = 3; !cancelled_at(*proxy, name, at, left == 1); --left) {
        }
    }
}

TEST_CASE("T3: in a black hole lost() comes in time and every wait is bounded", "[T3][races]") {
    Trial& trial = this_trial();
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("hole");
    constexpr auto ttl = 2500ms;
    const auto client = open_proxied("ttl=2500ms");
    const auto lock = lock_of(client, name);
    auto lease = hold(*lock);
    std::atomic<long long> late{-100000};
    const auto other = lock_of(client, fresh_name("hole-other"));
    proxy->black_hole();
    const std::stop_callback lost(lease.lost(), [&] { late = ms(now() - lease.valid_until()); });
    const auto start = now();
    const auto failed = other->acquire({.wait = 300ms});
    CHECK_FALSE(failed.has_value());
    CHECK((unreachable(failed.error()) || failed.error() == errc::in_doubt));
    trial.within(now() - start, 600ms, "the end of a wait of 300 ms");
    lab::wait_until([&] { return late > -100000; }, 10s, "lost() in spite of the hole");
    CHECK(late >= 0);
    trial.within(hf::milliseconds(late), 150ms, "lost(), from the lease's end");
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(proxy->counters().stalled > 0);  // bytes did arrive and wait
    proxy->heal();
    // A ZooKeeper follower answers one of two connections that resume a session. The other one may
    // be ours, next to one that was given up in the hole; it is given up after two thirds of its
    // time.
    require_clean(name, backend().reads_lag() ? 1000ms + ttl * 2 / 3 : 1000ms);
    CHECK(hold(*lock).valid());  // and the same client works again
}

TEST_CASE("T4: a place in line that vanished is taken anew until the deadline", "[T4]") {
    if (!backend().restartable()) return;
    const auto name = fresh_name("place");
    auto holder = hold(*lock_of(open(), name, {.ttl = 3s}));
    // Three servers elect a leader before they answer again.
    test_support::Heard heard;
    hf::ClientOptions options;
    options.events = heard.sink();
    const auto client = open(backend().waits_for_late_answers(), options);
    hf::result<hf::Lease> got = hf::Lease();
    hf::Diagnostics words;
    std::thread waiting(
        [&] { got = lock_of(client, name)->acquire({.wait = 60s, .diagnostics = &words}); });
    lab::wait_until([&] { return heard.waits(); }, cap(10s), "it waits, and was told so");
    // The holder's key and the queue are gone.
    REQUIRE(backend().restart_server(lab::Data::fresh));
    waiting.join();
    INFO((got ? std::string() : got.error().message()) << ' ' << words.text());
    REQUIRE(got.has_value());
    CHECK(got->valid());
    lab::wait_until([&] { return !holder.valid(); }, 10s, "the old holder is told");
    got->release();
    require_clean(name);
}

TEST_CASE("T7: one failed renewal is not a loss", "[T7][races]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("one-renewal");
    const auto client = open_proxied("ttl=3s");
    auto lease = hold(*lock_of(client, name));
    for (int i = 0; i < 3; ++i) {
        const auto failed = client.stats().renewals_failed;
        const auto fine = client.stats().renewals;
        proxy->refuse();
        proxy->cut_all();
        lab::wait_until([&] { return client.stats().renewals_failed > failed; }, 5s,
                        "a renewal fails");
        CHECK(lease.valid());
        proxy->heal();
        lab::wait_until([&] { return client.stats().renewals > fine; }, 5s, "a renewal succeeds");
        CHECK(lease.state() == hf::LeaseState::held);
    }
    CHECK_FALSE(lease.lost().stop_requested());
    lease.release();
    require_clean(name);
}

TEST_CASE("T8: a dead server neither hangs nor throws where leases and clients end",
          "[T8][races]") {
    Trial& trial = this_trial();
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("dead");
    for (const bool hang : {false, true}) {
        hf::boot_clock::time_point gone;
        {
            const auto client = open_proxied("ttl=2s&request_timeout=700ms");
            auto lease = hold(*lock_of(client, name));
            auto second = hold(*lock_of(client, name + "-2"));
            wait_held_everywhere(lease);
            wait_held_everywhere(second);
            if (hang)
                proxy->black_hole();
            else
                proxy->refuse(), proxy->cut_all();
            gone = now();
            CHECK(second.release() == hf::ReleaseResult::unreachable);
        }
        // close_grace, what a request may last for this ttl, and as much again for all else
        trial.within(now() - gone, 2700ms, "a release and an end without a server");
        proxy->heal();
        auto freed = hold(*lock_of(open(), name), 6s);  // by the ttl
        freed.release();
        require_clean(name);
        lab::wait_until([&] { return is_free(open(), name + "-2"); }, 5s, "the ttl");
    }
}

TEST_CASE("T8: who is granted while another thread closes the client holds nothing",
          "[T8][races]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("closing");
    // Elsewhere closing cuts the request, or a node is given up: by its ttl, then.
    const bool at_once = backend().close_takes_back();
    auto client = open_proxied(at_once ? "ttl=60s&request_timeout=10s" : "ttl=3s");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 3; ++i)
        hold(*lock).release();  // its connections are there
    const auto before = proxy->counters().delayed;
    proxy->delay(Direction::to_client, 30s);
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 0ms}); });
    lab::wait_until([&] { return proxy->counters().delayed > before; }, 5s, "the answer waits");
    client.close();
    proxy->heal();  // now it comes
    const auto got = asked.get();
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    CHECK(
        (got.error() == errc::closed || unreachable(got.error()) || got.error() == errc::in_doubt));
    lab::wait_until([&] { return at_once || is_free(open(), name); }, 10s, "its ttl");
    require_clean(name);
}

TEST_CASE("T11: a missed wake-up costs at most min(ttl/3, 1 s)", "[T11][races]") {
    Trial& trial = this_trial();
    if (backend().proxy() == nullptr) return;
    const auto name = fresh_name("missed");
    const auto holder_client = open();
    for (int i = 0; i < 3; ++i) {
        auto holder = hold(*lock_of(holder_client, name));
        const auto client = open_proxied();
        hf::result<hf::Lease> got = hf::Lease();
        hf::boot_clock::time_point granted;
        std::thread waiting([&] {
            got = lock_of(client, name)->acquire({.wait = 20s});
            granted = now();
        });
        lab::wait_until([&] { return client.stats().attempts >= 1 && client.stats().waiting == 1; },
                        5s, "it waits");
        // Everything to this client is lost from now until after the release.
        backend().proxy()->cut_all();
        const auto released = now();
        holder.release();
        waiting.join();
        REQUIRE(got.has_value());
        trial.within(granted - released, 1500ms, "the grant after a missed wake-up");
        got->release();
    }
    require_clean(name);
}

TEST_CASE("T11: a wake-up that is swallowed costs at most min(ttl/3, 1 s)", "[T11][races]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr || !has(Capability::notified)) return;  // who polls misses no word
    Trial& trial = this_trial();
    const auto name = fresh_name("swallowed");
    const auto holder_client = open("ttl=30s");
    const auto client = open_proxied("ttl=30s");
    const auto lock = lock_of(client, name);
    hold(*lock).release();
    auto holder = hold(*lock_of(holder_client, name));
    hf::result<hf::Lease> got = hf::Lease();
    hf::boot_clock::time_point granted;
    const auto attempts = client.stats().attempts;
    std::thread waiting([&] {
        got = lock->acquire({.wait = 20s});
        granted = now();
    });
    const bool waits = lab::reached(
        [&] {
            return client.stats().attempts > attempts &&
                   (!has(Capability::fifo) || waiters_of(name) == 1);
        },
        10s);
    const auto before = proxy->counters().swallowed_to_client;
    proxy->swallow(Direction::to_client);
    const auto released = now();
    holder.release();
    const bool swallowed =
        lab::reached([&] { return proxy->counters().swallowed_to_client > before; }, 5s);
    proxy->heal();
    waiting.join();
    CHECK(waits);
    CHECK(swallowed);
    REQUIRE(got.has_value());
    // A request whose answer was swallowed with it lasts for as long again.
    trial.within(granted - released, 2500ms, "the grant after a swallowed word");
    got->release();
    require_clean(name);
}

TEST_CASE("T22: what somebody else keeps under the name is never overwritten", "[T22]") {
    const auto name = fresh_name("stranger");
    if (!backend().plant_stranger(name)) return;
    const auto lock = lock_of(open(), name);
    const auto refused = lock->try_acquire();
    REQUIRE_FALSE(refused.has_value());
    // SET NX alone does not tell what is there.
    CHECK((refused.error() == errc::kind_mismatch ||
           (!has(Capability::fencing) && refused.error() == errc::contended)));
    CHECK_FALSE(lock->acquire({.wait = 1s}).has_value());
    CHECK(backend().stranger_is_whole(name));
    CHECK(backend().erase_behind(name));
    auto* foreign = backend().foreign_client();
    if (foreign == nullptr) return;
    // A plain key of another client is a holder.
    foreign->cli({"SET", name, "somebody"});
    CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(lock->acquire({.wait = 1s}).error() == errc::timed_out);
    CHECK(foreign->cli({"GET", name}).text == "somebody");
    const auto seen = open().inspect(name);
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].foreign);
    foreign->cli({"DEL", name});
    require_clean(name);
}

TEST_CASE("T27: what a Redis server may answer instead", "[T27]") {
    auto* server = backend().foreign_client();
    if (server == nullptr) return;
    const auto name = fresh_name("answers");
    const auto client = open("ttl=4s");
    const auto lock = lock_of(client, name);
    hold(*lock).release();

    SECTION("SCRIPT FLUSH") {
        auto lease = hold(*lock);
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(lease.renew().has_value());
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(lease.release() == hf::ReleaseResult::released);
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(hold(*lock).valid());
    }
    SECTION("READONLY") {
        if (backend().in_slots()) return;  // what has become a replica redirects
        // Five servers are told one after the other; the lease outlives that on any machine.
        const auto patient = open("ttl=10s");
        auto lease = hold(*lock_of(patient, name));
        server->cli({"REPLICAOF", "127.0.0.1", "1"});
        CHECK(lease.renew().error() == errc::unavailable);
        CHECK(lease.valid());
        const auto refused = lock_of(client, fresh_name("readonly"))->try_acquire();
        REQUIRE_FALSE(refused.has_value());
        CHECK(unreachable(refused.error()));
        server->cli({"REPLICAOF", "NO", "ONE"});
        CHECK(lease.renew().has_value());
        CHECK(lease.release() == hf::ReleaseResult::released);
    }
    SECTION("OOM: nothing is taken, a release still works") {
        auto lease = hold(*lock);
        server->cli({"CONFIG", "SET", "maxmemory", "1"});
        const auto refused = lock_of(client, fresh_name("oom"))->try_acquire();
        REQUIRE_FALSE(refused.has_value());
        CHECK(unreachable(refused.error()));
        const auto answer = lease.release();
        server->cli({"CONFIG", "SET", "maxmemory", "0"});
        CHECK(answer == hf::ReleaseResult::released);
    }
    SECTION("FLUSHALL is a loss at the next renewal") {
        auto lease = hold(*lock);
        const auto token = lease.fencing_token();
        server->cli({"FLUSHALL"});
        lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "the loss");
        CHECK(lease.lost_reason() == errc::lost);
        auto next = hold(*lock);
        if (has(Capability::fencing)) CHECK(next.fencing_token() > token);
    }
    SECTION("a restart in between") {
        auto lease = hold(*lock);
        REQUIRE(backend().restart_server(lab::Data::keep));
        lab::wait_until([&] { return lease.renew().has_value() || !lease.valid(); }, 5s,
                        "the lease is renewed or told");
        CHECK(lease.valid());
        const auto token = lease.fencing_token();
        CHECK(lease.release() == hf::ReleaseResult::released);
        if (has(Capability::fencing)) CHECK(hold(*lock).fencing_token() > token);
    }
    require_clean(name);
}

TEST_CASE("T15: tokens grow over a killed server", "[T15]") {
    if (!backend().restartable() || !has(Capability::fencing)) return;
    const auto name = fresh_name("token-kill");
    const auto client = open("ttl=2s&request_timeout=2s");
    hf::FencingToken last;
    for (int i = 0; i < 3; ++i) {
        auto lease = hold(*lock_of(client, name));
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        REQUIRE(backend().kill_server());
        lease = {};
        REQUIRE(backend().restart_server(lab::Data::keep));
    }
    // Held, so that there is something to erase.
    auto held = hold(*lock_of(client, name));
    last = held.fencing_token();
    CHECK(backend().erase_behind(name));
    held = {};
    CHECK(hold(*lock_of(client, name)).fencing_token() > last);
    require_clean(name);
}
