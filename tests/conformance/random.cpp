// Random trials: members of several processes ask for one name as readers and writers and for
// another one's permits, in all ways to ask; processes are killed. A witness outside of the backend
// judges who is inside together. HOLDFAST_TEST_SEED repeats the choices of a trial, not its times.
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <random>

#include "random_member.hpp"
#include "suite.hpp"
#include "witness.hpp"

using namespace suite;

namespace {

constexpr auto member_ttl = 1200ms;
const std::string short_lived =
    "ttl=" + std::to_string(member_ttl.count()) + "ms&request_timeout=3s";

std::uint64_t seed_of_trial() {
    const char* given = std::getenv("HOLDFAST_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

/// The members of one trial: processes where the backend reaches them, else threads of this one.
class Members {
public:
    Members(const RandomTrial& trial, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            trials_.push_back(trial);
            trials_.back().seed += i;
        }
        for (const RandomTrial& t : trials_) {
            if (!backend().shared_between_processes()) {
                threads_.push_back(std::async(std::launch::async, [t, client = open(short_lived)] {
                    run_member(client, t);
                }));
                continue;
            }
            auto o = worker_in("random", backend().url(short_lived), t.name, dir_,
                               std::to_string(t.witness), std::to_string(t.seed));
            o.environment.emplace_back("HOLDFAST_TEST_PERMITS", std::to_string(t.limit));
            o.log = dir_.path() / ("member-" + std::to_string(t.seed));
            processes_.emplace_back(o);
        }
    }
    /// Kills the first of those that live. False where there are no processes.
    bool kill_one() {
        if (processes_.empty()) return false;
        auto& killed = processes_.at(killed_++);
        std::cout << backend().name() << ": kills process " << killed.pid() << std::endl;
        killed.kill();
        return true;
    }
    /// Those that live have ended well.
    void require_end() {
        for (std::size_t i = killed_; i < processes_.size(); ++i)
            require_ended(processes_[i]);
        for (auto& thread : threads_)
            REQUIRE_NOTHROW(thread.get());
    }

private:
    lab::TempDir dir_;
    std::vector<RandomTrial> trials_;
    std::vector<lab::Process> processes_;
    std::vector<std::future<void>> threads_;
    std::size_t killed_ = 0;
};

std::uint32_t units_of(const hf::Inspection& found) {
    std::uint32_t sum = 0;
    for (const auto& holder : found.holders)
        sum += holder.permits;
    return sum;
}

/// Of the dead and of those who gave up nothing is left: what is in use is what live holders have.
void require_units_of_the_living(const RandomTrial& trial) {
    const auto client = open();
    const auto taken = [&](const std::string& name, const hf::LockOptions& kind,
                           hf::AcquireOptions options) {
        options.wait = 30s;
        auto lease = lock_of(client, name, kind)->acquire(options);
        INFO(name << ": " << (lease ? "held" : lease.error().message()));
        REQUIRE(lease.has_value());
        return std::move(*lease);
    };
    const auto holders_are = [&](const std::string& name, std::size_t n, std::uint32_t units) {
        return lab::reached(
            [&] {
                const auto found = client.inspect(name);
                return found && found->holders.size() == n && units_of(*found) == units &&
                       found->waiters.empty();
            },
            10s);
    };
    if (has(Capability::semaphore)) {
        const auto name = trial.permits_name();
        const hf::LockOptions kind{.kind = hf::Kind::semaphore, .limit = trial.limit};
        // The whole limit is there to be had.
        taken(name, kind, {.permits = trial.limit}).release();
        auto one = taken(name, kind, {}), others = taken(name, kind, {.permits = trial.limit - 1});
        CHECK(holders_are(name, 2, trial.limit));
        one.release();
        CHECK(holders_are(name, 1, trial.limit - 1));
        others.release();
        require_clean(name);
    }
    taken(trial.name, {}, {}).release();
    if (has(Capability::shared)) {
        const hf::LockOptions kind{.kind = hf::Kind::shared_mutex};
        auto one = taken(trial.name, kind, {.mode = hf::Mode::shared}),
             two = taken(trial.name, kind, {.mode = hf::Mode::shared});
        for (auto* lease : {&one, &two})
            wait_held_everywhere(*lease);
        CHECK(holders_are(trial.name, 2, 2));
    }
    // A process that was killed while it asked may have left its key on a minority of Redlock's
    // nodes, which no later grant has to wait for.
    require_clean(trial.name, member_ttl + 1s);
}

void random_trial(std::uint64_t seed, std::size_t members, int kills, long long grants_between) {
    std::cout << backend().name() << ": HOLDFAST_TEST_SEED=" << seed << std::endl;
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](int from, int to) {
        return std::uniform_int_distribution<int>(from, to)(random);
    };
    const auto store = lab::RedisServer::start();
    const RandomTrial trial{fresh_name("random"), static_cast<std::uint32_t>(pick(2, 5)),
                            store.port(), seed};
    Witness witness(store.port());
    Members all(trial, members);
    lab::wait_until([&] { return witness.members_ready() >= static_cast<int>(2 * members); },
                    cap(30s), "all members are ready");
    witness.say("go");
    long long goal = pick(5, 25);
    const auto goes_on = [&] {
        lab::wait_until([&] { return witness.grants() >= goal; }, cap(60s),
                        "grants go on, seed " + std::to_string(seed));
    };
    goes_on();
    int killed = 0;
    for (; killed < kills && all.kill_one(); ++killed) {
        goal = witness.grants() + pick(5, 25);
        goes_on();
    }
    goal += grants_between;
    goes_on();
    witness.say("over");
    all.require_end();
    std::cout << backend().name() << ": " << witness.grants() << " grants, " << killed << " killed"
              << witness.report() << std::endl;
    INFO(witness.words());
    CHECK(witness.overlaps() == 0);
    require_units_of_the_living(trial);
}

}  // namespace

TEST_CASE("random: members of all kinds come, go, give up and are killed", "[random]") {
    random_trial(seed_of_trial(), 3, 1, 25);
}

TEST_CASE("random: what killed holders had comes back while others hold", "[random]") {
    if (!backend().shared_between_processes() || !has(Capability::shared)) return;
    constexpr std::uint32_t limit = 4;
    const std::string permits = fresh_name("killed-permits"), read = fresh_name("killed-reader");
    const auto client = open();
    struct Name {
        std::string name;
        hf::LockOptions kind;
        hf::AcquireOptions beside, whole;
    };
    std::vector<Name> names{
        {read, {.kind = hf::Kind::shared_mutex}, {.mode = hf::Mode::shared}, {}}};
    if (has(Capability::semaphore))
        names.push_back({permits,
                         {.kind = hf::Kind::semaphore, .limit = limit},
                         {.permits = 1},
                         {.permits = limit - 1}});
    std::vector<std::unique_ptr<lab::TempDir>> folders;
    std::vector<lab::Process> holders;
    std::vector<hf::Lease> beside;
    for (const auto& n : names) {
        folders.push_back(std::make_unique<lab::TempDir>());
        auto o = worker_in("holds", backend().url(short_lived), n.name, *folders.back());
        o.environment.emplace_back("HOLDFAST_TEST_KIND", hf::to_string(n.kind.kind));
        o.environment.emplace_back("HOLDFAST_TEST_PERMITS", std::to_string(limit));
        holders.emplace_back(o);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        lab::wait_until([&] { return std::filesystem::exists(*folders[i] / "held"); }, cap(30s),
                        "it holds");
        auto options = names[i].beside;
        options.wait = 10s;
        beside.push_back(lock_of(client, names[i].name, names[i].kind)->acquire(options).value());
        holders[i].kill();
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        INFO(names[i].name);
        const auto lock = lock_of(client, names[i].name, names[i].kind);
        // A writer needs the other reader to have left; permits of the dead are free before.
        if (names[i].name == read) beside[i].release();
        auto options = names[i].whole;
        options.wait = 15s;
        auto lease = lock->acquire(options);
        REQUIRE(lease.has_value());
        CHECK((names[i].name == read || beside[i].valid()));
        lease->release();
        beside[i].release();
        require_clean(names[i].name);
    }
}

TEST_CASE("random: the same for many seeds, with more members", "[.][long][random]") {
    const auto first = seed_of_trial();
    for (std::uint64_t i = 0; i < 20; ++i)
        random_trial(first + 10 * i, 4 + i % 3, 1 + static_cast<int>(i % 3), 1000);
}

TEST_CASE("random: the witness complains of those who must not be together", "[random]") {
    const auto store = lab::RedisServer::start();
    Witness witness(store.port());
    const auto later = now() + 60s;
    {
        witness.enter("a", "reader", 1, all_units, later);
        witness.enter("a", "another", 1, all_units, later);
        witness.enter("b", "two", 2, 3, later);
        witness.enter("b", "one", 1, 3, later);
        witness.enter("c", "writer", all_units, all_units, now());
        witness.enter("c", "after its time", all_units, all_units, later);
        witness.leave("c", "after its time");
        witness.enter("c", "the next", all_units, all_units, later);
        witness.enter("c", "the next", 1, all_units, later);  // a downgrade
        witness.enter("c", "a reader", 1, all_units, later);
        INFO(witness.words());
        CHECK(witness.overlaps() == 0);
    }
    witness.enter("a", "writer", all_units, all_units, later);
    CHECK(witness.overlaps() == 1);
    witness.enter("b", "too many", 1, 3, later);
    CHECK(witness.overlaps() == 2);
    witness.enter("d", "writer", all_units, all_units, later);
    witness.enter("d", "too early", 1, all_units, later);
    CHECK(witness.overlaps() == 3);
    // Members do tell it: one that nobody let in is met.
    const RandomTrial trial{fresh_name("planted"), 2, store.port(), 1};
    for (const auto& name : {trial.name, trial.permits_name()})
        witness.enter(name, "planted", all_units, all_units, later);
    const auto before = witness.grants();
    Members one(trial, 1);
    witness.say("go");
    lab::wait_until([&] { return witness.grants() > before; }, cap(30s), "it is granted");
    witness.say("over");
    one.require_end();
    CHECK(witness.overlaps() > 3);
    require_clean(trial.name);
}
