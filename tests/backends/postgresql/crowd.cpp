#include "crowd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace postgresql_tests {
namespace {

history::Verdict judge(const std::filesystem::path& folder) {
    // A release is not waited for: neither on the disk nor at a standby.
    history::Limits limits;
    limits.unsynced_release = std::chrono::nanoseconds(2s).count();
    return history::check_folder(folder, limits);
}

}  // namespace

Crowd::Crowd(const std::vector<std::string>& urls, const std::filesystem::path& folder) {
    for (std::size_t c = 0; c < clients; ++c)
        clients_.push_back(open(urls[c % urls.size()], "ttl=3s"));
    for (int t = 0; t < clients * callers; ++t)
        threads_.emplace_back([this, t, folder] {
            work(clients_.at(static_cast<std::size_t>(t / callers)), t, folder);
        });
}

void Crowd::end() {
    ending_ = true;
    for (auto& t : threads_)
        if (t.joinable()) t.join();
}

std::string Crowd::failures() const {
    const std::lock_guard hold_it(mutex_);
    std::string text;
    for (const auto& [words, times] : failures_)
        text += fmt::format("{} times: {}; ", times, words);
    return text;
}

std::string Crowd::counters() const {
    hf::Stats all;
    for (const auto& c : clients_) {
        const auto s = c.stats();
        all.waiting += s.waiting;
        all.held += s.held;
        all.acquired += s.acquired;
        all.attempts += s.attempts;
        all.in_doubt += s.in_doubt;
        all.failed += s.failed;
        all.lost += s.lost;
        all.moves += s.moves;
    }
    return fmt::format(
        "{} waiting, {} held, {} acquired, {} attempts, {} in doubt, {} failed, {} lost, {} moves",
        all.waiting, all.held, all.acquired, all.attempts, all.in_doubt, all.failed, all.lost,
        all.moves);
}

void Crowd::work(const hf::Client& client, int number, const std::filesystem::path& folder) {
    std::mt19937 random(static_cast<unsigned>(number));
    const auto lock = client.make_lock("wanted").value();
    const auto promised = lock->capabilities();
    hf::bench::Diary diary(folder / fmt::format("{}.history", number), "caller");
    const auto name = diary.name("wanted", &promised);
    ++came_;
    while (!ending_) {
        auto entry = diary.asked(name);
        const auto came = boot_clock::now();
        auto lease = lock->acquire({.wait = 120s});
        if (!lease) {
            diary.failed(entry, lease.error());
            // A first request that nobody answers ends the call; one that waited waits on.
            if (ms_since(came) < 5000) continue;
            const std::lock_guard hold_it(mutex_);
            ++failures_[lease.error().message()];
            continue;
        }
        diary.granted(entry, *lease);
        ++granted_;
        // Now and then for long enough that a primary dies under it.
        const auto held = std::chrono::milliseconds(random() % 8 == 0 ? 400 : 5);
        diary.hold(entry, *lease, held);
    }
}

Series::Series(const std::vector<std::string>& urls)
    : kills_(std::in_place, folder_ / "servers.history", "servers"),
      keeper_(open(urls.front(), "ttl=30s")),
      kept_(hold(keeper_, "kept")),
      crowd_(urls, folder_.path()) {
    lab::wait_until([&] { return crowd_.complete(); }, cap(30s), "all callers have come");
}

void Series::go_on(long long by, const char* what) {
    const auto until = crowd_.granted() + by;
    if (lab::reached([&] { return crowd_.granted() >= until; }, cap(60s))) return;
    FAIL(what << ": " << crowd_.granted() - (until - by) << " of " << by << " grants\n" << scene());
}

std::string Series::scene() const {
    std::string text = crowd_.counters() + "; " + crowd_.failures();
    for (std::size_t i = 0; servers_ != nullptr && i < servers_->size(); ++i) {
        const auto say = [&](const char* what, const std::string& columns, const char* from) {
            text += fmt::format("; {}: ", what);
            try {
                text += servers_->server(i).value("SELECT string_agg(concat_ws(' ', " + columns +
                                                  "), ', ') FROM " + from);
            } catch (const std::exception& e) {
                text += e.what();
            }
        };
        text += fmt::format("\nserver {}{}", i, i == servers_->primary() ? ", the primary" : "");
        say("sends", "state, sync_state, flush_lsn", "pg_stat_replication");
        say("receives", "status, sender_port, received_tli", "pg_stat_wal_receiver");
        say("has", "pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()", "(SELECT) AS here");
        say("sessions", "n, state, wait_event",
            "(SELECT count(*) AS n, state, wait_event FROM pg_stat_activity GROUP BY 2, 3) AS a");
        say("rows", "l", "holdfast_lease AS l");
    }
    return text;
}

void Series::promoted() {
    const auto since = boot_clock::now();
    go_on(1, "somebody is granted at the new primary");
    first_grant_ms_.push_back(ms_since(since));
}

void Series::fail_over(lab::PostgresServers& servers, int times, bool lag) {
    servers_ = &servers;
    for (int i = 0; i < times; ++i) {
        go_on(20, "they take turns");
        if (lag) {
            servers.hold_back();
            go_on(20, "they take turns, and no standby knows");
        }
        const std::size_t old = servers.primary();
        const auto from = history::now();
        servers.server(old).kill();
        kills_->server_killed(from);
        servers.promote_another();
        promoted();
        servers.server(old).follow(servers.server(servers.primary()));
    }
}

history::Verdict Series::end(const std::string& words) {
    go_on(20, "they take turns in the end");
    crowd_.end();
    kills_.reset();
    auto verdict = judge(folder_.path());
    std::sort(first_grant_ms_.begin(), first_grant_ms_.end());
    std::cout << fmt::format(
        "{} times, {}: first grant after a promotion {} ms median, {} ms at most; {} grants, {} "
        "overlaps\n",
        first_grant_ms_.size(), words, first_grant_ms_.at(first_grant_ms_.size() / 2),
        first_grant_ms_.back(), verdict.figures.granted,
        verdict.count(history::Trouble::overlap) +
            verdict.count(history::Trouble::within_validity));
    return verdict;
}

void Series::require_sound(const history::Verdict& verdict) {
    INFO(verdict.text());
    CHECK(verdict.sound());
    CHECK(crowd_.failures().empty());
    CHECK(kept_.valid());
    CHECK(kept_.renew().has_value());
    CHECK(kept_.release() == ReleaseResult::released);
}

}  // namespace postgresql_tests
