// Words that all files of the suite use.
#pragma once
#include <holdfast/spi/registry.hpp>

#include "catch.hpp"
#include "harness.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "trial.hpp"

namespace suite {

using hf::Capability;
using hf::errc;
using test_support::this_trial;
using test_support::Trial;

inline Harness& backend() {
    return Harness::instance();
}

/// A name that no other test uses.
std::string fresh_name(const std::string& what);

/// A client straight to the server; fails the test when it cannot be opened.
hf::Client open(const std::string& query = {}, hf::ClientOptions options = {});
/// The same through the fault proxy.
hf::Client open_proxied(const std::string& query = {});
hf::Client open_url(const std::string& url, hf::ClientOptions options = {});

std::unique_ptr<hf::Lock> lock_of(const hf::Client&, const std::string& name,
                                  const hf::LockOptions& = {});
/// Acquires, or fails the test.
hf::Lease hold(hf::Lock&, hf::milliseconds wait = 10s);

bool has(Capability);

/// Fails unless the server itself says, within the time, that the name is neither held nor queued
/// for.
void require_clean(const std::string& name, hf::milliseconds within = std::chrono::seconds(1));
/// Waits until each node has it, where there are several: a majority is enough to be granted, and
/// what is still on its way to another would come behind what is done next.
void wait_held_everywhere(const std::string& name);
/// How many this process has.
std::size_t threads_now();
std::size_t descriptors_now();
/// How many wait for the name, as the server sees it.
std::size_t waiters_of(const std::string& name);

/// Time on the clock that leases use.
inline hf::boot_clock::time_point now() {
    return hf::boot_clock::now();
}
inline long long ms(hf::boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

/// Instrumented and loaded machines are slow: caps are multiplied by this, claims are not.
inline constexpr int patience =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    3;
#else
    1;
#endif

}  // namespace suite
