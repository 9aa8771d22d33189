// The README says exactly what is sent; here the server's own record is compared with it.
#include <set>

#include "catch.hpp"
#include "protocol/scripts.hpp"
#include "readme.hpp"
#include "rig.hpp"

using namespace redis_tests;

namespace {

std::string shown(const std::vector<std::string>& command, const Try& t) {
    const auto& s = holdfast::redis::Scripts::all();
    std::string out;
    for (std::size_t i = 0; i < command.size(); ++i) {
        std::string word = command[i];
        if (word == t.owner)
            word = "OWNER";
        else if (word == s.enter_one.sha())
            word = "(enter)";
        else if (word == s.leave_one.sha())
            word = "(leave)";
        else if (word == s.plain_release.sha())
            word = "(compare-and-delete)";
        else if (word.empty())
            word = "''";
        else if (word == "1:0" + std::to_string(t.token()) + ":0r:" ||
                 word == "1:" + std::to_string(t.token()) + ":0r:")
            word = "STATE";
        else if (word.size() == 13 && word.find_first_not_of("0123456789") == word.npos)
            word = "MS";
        out += (i == 0 ? "" : " ") + word;
    }
    return out;
}

}  // namespace

TEST_CASE("requests: one acquire and release, exactly as the README has it") {
    const auto rows = test_support::requests_of(REDIS_README);
    REQUIRE(rows.size() == 3);
    for (const auto& [mode, expected] : rows)
        for (const bool by_lane : {true, false}) {
            INFO(mode << (by_lane ? " by lane" : " by the engine"));
            auto server = RedisServer::start();
            Rig rig(server.url(), mode);
            auto lane = rig.backend->open_lane();
            const auto cycle = [&](Try& t) {
                REQUIRE((by_lane ? attempt(*lane, t) : rig.attempt(t)).granted());
                CHECK((by_lane ? release(*lane, t) : rig.release(t)) ==
                      holdfast::ReleaseResult::released);
            };
            Try warm("N"), t("N");
            cycle(warm);  // connects, and makes the scripts known
            const auto before = rig.backend->requests();
            auto monitor = server.monitor();
            cycle(t);
            std::string sent;
            for (const auto& line : monitor.stop())
                if (line.client != "lua")
                    sent += (sent.empty() ? "" : "; ") + shown(line.command, t);
            CHECK(sent == expected);
            CHECK(rig.backend->requests() - before == 2);
        }
}

TEST_CASE("requests: each connection has the client's name") {
    auto server = RedisServer::start();
    const auto names = [&] {
        std::multiset<std::string> found;
        const std::string all = server.cli({"CLIENT", "LIST"}).text;
        for (auto at = all.find(" name="); at != all.npos; at = all.find(" name=", at + 1)) {
            const auto from = at + 6;
            found.insert(all.substr(from, all.find(' ', from) - from));
        }
        return found;
    };
    // One without a name is the connection that asks.
    for (const auto& [query, name] :
         {std::pair{"wait=queue", "holdfast"}, std::pair{"client_name=billing", "billing"},
          std::pair{"client_name=", ""}}) {
        INFO(query);
        Rig rig(server.url(), query);
        auto lane = rig.backend->open_lane();
        Try t("a"), w("a", 10s, true);
        REQUIRE(attempt(*lane, t).granted());
        REQUIRE(rig.attempt(w).busy());
        // The lane's, the engine's, and that of a waiter's messages.
        CHECK(names() == std::multiset<std::string>{"", name, name, name});
        CHECK(rig.withdraw(w) == holdfast::error_code());
        CHECK(rig.release(t) == holdfast::ReleaseResult::released);
    }
}
