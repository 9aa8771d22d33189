// Checks of a deployment: pure functions from facts to findings, so that a test can give them any
// deployment. A backend collects the facts from its servers.
#pragma once
#include <charconv>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/examination.hpp"
#include "holdfast/export.hpp"

namespace holdfast::spi {

/// What one server reports of itself, under the server's own names. What it did not answer is
/// missing.
struct Facts {
    std::string where;  ///< of the findings; empty: the deployment
    std::map<std::string, std::string, std::less<>> values;

    bool has(std::string_view key) const { return values.find(key) != values.end(); }
    /// Empty where it is missing.
    std::string_view text(std::string_view key) const {
        const auto at = values.find(key);
        return at == values.end() ? std::string_view() : std::string_view(at->second);
    }
    /// None where it is missing or does not begin with a number.
    std::optional<long long> number(std::string_view key) const {
        const std::string_view t = text(key);
        long long n = 0;
        const auto [end, bad] = std::from_chars(t.data(), t.data() + t.size(), n);
        if (bad != std::errc()) return {};
        return n;
    }
    void set(std::string key, std::string value) {
        values.insert_or_assign(std::move(key), std::move(value));
    }
    void set(std::string key, long long value) { set(std::move(key), std::to_string(value)); }
};

struct Judgement {
    Verdict verdict = Verdict::sound;
    std::string found;
};
inline Judgement sound(std::string found = {}) {
    return {Verdict::sound, std::move(found)};
}
inline Judgement slow(std::string found) {
    return {Verdict::slow, std::move(found)};
}
inline Judgement unknown(std::string found) {
    return {Verdict::unknown, std::move(found)};
}
inline Judgement unsafe(std::string found) {
    return {Verdict::unsafe, std::move(found)};
}

/// One row of a backend's table. The views must be to static storage.
struct Check {
    std::string_view id;           ///< "redis.fsync"
    std::string_view consequence;  ///< continues the sentence of `found`: "a crash can lose grants"
    std::string_view remedy;       ///< "CONFIG SET appendfsync always, and in redis.conf"
    std::optional<Judgement> (*judge)(const Facts&);  ///< none: it does not apply here
};

/// Adds the findings of these checks for one server, in the order of the table.
inline void judge(std::span<const Check> checks, const Facts& facts, std::vector<Finding>& into) {
    for (const Check& c : checks) {
        auto judgement = c.judge(facts);
        if (!judgement) continue;
        Finding f;
        f.id = c.id;
        f.verdict = judgement->verdict;
        f.where = facts.where;
        f.found = std::move(judgement->found);
        if (f.verdict != Verdict::sound) {
            f.consequence = c.consequence;
            f.remedy = c.remedy;
        }
        into.push_back(std::move(f));
    }
}

/// Whether the checks with these ids are all sound or do not apply.
inline bool all_sound(std::span<const Finding> findings,
                      std::initializer_list<std::string_view> ids) {
    for (const Finding& f : findings)
        for (const std::string_view id : ids)
            if (f.id == id && f.verdict != Verdict::sound) return false;
    return true;
}

/// Checks for all backends: of the configuration and of this machine.
HOLDFAST_EXPORT const std::vector<Check>& local_checks();

}  // namespace holdfast::spi
