// A server that goes away under all leases of a client at once: for half a ttl, which costs no
// lease, and for longer, which each of them is told, once and in time.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <vector>

#include "heard.hpp"
#include "suite.hpp"

using namespace suite;

namespace {

/// So many are asked for at once, as a program would start them.
constexpr std::size_t at_once = 100;

/// One lease, and how often its end was told in each of the three ways.
struct One {
    hf::Lease lease;
    std::atomic<int> events{0}, completions{0}, stops{0};
    std::atomic<long long> late{0};  ///< ms from valid_until to when it was told last
    std::optional<std::stop_callback<std::function<void()>>> on_lost;

    bool told(int times) const { return events == times && completions == times && stops == times; }
};

/// Leases of one client, each with a name of its own and listened to in each way.
class Crowd {
public:
    Crowd(std::size_t n, hf::milliseconds ttl)
        : ttl_(ttl), name_(fresh_name("crowd")), all_(n), client_(open({}, told_here())) {}
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;
    ~Crowd() {
        for (One& one : all_) {
            one.on_lost.reset();
            one.lease = {};
        }
        client_.close();
        (void)lab::reached([&] { return completed_ == held_; });  // handlers that count here
    }

    /// Asks for each of them once, and returns when all are answered.
    void acquire() {
        const auto start = now();
        for (std::size_t i = 0; i < std::min(at_once, all_.size()); ++i)
            ask_next();
        lab::wait_until([&] { return held_ + refused_ == all_.size(); }, cap(120s),
                        "all are answered");
        effort_ = hf::milliseconds(ms(now() - start));
    }
    /// How long that took.
    hf::milliseconds effort() const { return effort_; }
    /// How long it takes to renew all of them at once, as after an outage.
    hf::milliseconds renew() {
        std::atomic<std::size_t> answered{0};
        const auto start = now();
        for (One& one : all_)
            one.lease.async_renew([&](hf::error_code) { ++answered; });
        lab::wait_until([&] { return answered == all_.size(); }, cap(120s), "all are renewed");
        return hf::milliseconds(ms(now() - start));
    }
    /// So many were not granted.
    std::size_t refused() const { return refused_; }

    std::size_t count(const std::function<bool(const One&)>& f) const {
        return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), f));
    }
    bool all(const std::function<bool(const One&)>& f) const { return count(f) == all_.size(); }
    hf::boot_clock::time_point first_end() const {
        auto first = all_.front().lease.valid_until();
        for (const One& one : all_)
            first = std::min(first, one.lease.valid_until());
        return first;
    }
    long long latest() const {
        long long most = 0;
        for (const One& one : all_)
            most = std::max<long long>(most, one.late);
        return most;
    }

    std::size_t size() const { return all_.size(); }
    const One& operator[](std::size_t i) const { return all_[i]; }
    std::string prefix() const { return name_ + "/"; }
    std::string name(std::size_t i) const { return prefix() + std::to_string(i); }
    hf::milliseconds ttl() const { return ttl_; }
    const hf::Client& client() const { return client_; }

private:
    hf::ClientOptions told_here() {
        hf::ClientOptions options;
        options.events = [this](const hf::Event& e) {
            if (e.kind == hf::Event::Kind::lost)
                told(all_[std::stoul(e.name.substr(prefix().size()))], &One::events);
        };
        return options;
    }
    void ask_next() {
        const std::size_t i = next_++;
        if (i < all_.size()) ask(i);
    }
    void ask(std::size_t i) {
        const auto lock = client_.make_lock(name(i), {.ttl = ttl_});
        if (!lock) {
            ++refused_;
            return;
        }
        (*lock)->async_acquire({}, [this, i](hf::error_code ec, hf::Lease lease) {
            if (ec) {
                ++refused_;
            } else {
                listen(all_[i], std::move(lease));
                ++held_;
            }
            ask_next();
        });
    }
    void listen(One& one, hf::Lease lease) {
        one.lease = std::move(lease);
        one.on_lost.emplace(one.lease.lost(), [&one] { told(one, &One::stops); });
        one.lease.async_lost([this, &one](hf::error_code why) {
            if (why == errc::lost) told(one, &One::completions);
            ++completed_;
        });
    }
    static void told(One& one, std::atomic<int> One::*way) {
        const auto late = ms(now() - one.lease.valid_until());
        auto before = one.late.load();
        while (late > before && !one.late.compare_exchange_weak(before, late)) {
        }
        ++(one.*way);
    }

    const hf::milliseconds ttl_;
    const std::string name_;
    std::vector<One> all_;
    std::atomic<std::size_t> next_{0}, held_{0}, refused_{0}, completed_{0};
    hf::milliseconds effort_{0};
    hf::Client client_;
};

/// The server is away as long as this lives.
class Away {
public:
    Away() { REQUIRE(backend().pause_server()); }
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;
    ~Away() { backend().resume_server(); }
};

/// The server is away for half a ttl. Returns how long after it all were renewed; nothing: the
/// trial is void, since a stall took what the outage had left of the leases.
std::optional<long long> survive_half_a_ttl(const Crowd& crowd, Trial& trial) {
    const auto& client = crowd.client();
    // The worst moment: the first of them is just about to be renewed.
    lab::wait_until([&] { return crowd.first_end() - now() < crowd.ttl() * 2 / 3 + 20ms; },
                    crowd.ttl(), "a renewal is due");
    bool kept = false;
    {
        const Away away;
        const auto gone = now();
        const auto until = gone + crowd.ttl() / 2;
        const auto failed = client.stats().renewals_failed;
        lab::wait_until([&] { return client.stats().renewals_failed > failed; }, crowd.ttl(),
                        "a renewal is not answered");
        kept = lab::stays_true([&] { return client.stats().lost == 0; }, until - now());
        // An answer from before may be read late, and makes it valid for a ttl from before.
        CHECK(crowd.count([&](const One& one) {
            return one.lease.valid_until() > gone + crowd.ttl();
        }) == 0);
    }
    const auto left = crowd.ttl() / 6;
    if (!trial.holds(kept, left, "none is lost in an outage of half a ttl")) return {};
    // Renewed by what was sent after it, and so valid for another ttl.
    const auto back = now();
    const auto renewed = [&](const One& one) {
        return one.lease.valid_until() > back + crowd.ttl();
    };
    const bool all = lab::reached([&] { return client.stats().lost > 0 || crowd.all(renewed); },
                                  crowd.ttl() + cap(10s));
    const auto took = ms(now() - back);
    INFO(crowd.count(renewed) << " of " << crowd.size() << " were renewed " << took
                              << " ms after the outage");
    if (!trial.holds(client.stats().lost == 0, left, "none is lost after it")) return {};
    REQUIRE(all);
    CHECK(crowd.all([](const One& one) { return one.lease.valid() && one.told(0); }));
    return took;
}

/// The server is away until all have been told, or should have been.
void lose_all(const Crowd& crowd, Trial& trial) {
    const Away away;
    const auto failed = crowd.client().stats().renewals_failed;
    std::size_t too_long = 0;
    const bool told = lab::reached(
        [&] {
            too_long += crowd.count([](const One& one) {
                const auto looked = now();
                return one.lease.valid() && looked >= one.lease.valid_until();
            });
            return crowd.all([](const One& one) {
                return one.events > 0 && one.completions > 0 && one.stops > 0;
            });
        },
        crowd.ttl() + cap(10s));
    CHECK(told);
    CHECK(too_long == 0);
    CHECK(crowd.client().stats().renewals_failed > failed);
    trial.within(hf::milliseconds(crowd.latest()), 1s, "the last word, from its lease's end");
}

/// Returns how long after the servers were back the last name was free.
long long wait_until_free(const Crowd& crowd, Trial& trial) {
    backend().wait_ready();
    const auto back = now();
    const auto observer = open();
    std::string left;
    const bool free = lab::reached(
        [&] {
            const auto names = observer.list(crowd.prefix());
            left = names ? std::to_string(names->size()) + " are held" : names.error().message();
            return names && names->empty();
        },
        crowd.ttl() + 1s);
    const auto took = ms(now() - back);
    INFO(left);
    trial.holds(free, 1s, "all names are free a second after their ttl");
    for (const std::size_t i : {std::size_t{0}, crowd.size() / 2, crowd.size() - 1})
        require_clean(crowd.name(i));
    return took;
}

/// Half a ttl without a server, and then so long that all are lost. False: the trial is void.
bool outage(Crowd& crowd, Trial& trial) {
    crowd.acquire();
    INFO("of " << crowd.size() << " leases, acquired in " << crowd.effort().count() << " ms, "
               << crowd.refused() << " were not granted");
    // One request may last for a second, and what a stall leaves unanswered is in doubt.
    if (!trial.holds(crowd.refused() == 0, 1s, "each is granted at its first asking")) return false;
    REQUIRE(crowd.refused() == 0);
    const auto renewed = survive_half_a_ttl(crowd, trial);
    if (!renewed) return false;
    lose_all(crowd, trial);
    const auto freed = wait_until_free(crowd, trial);
    std::cout << backend().name() << ": T30: " << crowd.size() << " leases, acquired in "
              << crowd.effort().count() << " ms; ttl " << crowd.ttl().count() << " ms; all renewed "
              << *renewed << " ms after an outage of half of it, told at most " << crowd.latest()
              << " ms late, free " << freed << " ms after a longer one\n";
    CHECK(crowd.all([](const One& one) {
        return one.told(1) && one.lease.state() == hf::LeaseState::lost &&
               one.lease.lost_reason() == errc::lost;
    }));
    CHECK(crowd.client().stats().lost == crowd.size());
    CHECK(crowd.client().stats().held == 0);
    // The crowd's own requests may take a second only.
    const auto afterwards = open("ttl=30s&request_timeout=10s");
    auto again = hold(*lock_of(afterwards, crowd.name(0)));
    if (has(Capability::fencing)) CHECK(again.fencing_token() > crowd[0].lease.fencing_token());
    again.release();
    require_clean(crowd.name(0));
    return true;
}

/// A sixth of a ttl is left after the outage, an eighth with ZooKeeper: enough to connect and to
/// renew all of them, however many this server manages.
hf::milliseconds ttl_for(std::size_t n, hf::milliseconds least, hf::milliseconds most) {
    Crowd first(n, most);
    first.acquire();
    const auto needed = 12 * std::max(first.effort(), first.renew());
    // In whole seconds, as some servers count.
    return std::clamp<hf::milliseconds>(std::chrono::ceil<std::chrono::seconds>(needed), least,
                                        most);
}

}  // namespace

TEST_CASE("T34: the servers restart with leases held and waiters queued", "[T34]") {
    if (!backend().restartable()) return;
    const auto name = fresh_name("restart");
    const auto client = open("ttl=60s");
    auto lease = hold(*lock_of(client, name)), other = hold(*lock_of(client, name + "-2"));
    wait_held_everywhere(lease);
    wait_held_everywhere(other);
    constexpr std::size_t n = 5;
    std::mutex mutex;
    std::vector<std::size_t> order;
    std::atomic<std::size_t> ended{0};
    // Each is a client of its own, which is told that it waits.
    std::array<test_support::Heard, n> heard;
    std::vector<hf::Client> waiting;
    for (std::size_t i = 0; i < n; ++i) {
        hf::ClientOptions options;
        options.events = heard[i].sink();
        waiting.push_back(open("ttl=60s", options));
        const auto lock = lock_of(waiting[i], name);
        lock->async_acquire({.wait = 120s}, [&, i](hf::error_code ec, hf::Lease l) {
            {
                const std::lock_guard hold_it(mutex);
                order.push_back(ec ? n : i);
            }
            l.release();
            ++ended;
        });
        lab::wait_until(
            [&] {
                return heard[i].waits() && (!has(Capability::fifo) || waiters_of(name) == i + 1);
            },
            cap(10s), "in line, and told so");
    }
    REQUIRE(backend().restart_server(lab::Data::keep));
    CHECK(ended == 0);
    for (hf::Lease* l : {&lease, &other}) {
        CHECK(lab::reached([&] { return l->renew().has_value(); }, 20s));
        CHECK(l->state() == hf::LeaseState::held);
    }
    // A release passes those that were away for too long to count as alive, until they ask again;
    // which each does within a second.
    const auto in_line = [&] { return waiters_of(name) == n; };
    if (has(Capability::fifo))
        lab::wait_until([&] { return lab::stays_true(in_line, 1500ms); }, cap(20s),
                        "all are in line again");
    CHECK(ended == 0);  // nobody else is granted while the holder believes
    CHECK(lease.release() == hf::ReleaseResult::released);
    CHECK(other.release() == hf::ReleaseResult::released);
    lab::wait_until([&] { return ended == n; }, cap(60s), "all are served");
    CHECK(std::count(order.begin(), order.end(), n) == 0);
    if (has(Capability::fifo)) CHECK(std::is_sorted(order.begin(), order.end()));
    require_clean(name);
    require_clean(name + "-2");
}

TEST_CASE("T30: a server away for half a ttl costs no lease; away for longer, each is told once",
          "[T30]") {
    if (!backend().shared_between_processes()) return;  // nothing that could be away
    Trial& trial = this_trial();
    Crowd crowd(500, ttl_for(500, 10s, 60s));
    outage(crowd, trial);
}

TEST_CASE("T30: the same with ten thousand leases", "[.][long]") {
    if (!backend().shared_between_processes()) return;
    Trial& trial = this_trial();
    constexpr std::size_t n = 10'000;
    Crowd crowd(n, ttl_for(n, 20s, 60s));
    outage(crowd, trial);
}
