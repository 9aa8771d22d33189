// One process that works under a lock: WORKER URL NAME FOLDER STORE-PORT ROUNDS lock|no-lock, and
// records in FOLDER/<process>.history what it does with its locks. Other modes: `clock` lets its
// wall clock jump while it holds (STORE-PORT is then the jump in seconds); `stopped` holds, is
// stopped from outside, and looks when there is a file FOLDER/resumed; `try` asks for a
// second, and ends with 2 where somebody else holds; `random` is a member of a random trial, with
// ROUNDS as its seed; `holds` takes all permits but one, or reads, and stays until it is killed.
// HOLDFAST_TEST_KIND is the kind of the lock:
// a shared_mutex, which is also read now and then, or a semaphore of HOLDFAST_TEST_PERMITS permits
// (one by default), of which it takes one; `election` campaigns for a mutex.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "checker/diary.hpp"
#include "holdfast/lab/redis_connection.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/wall_clock.hpp"
#include "random_member.hpp"

namespace {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;

constexpr std::string_view just_left = "who has just left";

/// Makes the witness; otherwise, the words of somebody who lives and has made it. What a killed
/// holder left behind is not its presence. A symbolic link whose text begins with the process:
/// exclusive like O_CREAT|O_EXCL, and never there without its text, whenever its maker is killed.
std::optional<std::string> met(const std::string& witness) {
    const auto me = std::to_string(::getpid());
    if (::symlink(me.c_str(), witness.c_str()) == 0) return std::nullopt;
    char text[512] = {};
    if (::readlink(witness.c_str(), text, sizeof text - 1) < 0) return std::string(just_left);
    if (::kill(std::atoi(text), 0) == 0) return text;
    const bool made = ::unlink(witness.c_str()) == 0 && ::symlink(me.c_str(), witness.c_str()) == 0;
    return made ? std::nullopt : std::optional<std::string>(text);
}

/// Makes the first witness that is free, where so many may hold; otherwise as met().
std::optional<std::string> met_too_many(std::string& witness, int permits) {
    if (permits == 1) return met(witness);
    std::string others;
    for (int i = 0; i < permits; ++i) {
        const std::string one = i == 0 ? witness : witness + '.' + std::to_string(i);
        std::optional<std::string> other;
        do
            other = met(one);
        while (other == just_left);
        if (!other) {
            witness = one;
            return std::nullopt;
        }
        (others += ' ') += *other;
    }
    witness.clear();
    return others;
}

std::string_view kind_from_environment() {
    const char* kind = std::getenv("HOLDFAST_TEST_KIND");
    return kind == nullptr ? "mutex" : kind;
}
int permits_from_environment() {
    const char* permits = std::getenv("HOLDFAST_TEST_PERMITS");
    return permits == nullptr ? 1 : std::atoi(permits);
}
hf::LockOptions lock_options() {
    const auto kind = kind_from_environment();
    if (kind == hf::to_string(hf::Kind::semaphore))
        return {.kind = hf::Kind::semaphore,
                .limit = static_cast<std::uint32_t>(permits_from_environment())};
    return {.kind = kind == hf::to_string(hf::Kind::shared_mutex) ? hf::Kind::shared_mutex
                                                                  : hf::Kind::mutex};
}

/// Holds it as a reader, and looks for a writer meanwhile. False: it was not granted.
bool read_once(hf::Lock& lock, lab::RedisConnection& store, const std::string& witness) {
    const auto lease = lock.acquire_shared({.wait = 60s});
    if (!lease) return false;
    for (int look = 0; look < 2; ++look) {
        std::array<char, 32> text{};
        if (::readlink(witness.c_str(), text.data(), text.size() - 1) > 0 &&
            ::kill(std::atoi(text.data()), 0) == 0)
            store.command({"INCR", "overlaps"});
        store.command({"GET", "counter"});
    }
    return true;
}

int work(const std::string& url, const std::string& name, const std::string& folder, int port,
         int rounds, bool locked) {
    hf::Diagnostics words;
    hf::ClientOptions options;
    options.diagnostics = &words;
    const auto client = hf::Client::open(url, options);
    if (!client) {
        std::cerr << words.text() << '\n';
        return 1;
    }
    const auto lock = client->make_lock(name, lock_options()).value();
    std::optional<hf::Election> election;
    if (kind_from_environment() == "election") election = client->make_election(name).value();
    const int permits = permits_from_environment();
    auto promised = lock->capabilities();
    if (lock->kind() == hf::Kind::semaphore) promised.set(hf::Capability::fencing, false);
    lab::RedisConnection store("127.0.0.1", static_cast<std::uint16_t>(port));
    const std::string witness = folder + "/witness";
    hf::bench::Diary diary(folder + "/" + std::to_string(::getpid()) + ".history", "worker");
    const auto in_diary = diary.name(name, locked ? &promised : nullptr);
    // Time for others between two rounds, where nobody is told of a release.
    const char* pause_ms = std::getenv("HOLDFAST_TEST_PAUSE_MS");
    const int pause = pause_ms == nullptr ? 0 : std::atoi(pause_ms);
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    // All begin together, or slow starts would keep them apart without any lock.
    store.command({"INCR", "ready"});
    lab::wait_until([&] { return !store.command({"GET", "go"}).is_nil(); }, 60s, "the word to go");
    for (int i = 0; i < rounds; ++i) {
        hf::Lease lease;
        auto entry = diary.asked(in_diary);
        if (!locked) diary.granted(entry);
        if (locked) {
            const hf::AcquireOptions request{.wait = 60s, .diagnostics = &words};
            auto got = election ? election->campaign("worker", request) : lock->acquire(request);
            if (!got) {
                diary.failed(entry, got.error());
                std::cerr << got.error().message() << ' ' << words.text() << '\n';
                return 1;
            }
            lease = std::move(*got);
            diary.granted(entry, lease);
        }
        std::string made = witness;
        if (const auto other = met_too_many(made, permits)) {
            store.command({"INCR", "overlaps"});
            store.command({"RPUSH", "met", std::to_string(::getpid()) + " & " + *other});
        }
        const auto before = store.command({"GET", "counter"});
        const long long n = before.is_nil() ? 0 : std::stoll(before.text);
        if (made != witness) store.command({"INCR", "together"});
        // Long enough inside for others to come in, too.
        for (int look = 0; permits > 1 && look < 20; ++look)
            store.command({"GET", "counter"});
        // One step of the store, so that a kill cannot fall between the two.
        const char* const count =
            permits > 1 ? "redis.call('INCR','counter') redis.call('INCR','done')"
                        : "redis.call('SET','counter',ARGV[1]) redis.call('INCR','done')";
        store.command({"EVAL", count, "0", std::to_string(n + 1)});
        ::unlink(made.c_str());
        auto released = hf::ReleaseResult::released;
        if (locked) {
            diary.releasing(entry, lease);
            released = lease.release();
        } else {
            diary.releasing(entry);
        }
        diary.released(entry, released);
        if (released != hf::ReleaseResult::released) {
            std::cerr << "release: " << hf::to_string(released) << '\n';
            return 1;
        }
        const bool reads = lock->kind() == hf::Kind::shared_mutex && locked && i % 4 == 0;
        if (reads && !read_once(*lock, store, witness)) return 1;
        if (pause > 0) {
            const auto end =
                hf::boot_clock::now() +
                std::chrono::microseconds(std::uniform_int_distribution(0, 1000 * pause)(random));
            (void)lab::stays_true([&] { return hf::boot_clock::now() < end; }, 1s);
        }
    }
    return 0;
}

int jump(const std::string& url, const std::string& name, const std::string& seconds) {
    hf::ClientOptions options;
    options.events = hf::log_to_stderr(hf::Verbosity::trouble);
    const auto client = hf::Client::open(url, options).value();
    const auto lock = client.make_lock(name, {.ttl = 4s}).value();
    auto lease = lock->acquire().value();
    const auto before = std::time(nullptr);
    lab::WallClock clock(std::getenv("HOLDFAST_CLOCK_SHIM"));
    clock.set(std::chrono::seconds(std::stoi(seconds)));
    lab::wait_until([&] { return std::abs(std::time(nullptr) - before) > 3000; }, 5s,
                    "the clock jumps");
    if (!lease.valid()) return 2;
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= renewals + 2; }, 10s, "renewals go on");
    if (!lease.valid() || lease.lost().stop_requested()) return 3;
    const auto token = lease.fencing_token();
    if (lock->acquire({.wait = 1s}).error() != hf::errc::timed_out) return 4;
    if (lease.release() != hf::ReleaseResult::released) return 5;
    auto next = lock->acquire({.wait = 5s});
    if (!next) return 6;
    if (token && !(next->fencing_token() > token)) return 7;
    next->release();
    clock.set(0ms);
    return 0;
}

int stopped(const std::string& url, const std::string& name, const std::string& folder) {
    const auto client = hf::Client::open(url).value();
    const auto lock = client.make_lock(name).value();
    std::ofstream(folder + "/asked") << ::getpid() << "\n";
    auto lease = lock->acquire({.wait = 30s}).value();
    std::ofstream(folder + "/held") << lease.fencing_token().value << "\n";
    // No pause between the look at the file and the look at the lease: no timer shall be quicker.
    const std::string resumed = folder + "/resumed";
    while (::access(resumed.c_str(), F_OK) != 0) {
    }
    if (lease.valid()) return 2;
    if (lease.state() != hf::LeaseState::lost) return 3;
    lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "the loss is told");
    if (lease.renew()) return 4;
    if (lease.release() == hf::ReleaseResult::released) return 5;
    if (lock->try_acquire().error() != hf::errc::contended) return 6;
    return lease.valid() ? 7 : 0;
}

int try_once(const std::string& url, const std::string& name) {
    const auto client = hf::Client::open(url).value();
    const auto lease = client.make_lock(name).value()->acquire({.wait = 1s});
    if (lease) return 0;
    std::cerr << lease.error().message() << '\n';
    return lease.error() == hf::errc::timed_out ? 2 : 1;
}

int hold_until_killed(const std::string& url, const std::string& name, const std::string& folder) {
    const auto client = hf::Client::open(url).value();
    const auto lock = client.make_lock(name, lock_options()).value();
    const auto permits = static_cast<std::uint32_t>(permits_from_environment());
    hf::AcquireOptions options{.wait = 30s};
    if (lock->kind() == hf::Kind::semaphore) options.permits = permits - 1;
    if (lock->kind() == hf::Kind::shared_mutex) options.mode = hf::Mode::shared;
    const auto lease = lock->acquire(options).value();
    std::ofstream(folder + "/held") << ::getpid() << "\n";
    (void)lab::reached([&] { return !lease.valid(); }, 60s);
    return 1;
}

int be_member(const std::string& url, const std::string& name, int port, const std::string& seed) {
    const auto client = hf::Client::open(url).value();
    suite::run_member(client, {name, static_cast<std::uint32_t>(permits_from_environment()),
                               static_cast<std::uint16_t>(port), std::stoull(seed)});
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 7) return 64;
    const std::string mode = argv[6];
    if (mode == "clock") return jump(argv[1], argv[2], argv[4]);
    if (mode == "stopped") return stopped(argv[1], argv[2], argv[3]);
    if (mode == "try") return try_once(argv[1], argv[2]);
    if (mode == "holds") return hold_until_killed(argv[1], argv[2], argv[3]);
    if (mode == "random") return be_member(argv[1], argv[2], std::atoi(argv[4]), argv[5]);
    return work(argv[1], argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5]), mode == "lock");
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
