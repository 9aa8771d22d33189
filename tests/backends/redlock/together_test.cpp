// Many locks at once share the calls to a node, and nothing else: each is granted, refused, renewed
// and released by itself.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>

#include "five.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redlock_tests;

namespace {

constexpr int many = 64;

/// Asks for all names from one thread, and keeps what came of each.
class Crowd {
public:
    Crowd(const hf::Client& client, const std::vector<std::string>& names,
          const hf::LockOptions& options = {}) {
        for (const auto& name : names)
            locks_.push_back(lock_of(client, name, options));
        said_.resize(names.size());
        leases.resize(names.size());
    }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;
    ~Crowd() {
        lab::wait_until([&] { return open_ == 0; }, cap(30s), "all are answered");
    }
    void acquire(hf::milliseconds wait = 5s) {
        open_ += static_cast<int>(locks_.size());
        for (std::size_t i = 0; i < locks_.size(); ++i)
            locks_[i]->async_acquire({.wait = wait}, [this, i](hf::error_code ec, hf::Lease l) {
                said_[i] = ec;
                leases[i] = std::move(l);
                --open_;
            });
        lab::wait_until([&] { return open_ == 0; }, cap(30s), "all are answered");
    }
    /// How many were answered `released`.
    int release() {
        std::atomic<int> released{0};
        for (auto& lease : leases) {
            if (!lease.valid()) continue;
            ++open_;
            lease.async_release(hf::Outcome::done,
                                [this, &released](hf::error_code, hf::ReleaseResult said) {
                                    if (said == hf::ReleaseResult::released) ++released;
                                    --open_;
                                });
        }
        lab::wait_until([&] { return open_ == 0; }, cap(30s), "all are released");
        return released;
    }
    int held() const {
        return static_cast<int>(std::count_if(leases.begin(), leases.end(), [](const auto& lease) {
            return lease.valid() && lease.state() == hf::LeaseState::held;
        }));
    }
    hf::error_code said(std::size_t i) const { return said_[i]; }

    std::vector<hf::Lease> leases;

private:
    std::vector<std::unique_ptr<hf::Lock>> locks_;
    std::vector<hf::error_code> said_;
    std::atomic<int> open_{0};
};

std::vector<std::string> names(const std::string& prefix, int n = many) {
    std::vector<std::string> out;
    for (int i = 0; i < n; ++i)
        out.push_back(prefix + std::to_string(i));
    return out;
}

std::size_t keys(Five& five, const std::string& pattern) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < five.size(); ++i)
        n += five[i].cli({"KEYS", pattern}).elements.size();
    return n;
}

}  // namespace

TEST_CASE("together: many acquisitions and releases share their calls") {
    const std::string mode = GENERATE("fencing=on", "fencing=off");
    INFO(mode);
    Five five;
    // Without an engine, in which it would be a matter of luck who asks at once.
    redis_tests::Rig rig(five.url("durable=yes&node_timeout=2s&" + mode));
    const auto requests = [&](auto verb) {
        const auto before = rig.backend->requests();
        verb();
        return rig.backend->requests() - before;
    };
    // 64 share a call, but a SET that is no script's is one of its own.
    const std::size_t to_grant = 5 * (mode == "fencing=on" ? many / 64 : many);
    const std::size_t to_release = 5 * many / 64;
    std::size_t granting = 0, releasing = 0;
    const auto round = [&] {
        std::vector<std::unique_ptr<redis_tests::Try>> tries;
        std::vector<redis_tests::Try*> all;
        for (const auto& name : names("n")) {
            tries.push_back(std::make_unique<redis_tests::Try>(name));
            all.push_back(tries.back().get());
        }
        granting = requests([&] { rig.attempt(all, 5s); });
        for (const auto* t : all)
            REQUIRE(t->granted());
        int looks = 0;  // with the engine's turns between them, in which the answers are read
        rig.until([&] { return keys(five, "n*") == 5 * many && ++looks > 2; }, "all have them");
        releasing = requests([&] { CHECK(rig.release(all) == many); });
        rig.until([&] { return keys(five, "n*") == 0; }, "all is free");
        return granting == to_grant && releasing == to_release;
    };
    // The first one connects and tells the scripts. A node that is slow to answer is told twice,
    // and one that has counted further is asked again: that is more, never less.
    const bool shared = lab::reached(round, 20s);
    INFO(granting << " and " << releasing << " requests in the last round");
    CHECK(shared);
}

TEST_CASE("together: one that is held, and one that is no lock, refuse only themselves") {
    Five five;
    const auto other = open(five.url());
    auto taken = hold(*lock_of(other, "n3"));
    for (std::size_t i = 0; i < five.size(); ++i)
        five[i].cli({"LPUSH", "n5", "a list"});
    const auto client = open(five.url());
    Crowd crowd(client, names("n"));
    crowd.acquire(0ms);
    for (std::size_t i = 0; i < many; ++i) {
        INFO(i << ": " << crowd.said(i).message());
        if (i == 3)
            CHECK(crowd.said(i) == errc::contended);
        else if (i == 5)
            CHECK(crowd.said(i) == errc::kind_mismatch);
        else
            CHECK_FALSE(crowd.said(i));
    }
    CHECK(crowd.release() == many - 2);
    CHECK(taken.state() == hf::LeaseState::held);
}

TEST_CASE("together: nodes that have forgotten their scripts are told again") {
    Five five;
    const auto client = open(five.url());
    Crowd crowd(client, names("n"));
    crowd.acquire();
    REQUIRE(crowd.held() == many);
    for (std::size_t i = 0; i < five.size(); ++i)
        five[i].cli({"SCRIPT", "FLUSH"});
    CHECK(crowd.release() == many);
    for (std::size_t i = 0; i < five.size(); ++i)
        five[i].cli({"SCRIPT", "FLUSH"});
    crowd.acquire();
    CHECK(crowd.held() == many);
    CHECK(crowd.release() == many);
}

TEST_CASE("together: a name that the user may not touch refuses only itself") {
    Five five;
    for (std::size_t i = 0; i < five.size(); ++i)
        five[i].cli({"ACL", "SETUSER", "limited", "on", ">word", "+@all", "~n*", "~{n*",
                     "~holdfast:*", "~hf:*", "~*:hf:*"});
    std::string url = five.url();
    url.insert(url.find("//") + 2, "limited:word@");
    const auto client = open(url);
    auto all = names("n", 20);
    all.push_back("other");
    const hf::error_code alone = refusal(*lock_of(client, "other"));
    REQUIRE(alone);
    Crowd crowd(client, all);
    crowd.acquire(0ms);
    CHECK(crowd.held() == 20);
    CHECK(crowd.said(20).default_error_condition() == alone.default_error_condition());
    CHECK(crowd.release() == 20);
}

TEST_CASE("together: renewals share their calls, and a minority that dies takes no lease away") {
    Five five;
    const auto client = open(five.url("durable=yes&node_timeout=300ms"));
    Crowd crowd(client, names("n"), {.ttl = 3s});
    crowd.acquire();
    REQUIRE(crowd.held() == many);
    const auto before = client.stats();
    lab::wait_until([&] { return client.stats().renewals >= before.renewals + 2 * many; }, cap(30s),
                    "two rounds of renewals");
    const auto after = client.stats();
    const auto each = static_cast<double>(after.requests - before.requests) /
                      static_cast<double>(after.renewals - before.renewals);
    INFO(each << " requests for each renewal at five nodes");
    CHECK(each < 2.5);
    five[0].kill();
    five[1].kill();
    const auto killed = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= killed + 3 * many; }, cap(60s),
                    "three more rounds");
    CHECK(crowd.held() == many);
    CHECK(crowd.release() == many);
}

TEST_CASE("together: an outage while thousands are asked for costs hardly more than itself") {
    test_support::Trial& trial = test_support::this_trial();
    const std::string mode = GENERATE("fencing=on", "fencing=off");
    INFO(mode);
    constexpr int thousands = 5000;
    Five five;
    std::mutex mutex;
    std::vector<hf::Lease> leases;
    int refused = 0;
    const auto granted = [&] {
        const std::lock_guard hold(mutex);
        return static_cast<int>(leases.size());
    };
    const auto url = five.url(
        "durable=yes&max_ttl=120s&ttl=120s&request_timeout=20s&node_timeout=200ms&" + mode);
    // Without an outage first: what this machine takes for all of them is what the rest is measured
    // by.
    std::chrono::milliseconds undisturbed{0};
    const auto in_their_midst = [&](bool outage) {
        const auto client = open(url);  // which has yet to learn what time it is at the nodes
        std::vector<std::unique_ptr<hf::Lock>> locks;
        for (const auto& name : names("n", thousands)) {
            locks.push_back(lock_of(client, name));
            locks.back()->async_acquire({.wait = 120s}, [&](hf::error_code ec, hf::Lease lease) {
                const std::lock_guard hold(mutex);
                refused += ec ? 1 : 0;
                leases.push_back(std::move(lease));
            });
        }
        const auto asked = now();
        lab::wait_until([&] { return granted() > 0; }, cap(30s), "the first are granted");
        bool midst = false;
        if (outage) {
            for (std::size_t i = 0; i < five.size(); ++i)
                five[i].pause();
            const auto over = now() + 600ms;
            lab::wait_until([&] { return now() >= over; }, 2s, "the outage is long enough");
            midst = granted() < thousands;
            for (std::size_t i = 0; i < five.size(); ++i)
                five[i].resume();
        }
        const auto start = now();
        lab::wait_until([&] { return granted() == thousands; }, 90s, "all are granted");
        if (outage)
            std::cout << "redlock: " << thousands << " granted " << ms(now() - start)
                      << " ms after an outage" << (midst ? " in their midst\n" : "\n");
        CHECK(refused == 0);
        if (!outage) undisturbed = std::chrono::ceil<std::chrono::milliseconds>(now() - asked);
        trial.within(now() - start, 2s + 3 * undisturbed, "all of them together");
        leases.clear();
        lab::wait_until([&] { return keys(five, "n*") == 0; }, cap(30s), "all is free");
        return midst;
    };
    // A machine that is quick, or slow to say what it has got, is done before.
    (void)in_their_midst(false);
    CHECK(lab::reached([&] { return in_their_midst(true); }, cap(60s)));
}
