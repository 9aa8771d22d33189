// Words that the tests of real servers share.
#pragma once
#include <holdfast/holdfast.hpp>
#include <string>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
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
using test_support::cap;
using test_support::hold;
using test_support::holders_of;
using test_support::lock_of;
using test_support::open;
using test_support::waiters_of;

/// One server for all tests that do not harm it.
inline ZooKeeperServers& server() {
    static ZooKeeperServers one = ZooKeeperServers::start({.config = {"forceSync=no"}});
    return one;
}

inline hf::boot_clock::time_point now() {
    return hf::boot_clock::now();
}
inline long long ms(hf::boot_clock::duration d) {
    return std::chrono::duration_cast<hf::milliseconds>(d).count();
}

}  // namespace zookeeper_tests
