// Words that all files of these tests use: a server, clients, and what they may expect.
#pragma once
#include <holdfast/holdfast.hpp>
#include <map>
#include <string>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "holdfast/lab/postgres_server.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace postgresql_tests {

using namespace std::chrono_literals;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::boot_clock;
using hf::errc;
using hf::PreviousHolder;
using hf::ReleaseResult;
using test_support::cap;
using test_support::hold;
using test_support::lock_of;

/// One server for the tests that leave it as it was.
lab::PostgresServer& server();
/// A name that no other test uses.
std::string fresh(const std::string& what);

hf::Client open(const std::string& url, const std::string& query = {}, hf::EventSink = {});
hf::Client open_here(const std::string& query = {});
inline hf::Lease hold(const hf::Client& c, const std::string& name, hf::milliseconds wait = 10s) {
    return hold(*lock_of(c, name), wait);
}
/// Tries once and returns the words of the error; fails the test when it is granted.
std::string refused(const hf::Client&, const std::string& name, errc expected);
/// Fails unless nobody holds the name within two seconds: a promise, whose trial is void where a
/// stall takes them.
void require_free(const std::string& name);
long long ms_since(boot_clock::time_point);

}  // namespace postgresql_tests
