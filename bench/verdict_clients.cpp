// Verdicts on what a client does wrong by itself. They share one measure: how many of the runs of a
// form showed the fault.
#include <fmt/format.h>

#include <algorithm>

#include "verdict_rule.hpp"

namespace holdfast::bench {

namespace {

bool of_a_document(const Row& row) {
    return row.variant.rfind("doc:", 0) == 0;
}

/// Shown in at least 9 of 10 runs.
bool caught(const Row& row) {
    return row.n > 0 && row.value >= 0.9 * static_cast<double>(row.n);
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

constexpr Rule rules[] = {
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
     "Confirmed if nobody who hangs keeps the lock; holds only if max_hold is set when some do and "
     "max_hold ends it in at least 9 of 10 runs.",
     judge_c11a},
};

}  // namespace

std::span<const Rule> rules_of_clients() {
    return rules;
}

}  // namespace holdfast::bench
