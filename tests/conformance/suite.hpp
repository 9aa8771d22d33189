// Words that all files of the suite use.
#pragma once
#include <holdfast/spi/registry.hpp>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "harness.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "trial.hpp"

namespace suite {

using hf::Capability;
using hf::errc;
using test_support::cap;
using test_support::hold;
using test_support::holders_of;
using test_support::lock_of;
using test_support::this_trial;
using test_support::Trial;
using test_support::waiters_of;

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

bool has(Capability);

/// Fails unless the server itself says, within the time, that the name is neither held nor queued
/// for.
void require_clean(const std::string& name, hf::milliseconds within = std::chrono::seconds(1));
/// Renews it until each node has it, where there are several: a majority is enough to be granted,
/// what is still on its way to another would come behind what is done next, and a node that was
/// still being connected has it from a renewal only.
void wait_held_everywhere(hf::Lease&);
/// How many this process has.
std::size_t threads_now();
std::size_t descriptors_now();
/// Nobody holds it, as the server says; false also when it does not answer.
bool is_free(const hf::Client&, const std::string& name);
/// How many wait for the name, as the server sees it; none while it does not answer.
std::optional<std::size_t> waiters_of(const std::string& name);

/// How a process of worker.cpp is started; its files, and its log, are in `folder`.
lab::ProcessOptions worker_in(const std::string& mode, const std::string& url,
                              const std::string& name, const lab::TempDir& folder,
                              const std::string& number = "0", const std::string& rounds = "0");
/// Fails unless it ends by itself, with that code.
void require_ended(lab::Process& worker, int code = 0);

/// Time on the clock that leases use.
inline hf::boot_clock::time_point now() {
    return hf::boot_clock::now();
}
inline long long ms(hf::boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

}  // namespace suite
