// Exclusion and the order of grants: what two acquisitions of one name say of each other.
#include <algorithm>
#include <unordered_set>

#include "checker/huge.hpp"
#include "checker/name_check.hpp"

namespace holdfast::bench::history {

void NameCheck::overlaps() {
    // Of the holders that began before: the one known to have believed longest, and the one
    // promised most.
    const Belief *longest = nullptr, *promised = nullptr;
    for (const Belief& b : beliefs_) {
        if (longest != nullptr && b.from < longest->sure) {
            crossed_ = true;
            tell(Trouble::overlap, [&] {
                return words(at(longest->index)) + " and " + words(at(b.index)) +
                       " believed at the same time";
            });
        } else if (promised != nullptr && b.from < promised->to) {
            crossed_ = true;
            tell(Trouble::within_validity, [&] {
                return words(at(b.index)) + " was granted while " + words(at(promised->index)) +
                       ", never heard of again, had time left";
            });
        }
        if (longest == nullptr || b.sure > longest->sure) longest = &b;
        if (promised == nullptr || b.to > promised->to) promised = &b;
    }
}

void NameCheck::tell_order(const Acquisition& earlier, const Acquisition& later) {
    tell(Trouble::token_order,
         [&] { return words(later) + " was granted after " + words(earlier); });
}

void NameCheck::tokens() {
    // Belief after belief is grant after grant, where exclusion holds.
    std::vector<const Belief*> ends;
    reserve_huge(ends, beliefs_.size());
    for (const Belief& b : beliefs_)
        ends.push_back(&b);
    const auto ends_before = [](const Belief* x, const Belief* y) { return x->to < y->to; };
    if (!std::is_sorted(ends.begin(), ends.end(), ends_before))
        std::sort(ends.begin(), ends.end(), ends_before);
    const Belief* highest = nullptr;
    std::size_t ended = 0;
    bool increasing = true;
    std::uint64_t last = 0;
    for (const Belief& b : beliefs_) {
        for (; ended < ends.size() && ends[ended]->to <= b.from; ++ended)
            if (highest == nullptr || ends[ended]->token > highest->token) highest = ends[ended];
        if (b.token == 0) continue;
        if (highest != nullptr && highest->token > b.token)
            tell_order(at(highest->index), at(b.index));
        increasing = increasing && b.token > last;
        last = b.token;
    }
    if (crossed_ || !empty_.empty()) tokens_by_request();
    if (!increasing || !empty_.empty()) repeated_tokens();
}

void NameCheck::tokens_by_request() {
    // What was granted before another was even asked for came first, whatever became of exclusion.
    // Pairs of beliefs that follow each other are tokens()'s.
    std::vector<const Acquisition*> grants;
    for (const Request& r : requests_)
        if (at(r.index).was_granted) grants.push_back(&at(r.index));
    std::sort(grants.begin(), grants.end(),
              [](const auto* x, const auto* y) { return x->granted < y->granted; });
    std::unordered_set<std::uint32_t> has_belief;
    for (const Belief& b : beliefs_)
        has_belief.insert(b.index);
    const auto end = [](const Acquisition& a) { return std::min(a.until, a.over); };
    const auto index = [&](const Acquisition* a) {
        return static_cast<std::uint32_t>(a - h_.acquisitions.data());
    };
    const Acquisition* highest = nullptr;
    std::size_t seen = 0;
    for (const Request& r : requests_) {
        for (; seen < grants.size() && grants[seen]->granted < r.invoked; ++seen)
            if (highest == nullptr || grants[seen]->token > highest->token) highest = grants[seen];
        const Acquisition& b = at(r.index);
        if (!b.was_granted || b.token == 0 || highest == nullptr || highest->token <= b.token)
            continue;
        if (has_belief.contains(r.index) && has_belief.contains(index(highest)) &&
            end(*highest) <= b.granted)
            continue;
        tell_order(*highest, b);
    }
}

void NameCheck::repeated_tokens() {
    std::vector<Token> all;
    reserve_huge(all, beliefs_.size() + empty_.size());
    for (const Belief& b : beliefs_)
        if (b.token != 0) all.push_back({b.token, b.index});
    for (const std::uint32_t index : empty_)
        if (at(index).token != 0) all.push_back({at(index).token, index});
    std::sort(all.begin(), all.end(), [](const Token& x, const Token& y) {
        return x.token != y.token ? x.token < y.token : x.index < y.index;
    });
    for (std::size_t i = 1; i < all.size(); ++i)
        if (all[i].token == all[i - 1].token)
            tell(Trouble::token_repeated, [&] {
                return words(at(all[i - 1].index)) + " and " + words(at(all[i].index)) +
                       " have the same token";
            });
}

void NameCheck::inversions() {
    if (!name().fifo) return;
    struct Place {
        Nanos in_line = never, from = 0, to = 0;
        std::uint32_t index = 0;
    };
    std::vector<Place> places;
    reserve_huge(places, beliefs_.size());
    std::uint64_t known = 0;
    for (const Belief& b : beliefs_) {
        const Acquisition& a = at(b.index);
        Nanos in_line = a.in_line;
        if (limits_.in_line_after < a.granted - a.invoked)
            in_line = std::min(in_line, a.invoked + limits_.in_line_after);
        known += in_line != never ? 1 : 0;
        places.push_back({in_line, b.from, b.to, b.index});
    }
    v_.figures.inversions_judged += known;
    if (known == 0) return;
    std::vector<const Place*> by_end;
    reserve_huge(by_end, places.size());
    for (const Place& p : places)
        by_end.push_back(&p);
    std::sort(by_end.begin(), by_end.end(),
              [](const Place* x, const Place* y) { return x->to > y->to; });
    // Backwards: of those granted after this one had ended, who had been in line first?
    const Place* first = nullptr;
    auto later = places.rbegin();
    for (const Place* b : by_end) {
        for (; later != places.rend() && later->from >= b->to; ++later)
            if (first == nullptr || later->in_line < first->in_line) first = &*later;
        if (first == nullptr || first->in_line >= at(b->index).invoked) continue;
        tell(Trouble::inversion, [&] {
            return words(at(b->index)) + ", asked " + h_.when(at(b->index).invoked) +
                   ", was granted before " + words(at(first->index)) + ", in line since " +
                   h_.when(first->in_line);
        });
    }
}

}  // namespace holdfast::bench::history
