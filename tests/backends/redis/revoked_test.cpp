// Rights that end while a lease is held: its holder is at risk, and told of the loss in time. A
// password that changes with its file costs nothing.
#include <atomic>
#include <fstream>

#include "catch.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "rig.hpp"
#include "trial.hpp"

using namespace redis_tests;
using holdfast::LeaseState;
namespace lab = holdfast::lab;

namespace {

RedisServer with_user() {
    lab::RedisOptions options;
    options.users = {"app on >word ~* &* +@all"};
    return RedisServer::start(options);
}

void kill_connections(RedisServer& server) {
    server.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
}

}  // namespace

TEST_CASE("revoked: user, rights or password end under a held lease: at risk, then lost in time") {
    test_support::Trial& trial = test_support::this_trial();
    auto server = with_user();
    const std::string how = GENERATE("the user", "the rights", "the password");
    INFO(how);
    std::atomic<boot_clock::time_point> lost_at{boot_clock::time_point{}};
    std::atomic<int> at_risk{0};
    holdfast::ClientOptions options;
    options.events = [&](const holdfast::Event& e) {
        if (e.kind == holdfast::Event::Kind::at_risk) ++at_risk;
    };
    auto client =
        holdfast::Client::open(
            "redis://app:word@127.0.0.1:" + std::to_string(server.port()) + "?ttl=3s", options)
            .value();
    auto lease = client.make_lock("a").value()->acquire().value();
    const std::stop_callback lost(lease.lost(), [&] { lost_at = boot_clock::now(); });
    if (how == "the user")
        server.cli({"ACL", "DELUSER", "app"});
    else if (how == "the rights")
        server.cli({"ACL", "SETUSER", "app", "-@all"});
    else
        server.cli({"ACL", "SETUSER", "app", "resetpass", ">another"});
    // Connections outlive their password, but not their user.
    if (how == "the password") kill_connections(server);
    lab::wait_until([&] { return lease.state() == LeaseState::at_risk; }, 10s, "at risk");
    CHECK(lease.valid());
    const auto before = boot_clock::now();
    const auto left = milliseconds(server.cli({"PTTL", "a"}).integer);
    lab::wait_until([&] { return lease.state() == LeaseState::lost; }, 10s, "lost");
    lab::wait_until([&] { return lost_at.load() != boot_clock::time_point{}; }, 10s, "told");
    trial.within(lost_at.load() - before, left, "the loss is told before the key ends");
    lab::wait_until([&] { return at_risk.load() > 0; }, 10s, "reported");
    const auto again = client.make_lock("a").value()->try_acquire();
    CHECK(again.error() == errc::denied);
}

TEST_CASE("revoked: a password that changes with its file costs no lease") {
    auto server = with_user();
    const lab::TempDir dir;
    const auto write = [&](const char* word) { std::ofstream(dir / "word") << word; };
    write("word");
    const auto path = (dir / "word").string();
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    auto client = holdfast::Client::open("redis://app@127.0.0.1:" + std::to_string(server.port()) +
                                         "?ttl=3s&password_file=" + path)
                      .value();
    auto lease = client.make_lock("a").value()->acquire().value();
    write("another");
    server.cli({"ACL", "SETUSER", "app", "resetpass", ">another"});
    kill_connections(server);
    lab::wait_until([&] { return lease.renew().has_value(); }, 10s, "renewed");
    CHECK(lease.release() == holdfast::ReleaseResult::released);
}
