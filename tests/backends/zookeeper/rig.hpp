// Words that the tests of real servers share.
#pragma once
#include <holdfast/holdfast.hpp>
#include <string>

#include "catch.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/zookeeper_server.hpp"
#include "trial.hpp"
#include "zookeeper_client.hpp"

namespace zookeeper_tests {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using holdfast::testing::ZooKeeperClient;
using lab::ZooKeeperServers;

inline constexpr bool instrumented =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif
inline constexpr int patience = instrumented ? 3 : 1;

/// One server for all tests that do not harm it.
inline ZooKeeperServers& server() {
    static ZooKeeperServers one = ZooKeeperServers::start({.config = {"forceSync=no"}});
    return one;
}

inline hf::Client open(const std::string& url, hf::ClientOptions options = {}) {
    hf::Diagnostics words;
    options.diagnostics = &words;
    auto client = hf::Client::open(url, options);
    INFO(words.text());
    REQUIRE(client.has_value());
    return *client;
}

inline std::unique_ptr<hf::Lock> lock_of(const hf::Client& client, const std::string& name,
                                         const hf::LockOptions& options = {}) {
    auto lock = client.make_lock(name, options);
    REQUIRE(lock.has_value());
    return std::move(*lock);
}

inline hf::Lease hold(hf::Lock& lock, hf::milliseconds wait = 10s) {
    hf::Diagnostics words;
    auto lease = lock.acquire({.wait = wait, .diagnostics = &words});
    INFO(words.text());
    INFO((lease ? std::string("held") : lease.error().message()));
    REQUIRE(lease.has_value());
    return std::move(*lease);
}

inline hf::boot_clock::time_point now() {
    return hf::boot_clock::now();
}
inline long long ms(hf::boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

}  // namespace zookeeper_tests
