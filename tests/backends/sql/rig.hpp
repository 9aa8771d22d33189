// Words that the tests of both servers with SQL use: a server, clients, what they may expect, and
// somebody else's sessions. Each backend's dialect.hpp says which server, and how it is spoken to.
#pragma once
#include <atomic>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <string>
#include <thread>
#include <utility>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "dialect.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "trial.hpp"

namespace sql_tests {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::boot_clock;
using hf::errc;
using hf::PreviousHolder;
using hf::ReleaseResult;
using test_support::cap;
using test_support::hold;
using test_support::holders_of;
using test_support::lock_of;

/// A name that no other test uses.
inline std::string fresh(const std::string& what) {
    static std::atomic<int> next{0};
    return what + "-" + std::to_string(++next);
}

inline hf::Client open(const std::string& url, const std::string& query = {},
                       hf::EventSink events = {}) {
    return test_support::open(query.empty() ? url : url + "?" + query,
                              {.events = std::move(events)});
}

inline hf::Lease hold(const hf::Client& c, const std::string& name, hf::milliseconds wait = 10s) {
    return hold(*lock_of(c, name), wait);
}

/// Tries once and returns the words of the error; fails the test when it is granted.
inline std::string refused(const hf::Client& client, const std::string& name, errc expected) {
    hf::Diagnostics words;
    const auto lease =
        lock_of(client, name)->acquire({.wait = 0ms, .note = {}, .diagnostics = &words});
    REQUIRE_FALSE(lease.has_value());
    INFO(lease.error().message() << ": " << words.text());
    CHECK(lease.error() == expected);
    return words.text();
}

inline long long ms_since(boot_clock::time_point t) {
    return std::chrono::duration_cast<hf::milliseconds>(boot_clock::now() - t).count();
}

/// One server for the tests that leave it as it was.
Server& server();
hf::Client open_here(const std::string& query = {});
/// The URL of another user.
std::string url_of(const Server&, const std::string& user);
/// The URL through another port, that of a proxy for example.
std::string url_through(std::uint16_t port);
/// Of the row of a name.
std::string row(const std::string& columns, const std::string& name, const Server& at = server());
/// Whether it is held by nobody, by the server's clock.
bool is_free(const std::string& name, const Server& at = server());
/// Fails unless that is so within two seconds: a promise, whose trial is void where a stall takes
/// them.
void require_free(const std::string& name);
/// What a caller gets from the engine's connection.
hf::error_code acquire_on_engine(const hf::Client&, const std::string& name, hf::milliseconds wait);
/// The same, or by a connection of the caller's own.
hf::error_code acquire_by(bool lane, const hf::Client&, const std::string& name,
                          hf::milliseconds wait);
/// Its connections are there, and a further grant is one request.
void warm_up(const hf::Client&, const std::string& name);
/// Acquires and releases, by a connection of the caller's own or by the engine's.
void cycle(hf::Lock&, bool by_lane);
/// Lets `holdfast` in at a server with a password and TLS (which `tls` says in a query), by each
/// way that is meant to, and by no other; `dir` gets the file "right" with the password. Fails the
/// test where words show it.
void let_in_by_password(const Server&, const std::string& tls, const lab::TempDir& dir);
/// How many sessions we have there.
int sessions(const Server&);
/// A statement that locks the row of a name, and leaves it so.
std::string lock_row(const std::string& name);

/// Commits at that server wait for a replica, as `waiting` counts, until `end`: an acquire is no
/// grant meanwhile, and leaves nothing; and `lease`, which lasts for longer, is only not renewed.
void while_commits_wait(test_support::Trial&, const Server&, const hf::Client&, hf::Lease& lease,
                        const std::function<int()>& waiting, const std::function<void()>& end);

/// Somebody else's session, which runs statements and then `for_long` stays as it is.
class Foreign {
public:
    Foreign(const Server& at, const std::string& statements, std::chrono::seconds for_long = 20s);
    ~Foreign() { go(); }
    /// Ends it.
    void go();

private:
    const Server& at_;
    std::string id_;
    std::thread thread_;
};

}  // namespace sql_tests
