// Fifty callers who want one name while primaries come and go, judged by the checker of histories.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../sql/rig.hpp"
#include "checker/check.hpp"
#include "checker/diary.hpp"
#include "holdfast/lab/postgres_servers.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace postgresql_tests {

namespace history = hf::bench::history;

/// Callers of several clients who want one name, each with a diary of its own.
class Crowd {
public:
    static constexpr int clients = 10, callers = 5;

    /// The clients share the URLs evenly.
    Crowd(const std::vector<std::string>& urls, const std::filesystem::path& folder);
    ~Crowd() { end(); }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    void end();
    long long granted() const { return granted_; }
    /// Every caller has begun to ask.
    bool complete() const { return came_ == clients * callers; }
    /// Of all clients, for a failure's words.
    std::string counters() const;
    /// How often callers who waited had which error; empty: never.
    std::string failures() const;

private:
    void work(const hf::Client&, int number, const std::filesystem::path& folder);

    std::vector<hf::Client> clients_;
    std::atomic<bool> ending_{false};
    std::atomic<long long> granted_{0};
    std::atomic<int> came_{0};
    mutable std::mutex mutex_;
    std::map<std::string, int> failures_;
    std::vector<std::thread> threads_;
};

/// A series of changes of the primary under a crowd, and a lease that is held over all of them.
class Series {
public:
    explicit Series(const std::vector<std::string>& urls);

    /// Returns when so many more were granted.
    void go_on(long long by, const char* what);
    /// Another one has become the primary just now: waits for the first grant there.
    void promoted();
    /// Kills the primary so many times, lets a standby take over, and brings the killed one back as
    /// a standby. `lag`: the standbys get nothing for a while before.
    void fail_over(lab::PostgresServers&, int times, bool lag = false);
    /// Ends the crowd, judges, and prints the figures behind these words.
    history::Verdict end(const std::string& words);
    /// After end(): nothing was granted twice, and no caller who waited had an error.
    void require_sound(const history::Verdict&);

private:
    /// What clients and servers say, for a failure's words.
    std::string scene() const;

    lab::TempDir folder_;
    const lab::PostgresServers* servers_ = nullptr;  ///< those of fail_over()
    std::optional<history::Recorder> kills_;
    hf::Client keeper_;
    hf::Lease kept_;
    Crowd crowd_;
    std::vector<long long> first_grant_ms_;
};

}  // namespace postgresql_tests
