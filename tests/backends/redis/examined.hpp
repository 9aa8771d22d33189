// What `holdfast doctor` has to say against servers of class D: Sentinels' and a cluster's.
#pragma once
#include <holdfast/holdfast.hpp>
#include <map>
#include <string>

#include "catch.hpp"

namespace redis_tests {

/// By the id of each finding that is not sound, what was found where.
inline std::multimap<std::string, std::string> not_sound(const std::string& url) {
    holdfast::Diagnostics words;
    const auto found = holdfast::Client::open(url).value().examine(&words);
    INFO(words.text());
    REQUIRE(found.has_value());
    CHECK(found->capabilities.safety == holdfast::SafetyClass::d);
    std::multimap<std::string, std::string> out;
    for (const holdfast::Finding& f : found->findings)
        // What this machine is like is no matter of the servers.
        if (f.verdict != holdfast::Verdict::sound && f.id.starts_with("redis."))
            out.emplace(f.id, f.where + ": " + f.found);
    return out;
}

}  // namespace redis_tests
