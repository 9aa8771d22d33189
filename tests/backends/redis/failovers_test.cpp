// Failovers under load, judged by the checker of histories: what class D may lose is counted and
// printed. HOLDFAST_FAILOVERS says how many for each number of acknowledgements.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "cap.hpp"
#include "catch.hpp"
#include "checker/check.hpp"
#include "checker/diary.hpp"
#include "holdfast/lab/redis_set.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
namespace history = holdfast::bench::history;
using namespace std::chrono_literals;
using hf::boot_clock;
using holdfast::bench::Diary;
using lab::RedisSet;
using test_support::cap;

namespace {

using Random = std::mt19937_64;

enum class How : std::uint8_t { kill, stop, cut, command };
constexpr How all_ways[] = {How::command, How::kill, How::cut, How::stop};
constexpr const char* names_of_ways[] = {"kill", "SIGSTOP", "cut", "SENTINEL FAILOVER"};

std::chrono::milliseconds pick(Random& random, int from, int to) {
    return std::chrono::milliseconds(std::uniform_int_distribution<int>(from, to)(random));
}

/// One client that acquires two names by turns, and holds each for up to a ttl.
class Worker {
public:
    Worker(const std::string& url, const std::filesystem::path& file, unsigned seed)
        : client_(hf::Client::open(url).value()),
          diary_(file, "client" + std::to_string(seed % 1000)),
          random_(seed),
          thread_([this] { work(); }) {}
    ~Worker() { end(); }
    void end() {
        ended_ = true;
        if (thread_.joinable()) thread_.join();
    }
    std::uint64_t grants() const { return grants_; }

private:
    void work() {
        const auto capabilities = client_.capabilities();
        std::vector<std::pair<std::unique_ptr<hf::Lock>, std::uint16_t>> locks;
        for (const std::string name : {"a", "b"})
            locks.emplace_back(client_.make_lock(name).value(), diary_.name(name, &capabilities));
        for (unsigned i = 0; !ended_; ++i) {
            const auto& [lock, name] = locks[i % 2];
            auto entry = diary_.asked(name);
            auto lease = lock->acquire({.wait = 2s});
            if (!lease) {
                diary_.failed(entry, lease.error());
                continue;
            }
            ++grants_;
            diary_.granted(entry, *lease);
            const auto until = boot_clock::now() + pick(random_, 0, 1500);
            const auto lost = lease->lost();
            (void)lab::reached(
                [&] {
                    diary_.believes(entry, *lease);
                    return lost.stop_requested() || ended_ || boot_clock::now() >= until;
                },
                10s);
            if (lost.stop_requested()) {
                diary_.lost(entry, *lease);
                continue;
            }
            diary_.releasing(entry, *lease);
            diary_.released(entry, lease->release());
        }
    }

    hf::Client client_;
    Diary diary_;
    Random random_;
    std::atomic<bool> ended_{false};
    std::atomic<std::uint64_t> grants_{0};
    std::thread thread_;
};

/// Acquires names that nobody else wants, one after the other, and says when it got the first one
/// of a new primary.
class Probe {
public:
    explicit Probe(const std::string& url)
        : client_(hf::Client::open(url).value()), thread_([this] { work(); }) {}
    ~Probe() {
        ended_ = true;
        thread_.join();
    }
    std::uint64_t moves() const { return client_.stats().moves; }
    /// After that many moves; none yet: zero.
    boot_clock::time_point first_after(std::uint64_t moves) const {
        const std::lock_guard hold(mutex_);
        return moves < first_.size() ? first_[moves] : boot_clock::time_point{};
    }

private:
    void work() {
        for (unsigned i = 0; !ended_; ++i) {
            const auto before = moves();
            const auto lock = client_.make_lock("probe/" + std::to_string(i)).value();
            auto lease = lock->acquire({.wait = 2s});
            if (!lease) continue;
            {
                const std::lock_guard hold(mutex_);
                first_.resize(std::max<std::size_t>(first_.size(), before + 1));
                auto& first = first_[before];
                if (first == boot_clock::time_point{}) first = boot_clock::now();
            }
            // No more of them than it takes to see the first.
            (void)lab::reached([&] { return ended_ || moves() != before; }, 20ms);
            lease->release();
        }
    }

    hf::Client client_;
    std::atomic<bool> ended_{false};
    mutable std::mutex mutex_;
    std::vector<boot_clock::time_point> first_;  // by the number of moves
    std::thread thread_;
};

/// When another primary was named.
struct Switched {
    boot_clock::time_point by_one, by_majority;
};

Switched fail_over(RedisSet& set, How how) {
    const auto former = set.primary();
    // In the middle of grants: the server acts, and what it answers is lost.
    set.proxy(former).swallow();
    set.proxy(former).wait_fired(cap(30s));
    if (how == How::kill) set.server(former).kill();
    if (how == How::stop) set.server(former).pause();
    if (how == How::cut) set.proxy(former).black_hole();
    if (how == How::command) {
        set.proxy(former).heal();
        set.fail_over();
    }
    set.wait_replaced(former, cap(60s));
    Switched at;
    at.by_one = boot_clock::now();
    set.wait_replaced(former, cap(60s), set.sentinel_ports().size() / 2 + 1);
    at.by_majority = boot_clock::now();
    return at;
}

void mend(RedisSet& set, How how, std::size_t former) {
    if (how == How::kill) set.server(former).restart();
    if (how == How::stop) set.server(former).resume();
    set.proxy(former).heal();
    set.wait_settled(cap(60s));
}

unsigned rounds() {
    const char* const wanted = std::getenv("HOLDFAST_FAILOVERS");
    return wanted == nullptr ? 2 : static_cast<unsigned>(std::atoi(wanted));
}

/// Many durations of one kind.
class Times {
public:
    void add(boot_clock::duration d) {
        all_.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
    }
    std::string text() {
        std::sort(all_.begin(), all_.end());
        return fmt::format("median {} ms, 95th percentile {} ms", all_[all_.size() / 2],
                           all_[all_.size() * 95 / 100]);
    }
    std::size_t size() const { return all_.size(); }

private:
    std::vector<std::int64_t> all_;
};

}  // namespace

TEST_CASE("failovers: what the class admits is counted, and nothing else happens", "[failovers]") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    for (const int acks : {0, 1, 2}) {
        INFO(acks << " acknowledgements");
        lab::RedisSetOptions options;
        options.proxied = true;
        options.down_after = 500ms;
        options.failover_timeout = 3s;
        auto set = RedisSet::start(std::move(options));
        const auto url =
            set.url() + "?ttl=2s&request_timeout=500ms&min_replicas_ack=" + std::to_string(acks);
        lab::TempDir dir;
        std::vector<std::filesystem::path> files;
        std::vector<std::unique_ptr<Worker>> workers;
        for (unsigned i = 0; i < 4; ++i) {
            files.push_back(dir / ("client" + std::to_string(i)));
            workers.push_back(std::make_unique<Worker>(url, files.back(), seed + i));
        }
        const auto grants = [&] {
            std::uint64_t all = 0;
            for (const auto& worker : workers)
                all += worker->grants();
            return all;
        };
        Times since_one, since_majority;
        {
            Probe probe(set.url() + "?ttl=2s&request_timeout=500ms");
            lab::wait_until([&] { return probe.first_after(0) != boot_clock::time_point{}; },
                            cap(30s), "the probe works");
            for (unsigned i = 0; i < rounds(); ++i) {
                const How how = all_ways[(i + static_cast<unsigned>(acks)) % std::size(all_ways)];
                INFO(names_of_ways[static_cast<int>(how)]);
                const auto so_far = grants();
                lab::wait_until([&] { return grants() >= so_far + 4; }, cap(60s),
                                "locks are granted");
                const auto former = set.primary();
                const auto before = probe.moves();
                const auto switched = fail_over(set, how);
                lab::wait_until(
                    [&] { return probe.first_after(before + 1) != boot_clock::time_point{}; },
                    cap(60s), "a grant by the new primary");
                const auto first = probe.first_after(before + 1);
                since_one.add(first - switched.by_one);
                since_majority.add(first - switched.by_majority);
                mend(set, how, former);
            }
        }
        for (const auto& worker : workers)
            worker->end();
        const auto granted = grants();
        workers.clear();
        history::Limits limits;
        const auto verdict = history::check_files(files, limits);
        std::cout << fmt::format(
            "failovers: {} acknowledgements, {} failovers, {} grants: {} overlaps; first grant "
            "after a Sentinel named the new primary: {}; after a majority did: {}\n",
            acks, since_one.size(), granted, verdict.count(history::Trouble::overlap),
            since_one.text(), since_majority.text());
        using history::Trouble;
        CHECK(granted > 4 * since_one.size());
        CHECK(verdict.count(Trouble::contradictory) == 0);
        CHECK(verdict.count(Trouble::torn) == 0);
        CHECK(verdict.count(Trouble::token_repeated) == 0);
        if (acks == 2) CHECK(verdict.count(Trouble::overlap) == 0);
    }
}
