// Clients, locks and leases, for tests that cannot go on without them.
#pragma once
#include <holdfast/holdfast.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

/// How many hold it, or wait for it, as the server sees it; none while it does not answer, as on a
/// machine that is busy with something else.
inline std::optional<std::size_t> holders_of(const holdfast::Client& client,
                                             std::string_view name) {
    const auto seen = client.inspect(name);
    return seen ? std::optional(seen->holders.size()) : std::nullopt;
}
inline std::optional<std::size_t> waiters_of(const holdfast::Client& client,
                                             std::string_view name) {
    const auto seen = client.inspect(name);
    return seen ? std::optional(seen->waiters.size()) : std::nullopt;
}

}  // namespace test_support
