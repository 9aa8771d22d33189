// The README says exactly what each node is sent; here the nodes' own records are compared with it.
#include "requests.hpp"

#include <algorithm>
#include <array>
#include <future>

#include "five.hpp"
#include "readme.hpp"
#include "trial.hpp"

using namespace redlock_tests;

namespace {

std::string shown(const std::vector<std::string>& command, const std::string& owner) {
    const auto& s = holdfast::redlock::Scripts::all();
    std::string out;
    for (std::size_t i = 0; i < command.size(); ++i) {
        std::string word = command[i];
        if (word == owner)
            word = "OWNER";
        else if (word == s.enter.one.sha())
            word = "(enter)";
        else if (word == s.release.one.sha())
            word = "(compare-and-delete)";
        else if (word == s.give_back.one.sha())
            word = "(give_back)";
        else if (word.find_first_not_of("0123456789") == word.npos && word.size() == 16)
            word = "TOKEN";
        else if (word.find_first_not_of("0123456789") == word.npos && word.size() == 13)
            word = "MS";
        out += (i == 0 ? "" : " ") + word;
    }
    return out;
}

}  // namespace

TEST_CASE("requests: one acquire and release, exactly as the README has it, at every node") {
    test_support::Trial& trial = test_support::this_trial();
    const auto rows = test_support::requests_of(REDLOCK_README);
    REQUIRE(rows.size() == 2);
    for (const auto& [mode, expected] : rows)
        for (const bool async : {false, true}) {
            INFO(mode << (async ? " by the engine" : " by lane"));
            Five five;
            const auto client = open(five.url("durable=yes&node_timeout=2s&" + mode));
            const auto lock = lock_of(client, "N", {.renew = false});
            const auto cycle = [&] {
                std::string owner;
                if (async) {
                    std::promise<hf::Lease> got;
                    lock->async_acquire({.wait = 5s}, [&](hf::error_code, hf::Lease l) {
                        got.set_value(std::move(l));
                    });
                    auto lease = got.get_future().get();
                    REQUIRE(lease.valid());
                    owner = lease.owner_id();
                    std::promise<void> done;
                    lease.async_release(hf::Outcome::done, [&](hf::error_code, hf::ReleaseResult) {
                        done.set_value();
                    });
                    done.get_future().wait();
                } else {
                    auto lease = hold(*lock);
                    owner = lease.owner_id();
                    CHECK(lease.release() == hf::ReleaseResult::released);
                }
                return owner;
            };
            // A cycle needs three nodes only: the others might still hear of a script later.
            const auto& scripts = holdfast::redlock::Scripts::all();
            for (std::size_t i = 0; i < five.size(); ++i)
                for (const auto* script :
                     {&scripts.enter.one, &scripts.release.one, &scripts.give_back.one})
                    five[i].cli({"SCRIPT", "LOAD", std::string(script->text())});
            // Connects to all five.
            std::uint64_t before = 0;
            for (int i = 0; i < 50 && client.stats().requests - before != 10; ++i) {
                before = client.stats().requests;
                cycle();
                lab::wait_until([&] { return five.holding("N") == 0; }, 5s, "quiet");
                (void)lab::reached([&] { return client.stats().requests - before >= 10; }, 1s);
            }
            before = client.stats().requests;
            std::vector<lab::RedisMonitor> monitors;
            for (std::size_t i = 0; i < 5; ++i)
                monitors.push_back(five[i].monitor());
            const auto owner = cycle();
            lab::wait_until([&] { return client.stats().requests - before >= 10; }, 5s, "sent");
            int commands = 0;
            std::array<std::string, 5> all;
            for (std::size_t i = 0; i < 5; ++i) {
                std::string& sent = all.at(i);
                for (const auto& line : monitors[i].stop()) {
                    // Not what an earlier cycle still owed to a node that a majority did not need.
                    const bool ours = std::find(line.command.begin(), line.command.end(), owner) !=
                                      line.command.end();
                    if (line.client == "lua" || !ours) continue;
                    ++commands;
                    sent += (sent.empty() ? "" : "; ") + shown(line.command, owner);
                }
            }
            // Once a majority has answered, a node has 5 ms to answer as well; else the release is
            // repeated there.
            if (!trial.holds(commands <= 10, 20ms, "no release is repeated")) return;
            for (std::size_t i = 0; i < 5; ++i) {
                INFO("node " << i);
                CHECK(all.at(i) == expected);
            }
            CHECK(commands == 10);
        }
}
