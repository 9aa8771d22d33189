// Words that all files of these tests use: a server, clients, and what they may expect.
#pragma once
#include <holdfast/holdfast.hpp>
#include <map>
#include <string>

#include "../sql/rig.hpp"
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
using sql_tests::fresh, sql_tests::hold, sql_tests::ms_since, sql_tests::open, sql_tests::refused;
using test_support::cap;
using test_support::hold;
using test_support::lock_of;

/// One server for the tests that leave it as it was.
lab::PostgresServer& server();
hf::Client open_here(const std::string& query = {});
/// Fails unless nobody holds the name within two seconds: a promise, whose trial is void where a
/// stall takes them.
void require_free(const std::string& name);

}  // namespace postgresql_tests
