// Clients, locks and leases, for tests that cannot go on without them.
#pragma once
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>

#include "catch.hpp"

namespace test_support {

/// Opens it, or fails the test with the words for why not.
inline holdfast::Client open(const std::string& url, holdfast::ClientOptions options = {}) {
    holdfast::Diagnostics words;
    options.diagnostics = &words;
    auto client = holdfast::Client::open(url, options);
    INFO(words.text());
    REQUIRE(client.has_value());
    return *client;
}

inline std::unique_ptr<holdfast::Lock> lock_of(const holdfast::Client& client,
                                               const std::string& name,
                                               const holdfast::LockOptions& options = {}) {
    auto lock = client.make_lock(name, options);
    REQUIRE(lock.has_value());
    return std::move(*lock);
}

/// Acquires, or fails the test with the words for why not.
inline holdfast::Lease hold(holdfast::Lock& lock,
                            holdfast::milliseconds wait = std::chrono::seconds(10)) {
    holdfast::Diagnostics words;
    auto lease = lock.acquire({.wait = wait, .diagnostics = &words});
    INFO((lease ? std::string("held") : lease.error().message()) << ' ' << words.text());
    REQUIRE(lease.has_value());
    return std::move(*lease);
}

}  // namespace test_support
