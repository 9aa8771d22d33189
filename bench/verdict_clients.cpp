// Verdicts on what a client does wrong by itself. They share one measure: how many of the runs of a
// form showed the fault.
#include <fmt/format.h>

#include <optional>

#include <algorithm>

#include "verdict_rule.hpp"

namespace holdfast::bench {

namespace {

bool of_a_document(const Row& row) {
    return row.variant.rfind("doc:", 0) == 0;
}

/// "2 of 2 with redis, sqlite; 0 of 2 with memory": those with the same figure together.
std::string counts(const std::vector<const Row*>& rows) {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const Row* row : rows) {
        const auto figure = fmt::format("{:.0f} of {} with ", row->value, row->n);
        const auto same = std::find_if(groups.begin(), groups.end(),
                                       [&](const auto& g) { return g.first == figure; });
        if (same == groups.end())
            groups.emplace_back(figure, label(*row));
        else
            same->second += ", " + label(*row);
    }
    std::string all;
    for (const auto& [figure, who] : groups)
        all += (all.empty() ? "" : "; ") + figure + who;
    return all;
}

/// The forms that are said to be at fault, and all others, in words.
struct Sides {
    std::vector<const Row*> faulty, sound;
    bool all_caught = true, none_caught = true;
};

template <class IsFaulty>
Sides sides(const std::vector<const Row*>& rows, IsFaulty is_faulty) {
    Sides s;
    for (const Row* row : rows) {
        if (is_faulty(*row)) {
            s.faulty.push_back(row);
            s.all_caught = s.all_caught && caught(*row);
        } else {
            s.sound.push_back(row);
            s.none_caught = s.none_caught && row->value == 0;
        }
    }
    return s;
}

/// The usual rule: every faulty form shows it, no other one does.
Answer judge_sides(const Sides& s, const char* what) {
    if (s.faulty.empty() || s.sound.empty()) return {};
    const auto figure =
        fmt::format("runs with {}: {}; against {}", what, counts(s.faulty), counts(s.sound));
    return {s.all_caught && s.none_caught ? Finding::confirmed : Finding::refuted, figure};
}

// --- C4a

Answer judge_c4a(const Rows& rows) {
    const auto of = [&](const char* variant, const char* metric) {
        return find(rows, {"C4a", "redlock", variant, metric});
    };
    const Row* turn = of("doc: in turn", "cycle, all nodes up");
    const Row* turn_hung = of("doc: in turn", "cycle, one node hung");
    const Row* once = of("no token", "cycle, all nodes up");
    const Row* once_hung = of("no token", "cycle, one node hung");
    const Row* first = of("no token", "first cycle after a node hung");
    if (turn == nullptr || turn_hung == nullptr || once == nullptr || once_hung == nullptr ||
        first == nullptr)
        return {};
    const auto figure = fmt::format(
        "acquire + release: in turn {:.2f} ms, with one node hung {:.1f} ms; at once {:.2f} ms, "
        "with one node hung {:.2f} ms, the first time {:.1f} ms",
        turn->value, turn_hung->value, once->value, once_hung->value, first->value);
    // A hung node is what the order decides about; over loopback the round trips are nearly free.
    const bool pays = turn_hung->value > 3 * turn->value;
    const bool does_not = once_hung->value < turn_hung->value / 3;
    if (pays && does_not)
        return {Finding::only_if, figure + ": it works, but holds only if no node hangs"};
    return {pays ? Finding::refuted : Finding::confirmed, figure};
}

// --- C9

Answer judge_c9(const Rows& rows) {
    return judge_sides(sides(find_all(rows, {"C9", {}, {}, "held for ever after a crash"}),
                             [](const Row& r) { return r.variant == "doc: SETNX, EXPIRE"; }),
                       "a lock held for ever");
}

// --- C10

Answer judge_c10(const Rows& rows) {
    return judge_sides(
        sides(find_all(rows, {"C10", {}, {}, "somebody else's lock freed"}), of_a_document),
        "somebody else's lock freed");
}

// --- C11

Answer judge_c11(const Rows& rows) {
    const auto off = find_all(rows, {"C11", {}, {}, "another at work: renewal off"});
    const auto on = find_all(rows, {"C11", {}, {}, "another at work: renewal on"});
    const auto longer = find_all(rows, {"C11", {}, {}, "another at work: ttl x 5"});
    if (off.empty() || on.empty() || longer.empty()) return {};
    const auto everything = [](const Row&) { return true; };
    const auto nothing = [](const Row&) { return false; };
    const Sides without = sides(off, everything);
    const Sides with = sides(on, nothing), long_ttl = sides(longer, nothing);
    double least = -1, most = 0;
    for (const Row* row :
         find_all(rows, {"C11", {}, {}, "time without a holder after a crash, ttl x 5"})) {
        const Row* shorter =
            find(rows, {"C11", row->backend, row->variant, "time without a holder after a crash"});
        if (shorter == nullptr || shorter->value <= 0) continue;
        const double times = row->value / shorter->value;
        least = least < 0 ? times : std::min(least, times);
        most = std::max(most, times);
    }
    const auto figure = fmt::format(
        "runs with another at work during a job of 3 x ttl: without renewal {}; with it {}; with "
        "a ttl five times as long {}, and then {:.1f} to {:.1f} times as long without a holder "
        "after a crash",
        counts(off), counts(on), counts(longer), least, most);
    if (!without.all_caught || !with.none_caught || !long_ttl.none_caught)
        return {Finding::refuted, figure};
    if (least < 2) return {Finding::only_if, figure + ": the price was not seen everywhere"};
    return {Finding::confirmed, figure};
}

// --- C11a

Answer judge_c11a(const Rows& rows) {
    const auto kept = find_all(rows, {"C11a", {}, {}, "still held after 8 x ttl"});
    const auto ended = find_all(rows, {"C11a", {}, {}, "ended by max_hold"});
    if (kept.empty() || ended.empty()) return {};
    const bool any =
        std::any_of(kept.begin(), kept.end(), [](const Row* row) { return row->value > 0; });
    const bool all_ended =
        std::all_of(ended.begin(), ended.end(), [](const Row* row) { return caught(*row); });
    const auto figure = fmt::format(
        "runs in which a hanging worker still had the lock after 8 x ttl: {}; in which max_hold "
        "ended it: {}",
        counts(kept), counts(ended));
    if (!any) return {Finding::confirmed, figure};
    if (all_ended) return {Finding::only_if, figure + ": holds only if max_hold is set"};
    return {Finding::refuted, figure};
}

// --- C19

/// What was seen of the rows on one database.
struct RowAsALock {
    bool as_said = true, freed_at_work = false;
    std::string figure;
};

std::optional<RowAsALock> row_as_a_lock(const Rows& rows, const char* backend) {
    const auto of = [&](const char* variant, const char* metric) {
        return find(rows, {"C19", backend, variant, metric});
    };
    RowAsALock seen;
    std::string words;
    for (const bool improved : {false, true}) {
        const char* form = improved ? "doc: owner, count, sweeper" : "doc: insert/delete";
        const Row* for_ever = of(form, "held for ever after a crash");
        const Row* again = of(form, "entered again by its holder");
        const Row* waited = of(form, "waited for a release");
        if (for_ever == nullptr || again == nullptr || waited == nullptr) return std::nullopt;
        seen.as_said = seen.as_said &&
                       (improved ? for_ever->value == 0 && caught(*again) && caught(*waited)
                                 : caught(*for_ever) && again->value == 0 && waited->value == 0);
        words += fmt::format(
            "{}{}: held for ever after a crash {:.0f}, entered again {:.0f}, waited {:.0f}",
            words.empty() ? "" : "; ", improved ? "improved" : "naive", for_ever->value,
            again->value, waited->value);
    }
    const Row* at_work = of("doc: owner, count, sweeper", "freed while its holder worked");
    if (at_work == nullptr) return std::nullopt;
    seen.freed_at_work = at_work->value > 0;
    seen.figure =
        fmt::format("of {} runs, {}; the sweeper freed it under a holder at work in {:.0f}",
                    at_work->n, words, at_work->value);
    return seen;
}

Answer judge_c19(const Rows& rows) {
    std::string figure;
    bool as_said = true, freed_at_work = false;
    for (const char* backend : {"postgresql", "mysql"}) {
        const auto seen = row_as_a_lock(rows, backend);
        if (!seen) continue;
        as_said = as_said && seen->as_said;
        freed_at_work = freed_at_work || seen->freed_at_work;
        figure += figure.empty() ? seen->figure : fmt::format("; {}: {}", backend, seen->figure);
    }
    if (figure.empty()) return {};
    if (!as_said) return {Finding::refuted, figure};
    if (freed_at_work)
        return {Finding::only_if, figure +
                                      ": holds only if no work takes longer than the sweeper's "
                                      "age"};
    return {Finding::confirmed, figure};
}

// --- C19a

Answer judge_c19a(const Rows& rows) {
    return judge_sides(
        sides(find_all(rows, {"C19a", {}, {}, "two holders at once"}), of_a_document),
        "two holders at once");
}

// --- C20

Answer judge_c20(const Rows& rows) {
    std::vector<const Row*> crash, exception, told;
    bool as_said = true;
    for (const Row* row : find_all(rows, {"C20"})) {
        const auto is = [&](const char* metric) { return row->metric.starts_with(metric); };
        if (is("half-done work found"))
            (row->metric.ends_with("crash") ? crash : exception).push_back(row);
        if (is("not told by previous_holder(): crash")) told.push_back(row);
        const bool always = is("half-done work found") || is("repaired");
        as_said = as_said && (always ? caught(*row) : row->value == 0);
    }
    if (crash.empty() || exception.empty() || told.empty()) return {};
    const auto figure = fmt::format(
        "runs in which the next holder found half-done work after a crash: {}; after an exception: "
        "{}; previous_holder(), where it is declared, did not say so: {}",
        counts(crash), counts(exception), counts(told));
    if (!as_said) return {Finding::refuted, figure};
    return {Finding::confirmed,
            figure +
                "; a flag in the store said so to all of them, they repaired it, and no reader "
                "acted on half-done work"};
}

// --- C20a

Answer judge_c20a(const Rows& rows) {
    return judge_sides(
        sides(find_all(rows, {"C20a", {}, {}, "entered at once over half-done work"}),
              of_a_document),
        "half-done work entered at once");
}

// --- C26

Answer judge_c26(const Rows& rows) {
    constexpr std::string_view metric = "watches left at the server";
    const Row* exists = find(rows, {"C26", "zookeeper", "doc: exists watch", metric});
    const Row* data = find(rows, {"C26", "zookeeper", "data watch", metric});
    const Row* own = find(rows, {"C26", "zookeeper", "default", metric});
    if (exists == nullptr || data == nullptr || own == nullptr) return {};
    const auto figure = fmt::format(
        "watches left at the server: {:.0f} after {} abandoned waits by exists, {:.0f} after {} by "
        "reading the data, {:.0f} after {} of Holdfast's",
        exists->value, exists->n, data->value, data->n, own->value, own->n);
    const bool leaks = exists->value >= 0.9 * static_cast<double>(exists->n);
    return {leaks && data->value <= 0 && own->value <= 0 ? Finding::confirmed : Finding::refuted,
            figure};
}

// --- C27

Answer judge_c27(const Rows& rows) {
    return judge_sides(
        sides(find_all(rows, {"C27", {}, {}, "two holders after a waiter's death"}), of_a_document),
        "two holders after the death of a waiter");
}

// --- C28

Answer judge_c28(const Rows& rows) {
    constexpr std::string_view metric = "went back over deletion of the parent";
    const Row* number = find(rows, {"C28", "zookeeper", "doc: sequence number", metric});
    const Row* czxid = find(rows, {"C28", "zookeeper", "czxid", metric});
    const Row* token = find(rows, {"C28", "zookeeper", "default", metric});
    if (number == nullptr || czxid == nullptr || token == nullptr) return {};
    const auto figure = fmt::format(
        "of {} deletions of the parent the sequence number went back in {:.0f}, czxid in {:.0f}, "
        "Holdfast's token in {:.0f}",
        number->n, number->value, czxid->value, token->value);
    if (number->value > 0)
        return {Finding::only_if, figure + ": holds only if the parent is never deleted"};
    return {Finding::confirmed, figure};
}

constexpr Rule rules[] = {
    {"C4a", "Redlock's nodes may be asked in turn.",
     "Holds only if no node hangs when one hung node makes a cycle in turn more than 3 times as "
     "long, and at least 3 times as long as one at once; confirmed when a hung node costs less; "
     "refuted when asking at once does not help.",
     judge_c4a},
    {"C9",
     "SETNX and then EXPIRE can leave a lock for ever when the client dies in between; SET NX PX "
     "cannot.",
     "Confirmed if a holder that is killed right after SETNX leaves a lock without a ttl in at "
     "least 9 of 10 runs, and SET NX PX and Holdfast in none.",
     judge_c9},
    {"C10",
     "A release without an owner check frees somebody else's lock; one that compares does not.",
     "Confirmed if each unchecked form (Redis DEL, SQL delete by name, ZooKeeper delete by path) "
     "frees another's lock in at least 9 of 10 runs, and the checked forms and Holdfast in none.",
     judge_c10},
    {"C11",
     "Work longer than the ttl breaks exclusion; renewal keeps it; so does a longer ttl, at a "
     "price.",
     "Confirmed if another is at work in at least 9 of 10 runs without renewal with every backend, "
     "in none with renewal or the longer ttl, and a crash with the longer ttl leaves the lock "
     "without a holder for at least twice as long.",
     judge_c11},
    {"C11a", "A watchdog that renews ensures that no deadlock occurs.",
     "Confirmed if no hanging worker keeps the lock; holds only if max_hold is set when some do "
     "and max_hold ends it in at least 9 of 10 runs.",
     judge_c11a},
    {"C19",
     "The naive insert/delete lock never expires, is not re-entrant and does not wait; the "
     "improved "
     "one does all three.",
     "Confirmed if in at least 9 of 10 runs a crash leaves the naive one for ever and the improved "
     "one lets its holder in again and lets others wait, and in no run the other way round; holds "
     "only if ... when the sweeper frees it under a holder at work.",
     judge_c19},
    {"C19a",
     "A row with state and version is a lock if the update compares both and its count is looked "
     "at; as printed, without one of these, two win.",
     "Confirmed if each printed form (UPDATE by name; the count not looked at) is granted to two "
     "at "
     "once in at least 9 of 10 runs, and the corrected form and Holdfast in none.",
     judge_c19a},
    {"C20",
     "A distributed lock gives no atomicity: the next holder may find half-finished work and must "
     "be able to tell.",
     "Confirmed if with every backend, after a crash and after an exception, the next holder finds "
     "half-done work in at least 9 of 10 runs and repairs it, a flag in the store always says so, "
     "as does previous_holder() where it is declared, and no later reader acts on half-done work.",
     judge_c20},
    {"C20a",
     "A lock that knows its holder by host and thread id is entered again over half-done work "
     "after "
     "a crash.",
     "Confirmed if it is granted at once in at least 9 of 10 runs, and no backend of Holdfast "
     "grants before the dead holder's time is over.",
     judge_c20a},
    {"C26", "A watch set by exists leaks; a data watch does not.",
     "Confirmed if at least 9 of 10 waits abandoned after exists leave a watch at the server, and "
     "none after reading the data, nor any of Holdfast's.",
     judge_c26},
    {"C27", "Woken means granted, says one article; woken means look again, says another.",
     "Confirmed (the second one is right) if believing at once gives two holders in at least 9 of "
     "10 runs when a waiter in the middle dies, and looking again and Holdfast in none.",
     judge_c27},
    {"C28", "ZooKeeper's sequence numbers always increase.",
     "Confirmed if the number never goes back when the parent is deleted and made again; holds "
     "only "
     "if ... otherwise.",
     judge_c28},
};

}  // namespace

std::span<const Rule> rules_of_clients() {
    return rules;
}

}  // namespace holdfast::bench
