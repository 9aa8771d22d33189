// Words that all files of these tests use: a server, clients, and what they may expect.
#pragma once
#include <holdfast/holdfast.hpp>
#include <string>
#include <thread>

#include "../sql/rig.hpp"
#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "holdfast/lab/error.hpp"
#include "holdfast/lab/mariadb_server.hpp"
#include "holdfast/lab/proxy.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace mysql_tests {

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
lab::MariadbServer& server();
hf::Client open_here(const std::string& query = {});
/// The URL of `server` for another user, and through another port where it is not 0.
std::string url_of(const lab::MariadbServer& server, const std::string& user,
                   std::uint16_t port = 0);
/// Of the row of a name.
std::string row(const std::string& columns, const std::string& name,
                const lab::MariadbServer& at = server());
/// Whether it is held by nobody, by the server's clock.
bool is_free(const std::string& name, const lab::MariadbServer& at = server());
/// Fails unless that is so within two seconds: a promise, whose trial is void where a stall takes
/// them.
void require_free(const std::string& name);
/// What a caller gets from the engine's connection, not from one of its own.
hf::error_code acquire_on_engine(const hf::Client&, const std::string& name, hf::milliseconds wait);

/// Somebody else's session, which runs statements and then `for_long` stays as it is.
class Foreign {
public:
    Foreign(const lab::MariadbServer& at, const std::string& statements, std::chrono::seconds);
    ~Foreign() { go(); }
    /// Ends it.
    void go();

private:
    const lab::MariadbServer& at_;
    std::string id_;
    std::thread thread_;
};

}  // namespace mysql_tests
