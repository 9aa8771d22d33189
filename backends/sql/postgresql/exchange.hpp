// Turns steps into a statement: arrays of their values, and the rows that come back.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "errors.hpp"
#include "steps.hpp"

namespace holdfast::postgresql {

using sql::just_missed, sql::keys_of, sql::last_deadline, sql::look_within, sql::still_open;

inline std::string text(std::int64_t n) {
    return std::to_string(n);
}

inline std::string_view column(const pqxx::row& r, int at) {
    const auto f = r[static_cast<pqxx::row::size_type>(at)];
    return f.is_null() ? std::string_view() : std::string_view(f.c_str());
}

inline std::int64_t number(const pqxx::row& r, int at) {
    const auto f = r[static_cast<pqxx::row::size_type>(at)];
    return f.is_null() ? 0 : f.as<std::int64_t>();
}

inline void refuse(Connection& c, Step& s, const sql::Reply& said) {
    sql::refuse(c.shared(), s, said);
}

/// False: there is an error, which is now in all of them.
inline bool went_well(Connection& c, const sql::Reply& said, const Steps& steps) {
    return sql::went_well(c.shared(), said, steps);
}

inline std::string array_of(const std::vector<std::string>& texts) {
    ArrayText a;
    for (const auto& t : texts)
        a.add(std::string_view(t));
    return a.take();
}

template <class F>
inline std::string array(const Steps& steps, F&& value) {
    ArrayText a;
    for (const Step* s : steps)
        a.add(value(*s));
    return a.take();
}

inline std::string keys(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::string_view(s.key); });
}
inline std::string owners(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::string_view(s.owner); });
}
inline std::string ttls(const Steps& steps) {
    return array(steps, [](const Step& s) { return std::int64_t{s.ttl.count()}; });
}
inline std::string tokens(const Steps& steps) {
    return array(steps, [](const Step& s) { return s.token; });
}

/// Several waves if a name occurs more than once, each with distinct names.
template <class F>
inline void in_waves(Steps steps, F&& run) {
    while (!steps.empty()) {
        Steps wave, later;
        std::unordered_map<std::string_view, Step*> seen;
        for (Step* s : steps)
            (seen.try_emplace(s->key, s).second ? wave : later).push_back(s);
        run(wave);
        steps = std::move(later);
    }
}

/// Runs one statement for the steps, and gives each returned row to the step of its name. Steps
/// without a row stay open. Writes an error into all of them.
template <class F>
bool exchange(Connection& c, Sql sql, const Steps& steps, const std::vector<std::string>& p,
              F&& with_row) {
    const Said said = c.run(sql, p, last_deadline(steps));
    if (!went_well(c, said, steps)) return false;
    std::unordered_map<std::string_view, Step*> by_key;
    for (Step* s : steps)
        by_key.emplace(s->key, s);
    for (const auto& row : said.rows) {
        const auto at = by_key.find(column(row, 0));
        if (at != by_key.end()) with_row(*at->second, row);
    }
    return true;
}

/// Attempts of distinct names: tries those that may be free, looks at the others, and registers as
/// a waiter. `known`: rows that were read before.
void attempt_wave(Connection&, const Steps& wave, TableRows& known);

/// Attempts that need the whole row. Registers this client as a waiter for those that are busy.
void attempt_general(Connection&, const Steps&, TableRows& known);

}  // namespace holdfast::postgresql
