// Nobody starves, of whatever kind those are that come and go meanwhile: how many turns others have
// while one waits that does not fit beside them.
//
// The bound. Where one stands, each of the others has at most one request under way; that may be
// granted yet, as it may have come before. Whatever they ask for afterwards has come later, and
// does not fit beside the one that stands: it is refused until that one has had its turn. So they
// have at most one turn each, however many they want.
//
// From when on one stands depends on the backend. It does as soon as the server shows it in line,
// or has its mark, which Redlock's nodes keep and nobody is shown. Else it does once it has waited
// for a second, from the first answer, and a look that was sent after that has been answered, which
// has left the mark. A mark has the time of the first request, so others' later ones are refused as
// long as it is renewed: by each look, three of which fit into the time for which it lasts. Before
// that second is over one may see any number of turns.
#include <algorithm>
#include <atomic>
#include <future>

#include "suite.hpp"

using namespace suite;

namespace {

struct Contest {
    const char* words;
    hf::LockOptions kind;
    hf::AcquireOptions one, others;
    /// The next one is asked for while one is held, so that there is never a moment without any.
    bool overlapping;
};

constexpr int crowd_size = 2;
constexpr auto mark_lasts_at_least = 300ms;

/// Where it takes a few looks until one stands, and the next look may be the one that is granted,
/// others hold for long enough for several: in turn, or while they wait for their next one.
hf::milliseconds turn_lasts(const Contest& contest) {
    return has(Capability::fifo) || contest.overlapping ? 5ms : 60ms;
}
hf::milliseconds patience_of_others(const Contest& contest) {
    return !contest.overlapping ? 10s : has(Capability::fifo) ? 100ms : 300ms;
}

/// Those that come and go, in threads and clients of their own.
class TurnTakers {
public:
    TurnTakers(const std::string& name, const Contest& contest) {
        for (int i = 0; i < crowd_size; ++i) {
            const auto client = open();
            threads_.push_back(
                std::async(std::launch::async,
                           [this, contest, client, lock = lock_of(client, name, contest.kind)] {
                               run(*lock, contest);
                           }));
        }
    }
    ~TurnTakers() { over_ = true; }
    void wait_until_they_go_on() {
        const int before = all;
        lab::wait_until([&] { return all >= before + 2 * crowd_size; }, 30s, "they come and go");
    }

    std::atomic<bool> one_stands{false}, one_is_in{false};
    std::atomic<int> all{0}, while_one_stands{0};

private:
    void run(hf::Lock& lock, const Contest& contest) {
        auto options = contest.others;
        options.wait = patience_of_others(contest);
        hf::Lease held;
        while (!over_) {
            auto next = lock.acquire(options);
            if (next && !one_is_in) {
                ++all;
                if (one_stands) ++while_one_stands;
            }
            held = {};
            if (!next) continue;
            (void)lab::stays_true([&] { return !over_; }, turn_lasts(contest));
            if (contest.overlapping) held = std::move(*next);
        }
    }
    std::atomic<bool> over_{false};
    std::vector<std::future<void>> threads_;  // they end before what they use does
};

/// Until it stands, as above. False: it was granted before.
bool comes_to_stand(const std::string& name, const hf::Client& client,
                    const std::atomic<bool>& granted) {
    const auto attempts = [&, before = client.stats().attempts] {
        return client.stats().attempts - before;
    };
    const auto once = [&](auto condition) {
        lab::wait_until([&] { return granted || condition(); }, 30s, "it stands");
    };
    const auto is_shown = [&] {
        const auto found = client.inspect(name);
        return found && std::any_of(found->waiters.begin(), found->waiters.end(),
                                    [](const auto& w) { return w.note == "one"; });
    };
    if (has(Capability::fifo)) {
        once(is_shown);
    } else if (backend().unseen_waiters(name)) {
        once([&] { return backend().unseen_waiters(name, "one") > 0U; });
    } else {
        once([&] { return attempts() >= 2; });  // one after the other: the first one is answered
        const auto first = now();
        once([&] { return now() - first > 1s || is_shown(); });
        const auto before = attempts();
        once([&] { return attempts() >= before + 2 || is_shown(); });
    }
    return !granted;
}

void contest_is_fair(const Contest& contest) {
    INFO(contest.words);
    for (Trial trial; trial.again();) {
        const auto name = fresh_name("fair");
        const auto client = open();
        const auto lock = lock_of(client, name, contest.kind);
        TurnTakers others(name, contest);
        others.wait_until_they_go_on();
        // A writer may come between two others by chance; then it has not waited.
        const int wanted = has(Capability::fifo) ? 3 : 1, most = 3 * wanted;
        int stood = 0, worst = 0;
        for (int round = 0; round < most && stood < wanted; ++round) {
            others.while_one_stands = 0;
            auto options = contest.one;
            options.wait = 30s;
            options.note = "one";
            auto waits = std::async(std::launch::async, [&] {
                auto lease = lock->acquire(options);
                others.one_is_in = true;
                return lease;
            });
            others.one_stands = comes_to_stand(name, client, others.one_is_in);
            if (others.one_stands) ++stood;
            auto lease = waits.get();
            REQUIRE(lease.has_value());
            worst = std::max(worst, others.while_one_stands.load());
            others.one_stands = false;
            lease->release();
            others.one_is_in = false;
        }
        INFO(stood << " times it stood; turns of others then: " << worst << ", " << others.all
                   << " in all");
        if (contest.overlapping) CHECK(stood > 0);
        trial.holds(worst <= crowd_size, mark_lasts_at_least, "others have one turn each");
    }
}

}  // namespace

TEST_CASE("fairness: a writer among readers, a reader among writers", "[kinds][fairness][T18]") {
    if (!has(Capability::shared)) return;
    const hf::LockOptions kind{.kind = hf::Kind::shared_mutex};
    const hf::AcquireOptions writes{}, reads{.mode = hf::Mode::shared};
    contest_is_fair({"a writer among readers", kind, writes, reads, true});
    contest_is_fair({"a reader among writers", kind, reads, writes, false});
}

TEST_CASE("fairness: all permits at once among those who want one", "[kinds][fairness][T19]") {
    if (!has(Capability::semaphore)) return;
    contest_is_fair({"three permits among single ones",
                     {.kind = hf::Kind::semaphore, .limit = 3},
                     {.permits = 3},
                     {},
                     true});
}

TEST_CASE("fairness: a release tells the next in line, and not the last", "[fairness]") {
    if (!has(Capability::fifo) || !has(Capability::notified)) return;
    constexpr int n = 8;
    const auto name = fresh_name("told");
    // Handlers use these until the clients are closed.
    std::atomic<int> served{0};
    std::promise<hf::error_code> ended;
    const auto client = open(), last = open();
    const auto lock = lock_of(client, name);
    auto holder = hold(*lock);
    const auto stands = [&](std::size_t place) {
        lab::wait_until([&] { return waiters_of(name) == place; }, 20s, "it is in line");
    };
    for (std::size_t i = 1; i <= n; ++i) {
        lock->async_acquire({.wait = 60s}, [&](hf::error_code ec, hf::Lease l) {
            if (!ec) ++served;
            l.release();
        });
        stands(i);
    }
    lock_of(last, name)->async_acquire({.wait = 60s}, [&](hf::error_code ec, hf::Lease l) {
        l.release();
        ended.set_value(ec);
    });
    stands(n + 1);
    const auto before = last.stats().attempts;
    const auto start = now();
    holder.release();
    CHECK_FALSE(ended.get_future().get());
    CHECK(served == n);
    // Its own turn, and a look each second: not one for each of those before it.
    const auto seconds = static_cast<std::uint64_t>(ms(now() - start)) / 1000;
    CHECK(last.stats().attempts - before <= n / 2 + seconds);
    require_clean(name);
}
