// A primary is killed under waiters, and a standby takes over, again and again: judged by the
// checker of histories.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <thread>

#include "checker/check.hpp"
#include "checker/diary.hpp"
#include "holdfast/lab/postgres_servers.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "rig.hpp"

using namespace postgresql_tests;
namespace history = hf::bench::history;

namespace {

constexpr int clients = 10, callers = 5;

/// Callers of several clients who want one name, each with a diary of its own.
class Crowd {
public:
    Crowd(const std::string& url, const std::filesystem::path& folder) {
        for (int c = 0; c < clients; ++c)
            clients_.push_back(open(url, "ttl=3s"));
        for (int t = 0; t < clients * callers; ++t)
            threads_.emplace_back([this, t, folder] {
                work(clients_.at(static_cast<std::size_t>(t / callers)), t, folder);
            });
        lab::wait_until([&] { return waiting() >= clients * callers - 1; }, cap(30s), "all wait");
    }
    ~Crowd() { end(); }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    void end() {
        ending_ = true;
        for (auto& t : threads_)
            if (t.joinable()) t.join();
    }
    long long granted() const { return granted_; }
    std::string failures() const {
        const std::lock_guard hold_it(mutex_);
        return failures_;
    }

private:
    int waiting() const {
        std::uint64_t n = 0;
        for (const auto& c : clients_)
            n += c.stats().waiting;
        return static_cast<int>(n);
    }
    void work(const hf::Client& client, int number, const std::filesystem::path& folder) {
        std::mt19937 random(static_cast<unsigned>(number));
        const auto lock = client.make_lock("wanted").value();
        const auto promised = lock->capabilities();
        hf::bench::Diary diary(folder / fmt::format("{}.history", number), "caller");
        const auto name = diary.name("wanted", &promised);
        while (!ending_) {
            auto entry = diary.asked(name);
            const auto came = boot_clock::now();
            auto lease = lock->acquire({.wait = 120s});
            if (!lease) {
                diary.failed(entry, lease.error());
                // A first request that nobody answers ends the call; one that waited waits on.
                if (ms_since(came) < 5000) continue;
                const std::lock_guard hold_it(mutex_);
                failures_ += lease.error().message() + "; ";
                continue;
            }
            diary.granted(entry, *lease);
            ++granted_;
            // Now and then for long enough that a primary dies under it.
            const auto held = std::chrono::milliseconds(random() % 8 == 0 ? 400 : 5);
            if (lab::reached([&] { return lease->lost().stop_requested(); }, held)) {
                diary.lost(entry, *lease);
                continue;
            }
            diary.releasing(entry, *lease);
            diary.released(entry, lease->release());
        }
    }

    std::vector<hf::Client> clients_;
    std::atomic<bool> ending_{false};
    std::atomic<long long> granted_{0};
    mutable std::mutex mutex_;
    std::string failures_;
    std::vector<std::thread> threads_;
};

struct Told {
    history::Verdict verdict;
    std::string failures;
    std::vector<long long> first_grant_ms;  ///< after a standby was promoted
};

history::Verdict judge(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        files.push_back(file.path());
    // A release is not waited for: neither on the disk nor at a standby.
    history::Limits limits;
    limits.unsynced_release = std::chrono::nanoseconds(2s).count();
    return history::check_files(files, limits);
}

/// `lag`: the standbys get nothing for a while before the primary dies.
Told switch_over(lab::PostgresServers& servers, int times, bool lag) {
    Told told;
    lab::TempDir folder;
    {
        history::Recorder kills(folder / "servers.history", "servers");
        Crowd crowd(servers.url(), folder.path());
        const auto go_on = [&](long long by, const char* what) {
            const auto until = crowd.granted() + by;
            lab::wait_until([&] { return crowd.granted() >= until; }, cap(60s), what);
        };
        for (int i = 0; i < times; ++i) {
            go_on(20, "they take turns");
            if (lag) {
                servers.hold_back();
                go_on(20, "they take turns, and no standby knows");
            }
            const std::size_t old = servers.primary();
            const auto from = history::now();
            servers.server(old).kill();
            kills.server_killed(from);
            servers.promote_another();
            const auto promoted = boot_clock::now();
            go_on(1, "somebody is granted at the new primary");
            told.first_grant_ms.push_back(ms_since(promoted));
            servers.server(old).follow(servers.server(servers.primary()));
        }
        go_on(20, "they take turns in the end");
        crowd.end();
        told.failures = crowd.failures();
    }
    told.verdict = judge(folder.path());
    std::sort(told.first_grant_ms.begin(), told.first_grant_ms.end());
    std::cout << fmt::format(
        "{} failovers, {}: first grant after a promotion {} ms median, {} ms at most; {} grants, "
        "{} "
        "overlaps\n",
        times, lag ? "standbys behind" : "synchronous standbys",
        told.first_grant_ms.at(told.first_grant_ms.size() / 2), told.first_grant_ms.back(),
        told.verdict.figures.granted,
        told.verdict.count(history::Trouble::overlap) +
            told.verdict.count(history::Trouble::within_validity));
    return told;
}

void synchronous(int times) {
    auto servers = lab::PostgresServers::start();
    // Held over all of it, and never in doubt for its holder.
    const auto keeper = open(servers.url(), "ttl=30s");
    auto kept = hold(keeper, "kept");
    const auto told = switch_over(servers, times, false);
    INFO(told.verdict.text());
    CHECK(told.verdict.sound());
    CHECK(told.failures.empty());
    CHECK(kept.valid());
    CHECK(kept.renew().has_value());
    CHECK(kept.release() == ReleaseResult::released);
}

}  // namespace

TEST_CASE("switchover: with synchronous standbys no grant is lost, and waiters wait on") {
    synchronous(2);
}

TEST_CASE("switchover: 20 primaries die under 50 waiters, with synchronous standbys",
          "[.][switchover]") {
    synchronous(20);
}

TEST_CASE("switchover: 20 primaries die under 50 waiters, with standbys that are behind",
          "[.][switchover]") {
    auto servers = lab::PostgresServers::start({.synchronous = false});
    const auto told = switch_over(servers, 20, true);
    INFO(told.verdict.text());
    // What class D admits, and nothing else: two holders, and a holder of whom nothing is known.
    CHECK(told.verdict.count(history::Trouble::token_order) == 0);
    CHECK(told.verdict.count(history::Trouble::token_repeated) == 0);
    CHECK(told.verdict.count(history::Trouble::token_missing) == 0);
    CHECK(told.verdict.count(history::Gravity::damage) == 0);
    CHECK(told.verdict.figures.granted > 20 * 20);
}
