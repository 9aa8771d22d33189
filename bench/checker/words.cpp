// What acquisitions say of others, or others of them: previous holders, errors that held, and the
// time in which everybody waited.
#include <algorithm>

#include "checker/name_check.hpp"

namespace holdfast::bench::history {

namespace {

const char* word(Previous p) {
    switch (p) {
        case Previous::none:
            return "none";
        case Previous::released:
            return "released";
        case Previous::abandoned:
            return "abandoned";
        case Previous::crashed:
            return "crashed";
        case Previous::unknown:
            break;
    }
    return "unknown";
}

}  // namespace

void NameCheck::previous_holders() {
    if (!limits_.everyone_recorded || name().doubtful || crossed_) return;
    for (std::size_t i = 1; i < beliefs_.size(); ++i) {
        const Acquisition& before = at(beliefs_[i - 1].index);
        const Acquisition& b = at(beliefs_[i].index);
        if (b.previous == Previous::unknown || b.previous == Previous::none) continue;
        ++v_.figures.previous_judged;
        if (before.was_released && before.answer == Answer::released) {
            const Previous right = before.abandoned ? Previous::abandoned : Previous::released;
            if (b.previous != right) tell_previous(before, b);
        } else if (before.over == never && b.previous != Previous::crashed) {
            tell_previous(before, b);
        }
    }
}

void NameCheck::tell_previous(const Acquisition& before, const Acquisition& b) {
    // A holder of which nothing is known may have been between them.
    if (first_unknown_ < b.granted) return;
    const auto line = [&] {
        return words(b) + " says that the holder before it " + word(b.previous) + "; that was " +
               words(before);
    };
    if (release_forgotten(before, b))
        return tell(Trouble::release_forgotten,
                    [&] { return line() + ", and then the server was killed"; });
    // So may an error of any time before: what it had asked for can have been granted late.
    const bool error = !errors_.empty() && errors_.front().invoked < b.granted;
    if (!error) return tell(Trouble::previous_holder, line);
    if (b.previous == Previous::released) return;
    tell(Trouble::held_after_error,
         [&] { return line() + ", so an acquisition that returned an error came between"; });
}

/// Whether a kill can have taken the release back: it was begun before the server was dead, may not
/// have been synced when that began, and the next holder was granted only when the time was over.
bool NameCheck::release_forgotten(const Acquisition& before, const Acquisition& b) const {
    if (limits_.unsynced_release == 0 || !before.was_released || b.previous != Previous::crashed ||
        b.granted < before.until)
        return false;
    return std::any_of(h_.kills.begin(), h_.kills.end(), [&](const ServerKill& kill) {
        return before.over <= kill.to && kill.from - limits_.unsynced_release <= before.done &&
               kill.from < b.granted;
    });
}

void NameCheck::alone() {
    if (name().doubtful) return;
    // Both by time: the stretches in which somebody held, and those in which somebody waited.
    std::size_t held = 0;
    Nanos free_from = 0;  // everything before is held or was looked at
    Nanos best = -1, best_from = 0;
    const auto look = [&](Nanos from, Nanos to) {
        if (to - from > best) best = to - from, best_from = from;
    };
    for (std::size_t i = 0; i < requests_.size();) {
        Nanos from = requests_[i].invoked, to = from;
        for (; i < requests_.size() && (to == from || requests_[i].invoked <= to); ++i)
            if (requests_[i].answered != never) {
                if (to == from) from = to = requests_[i].invoked;
                to = std::max(to, requests_[i].answered);
            }
        free_from = std::max(free_from, from);
        for (; held < beliefs_.size() && beliefs_[held].from < to; ++held) {
            if (beliefs_[held].from > free_from) look(free_from, beliefs_[held].from);
            free_from = std::max(free_from, beliefs_[held].to);
        }
        if (to > free_from) look(free_from, to);
    }
    if (best > v_.figures.longest_alone_ns) {
        v_.figures.longest_alone_ns = best;
        v_.figures.longest_alone = name().text + ", from " + h_.when(best_from);
    }
    if (best > limits_.alone)
        tell(Trouble::left_alone, [&] {
            return "from " + h_.when(best_from) + " to " + h_.when(best_from + best) +
                   " somebody waited and nobody held";
        });
}

void NameCheck::seen(const std::vector<std::uint32_t>& sightings) {
    if (sightings.empty()) return;
    std::vector<Token> owners;  // fingerprint and acquisition
    for (const Request& r : requests_)
        if (at(r.index).owner != 0) owners.push_back({at(r.index).owner, r.index});
    std::sort(owners.begin(), owners.end(),
              [](const Token& x, const Token& y) { return x.token < y.token; });
    for (const std::uint32_t index : sightings) {
        const Sighting& s = h_.sightings[index];
        if (s.owner == 0) continue;
        const auto found =
            std::lower_bound(owners.begin(), owners.end(), s.owner,
                             [](const Token& x, std::uint64_t owner) { return x.token < owner; });
        if (found != owners.end() && found->token == s.owner) {
            const Acquisition& a = at(found->index);
            if (a.has_failed && a.done < s.asked)
                tell(Trouble::held_after_error, [&] {
                    return words(a) + " returned an error " + h_.when(a.done) +
                           " and was seen as the holder " + h_.when(s.asked);
                });
            continue;
        }
        // An owner that nobody was granted as: one under way just then, or one that failed.
        if (!limits_.everyone_recorded || name().doubtful) continue;
        const auto after = std::partition_point(requests_.begin(), requests_.end(),
                                                [&](const Request& r) { return r.invoked < s.at; });
        if (after == requests_.begin() || std::prev(after)->any_until >= s.asked) continue;
        const auto error = std::find_if(errors_.begin(), errors_.end(), [&](const Request& e) {
            return e.invoked < s.at && at(e.index).owner == 0;
        });
        if (error == errors_.end()) continue;
        tell(Trouble::held_after_error, [&] {
            return "the holder seen " + h_.when(s.asked) +
                   " was never granted and nobody was asking: an acquisition that returned an " +
                   "error, as " + words(at(error->index));
        });
    }
}

}  // namespace holdfast::bench::history
