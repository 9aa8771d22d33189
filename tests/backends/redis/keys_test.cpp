// Names and keys: two locks never share one, and all keys of a lock share a slot.
#include <fstream>
#include <set>
#include <sstream>

#include "../../models/redis/checked_files.hpp"
#include "catch.hpp"
#include "protocol/keys.hpp"
#include "protocol/scripts.hpp"
#include "redis_lua.hpp"
#include "rig.hpp"

using namespace holdfast::redis;
using namespace redis_tests;

namespace {

std::string tag(const std::string& key) {
    const auto open = key.find('{');
    const auto close = open == key.npos ? key.npos : key.find('}', open + 1);
    return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

const std::vector<std::string> odd_names{
    "a",     "a b",   "{a}",        "x{a}y", "{}",     "{",   "}",     "a}b", "{a",
    "}{",    "{{a}}", "{a}{b}",     "*",     "a\\b",   "é",   "[x]?",  "a:b", "a'\"",
    "hf:s:", "1:",    "\r\n*1\r\n", "%s",    "{a}:hf", "::x", "}:h{a}"};

}  // namespace

TEST_CASE("keys: all different, siblings in one slot") {
    std::set<std::string> seen;
    for (const auto& name : odd_names) {
        REQUIRE_FALSE(reserved("", name));
        Keys k;
        k.assign("", name);
        for (const auto* key : {&k.lock, &k.state, &k.queue, &k.waiters, &k.tombs})
            CHECK(seen.insert(*key).second);
        // Without a tag of its own a name with '}' cannot be spread by slot.
        if (tag(name) != name || name.find('}') == name.npos)
            for (const auto* key : {&k.state, &k.queue, &k.waiters, &k.tombs})
                CHECK(tag(*key) == tag(k.lock));
        const auto lock = lock_of_state(k.state);
        REQUIRE(lock);
        CHECK(*lock == name);
        CHECK_FALSE(lock_of_state(k.queue));
    }
}

TEST_CASE("keys: what looks like a sibling key is refused") {
    CHECK(reserved("", "{a}:hf:s"));
    CHECK(reserved("", "{a}:hf:q:b"));
    CHECK(reserved("{a}:", "hf:s"));
    CHECK(reserved("{a", "}:hf:s"));
    CHECK_FALSE(reserved("app:", "hf:s"));
}

TEST_CASE("keys: every odd name is a lock of its own") {
    auto server = RedisServer::start();
    Rig rig(server.url());
    std::vector<std::unique_ptr<Try>> all;
    for (const auto& name : odd_names) {
        CHECK_FALSE(rig.backend->check_name(name));
        all.push_back(std::make_unique<Try>(name));
        CHECK(rig.attempt(*all.back()).granted());
    }
    const auto names = rig.list("");
    REQUIRE(names.has_value());
    CHECK(std::set<std::string>(names->begin(), names->end()) ==
          std::set<std::string>(odd_names.begin(), odd_names.end()));
    for (const auto& t : all) {
        CHECK(server.cli({"GET", t->name}).text == t->owner);
        CHECK(rig.release(*t) == holdfast::ReleaseResult::released);
    }
    CHECK(rig.list("").value().empty());
    CHECK(rig.backend->check_name("{a}:hf:s") == errc::bad_name);
}

TEST_CASE("scripts: numbers become texts by string.format only") {
    for (const std::string_view text : std::vector<std::string_view>{
             lua::clock,       lua::state,       lua::for_each,    lua::quick,
             lua::line,        lua::hand_over,   lua::enter,       lua::enter_one,
             lua::enter_many,  lua::quick_leave, lua::leave,       lua::leave_many,
             lua::renew,       lua::units,       lua::enter_units, lua::leave_units,
             lua::renew_units, lua::holders,     lua::inspect,     lua::tell_holders}) {
        for (const char* number : {"now_us", "now", "f", "last", "left", "t[1]", "t[2]", "rank"})
            for (const std::string& joined :
                 {std::string(".. ") + number + " ..", std::string(".. ") + number + "\n",
                  std::string(" ") + number + " ..", std::string("..") + number}) {
                // `left` and `place` are texts in enter; they were formatted where they were read.
                if (std::string(number) == "left" && text.find("left = int(") != std::string::npos)
                    continue;
                INFO(joined << " in " << text);
                CHECK(text.find(joined) == std::string::npos);
            }
        CHECK(text.find("tostring") == std::string::npos);
    }
}

TEST_CASE("scripts: they and the operations are those that the model has explored") {
    std::ifstream file(REDIS_MODEL);
    std::stringstream all;
    all << file.rdbuf();
    REQUIRE_FALSE(all.str().empty());
    INFO("one of them has changed: redis_model --record " << REDIS_MODEL);
    const auto check = [&](std::string_view name, const std::string& sha) {
        CHECK_THAT(all.str(), ContainsSubstring("\n" + std::string(name) + " " + sha + "\n"));
    };
    for (const auto& [name, script] : checked_scripts())
        check(name, script->sha());
    for (const char* name : redis_model::checked_files) {
        std::ifstream source(std::string(REDIS_PROTOCOL "/") + name);
        std::stringstream text;
        text << source.rdbuf();
        check(name, Script(text.str()).sha());
    }
}
