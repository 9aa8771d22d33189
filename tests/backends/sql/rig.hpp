// Words that the tests of both servers with SQL use: clients, and what they may expect.
#pragma once
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "client.hpp"

namespace sql_tests {

/// A name that no other test uses.
inline std::string fresh(const std::string& what) {
    static std::atomic<int> next{0};
    return what + "-" + std::to_string(++next);
}

inline holdfast::Client open(const std::string& url, const std::string& query = {},
                             holdfast::EventSink events = {}) {
    return test_support::open(query.empty() ? url : url + "?" + query,
                              {.events = std::move(events)});
}

inline holdfast::Lease hold(const holdfast::Client& c, const std::string& name,
                            holdfast::milliseconds wait = std::chrono::seconds(10)) {
    return test_support::hold(*test_support::lock_of(c, name), wait);
}

/// Tries once and returns the words of the error; fails the test when it is granted.
inline std::string refused(const holdfast::Client& client, const std::string& name,
                           holdfast::errc expected) {
    holdfast::Diagnostics words;
    const auto lease =
        test_support::lock_of(client, name)
            ->acquire({.wait = std::chrono::milliseconds(0), .note = {}, .diagnostics = &words});
    REQUIRE_FALSE(lease.has_value());
    INFO(lease.error().message() << ": " << words.text());
    CHECK(lease.error() == expected);
    return words.text();
}

inline long long ms_since(holdfast::boot_clock::time_point t) {
    return std::chrono::duration_cast<holdfast::milliseconds>(holdfast::boot_clock::now() - t)
        .count();
}

}  // namespace sql_tests
