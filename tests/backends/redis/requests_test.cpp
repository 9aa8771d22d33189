// The README says exactly what is sent; here the server's own record is compared with it.
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
                t.a.sent = boot_clock::now();
                t.a.deadline = t.a.sent + 2s;
                if (by_lane)
                    lane->attempt(t.a);
                else
                    rig.attempt(t);
                REQUIRE(t.granted());
                auto h = t.held();
                if (by_lane)
                    lane->release(h);
                else
                    h.released = rig.release(t);
                CHECK(h.released == holdfast::ReleaseResult::released);
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
