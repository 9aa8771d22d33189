// Writes at stores: what a fence let pass, and what arrived from a former holder.
#include <algorithm>
#include <map>

#include "checker/name_check.hpp"

namespace holdfast::bench::history {

void NameCheck::writes(const std::vector<std::uint32_t>& all) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> highest;  // file and store
    for (const std::uint32_t index : all) {
        const StoreWrite& w = h_.writes[index];
        if (w.fenced)
            fenced(w, highest[{w.file, w.store}]);
        else if (w.accepted)
            unfenced(w);
        const std::uint32_t by = w.writer == 0 ? History::npos : h_.find(w.writer);
        if (by != History::npos && at(by).has_failed && at(by).counts())
            tell(Trouble::held_after_error,
                 [&] { return words(at(by)) + " returned an error and wrote to a store"; });
    }
}

void NameCheck::fenced(const StoreWrite& w, std::uint64_t& highest) {
    ++v_.figures.fenced_judged;
    const auto line = [&](const char* what) {
        return "store " + std::to_string(w.store) + what + std::to_string(w.token) + ", " +
               h_.when(w.at) + "; it had accepted " + std::to_string(highest);
    };
    if (w.accepted) {
        if (w.token < highest || w.token == 0)
            tell(Trouble::stale_fenced, [&] { return line(" accepted token "); });
        highest = std::max(highest, w.token);
    } else if (w.token != 0 && w.token >= highest && !h_.files[w.file].damaged) {
        tell(Trouble::rightful_refused, [&] { return line(" refused token "); });
    }
}

void NameCheck::unfenced(const StoreWrite& w) {
    const Acquisition* a = writer(w);
    if (a == nullptr) {
        ++v_.figures.writes_unjudged;
        return;
    }
    ++v_.figures.unfenced_judged;
    const Nanos end = std::min(a->until, a->over);
    if (end <= a->granted) return;
    const auto after = std::partition_point(beliefs_.begin(), beliefs_.end(),
                                            [&](const Belief& b) { return b.from < w.at; });
    // The last grant before the write began after the writer's end, or none did.
    if (after == beliefs_.begin() || std::prev(after)->from < end) return;
    tell(Trouble::stale_unfenced, [&] {
        return "store " + std::to_string(w.store) + " took " + h_.when(w.at) + " a write of " +
               words(*a) + "; the lock was " + words(at(std::prev(after)->index));
    });
}

const Acquisition* NameCheck::writer(const StoreWrite& w) {
    if (w.writer != 0) {
        const std::uint32_t index = h_.find(w.writer);
        if (index == History::npos) return nullptr;
        const Acquisition& a = at(index);
        return a.counts() && a.was_granted && a.name == name_ ? &a : nullptr;
    }
    if (w.token == 0) return nullptr;
    const auto less = [](const Token& x, const Token& y) { return x.token < y.token; };
    if (by_token_.empty()) {
        for (const Belief& b : beliefs_)
            by_token_.push_back({b.token, b.index});
        std::sort(by_token_.begin(), by_token_.end(), less);
    }
    const auto [first, last] =
        std::equal_range(by_token_.begin(), by_token_.end(), Token{w.token, 0}, less);
    return last - first == 1 ? &at(first->index) : nullptr;
}

}  // namespace holdfast::bench::history
