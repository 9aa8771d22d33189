#include "checker/check.hpp"

#include <algorithm>

#include "checker/huge.hpp"
#include "checker/name_check.hpp"

namespace holdfast::bench::history {

namespace {

template <class Key>
void sort_by(std::vector<Key>& all, Nanos Key::*field) {
    const auto less = [field](const Key& x, const Key& y) { return x.*field < y.*field; };
    if (!std::is_sorted(all.begin(), all.end(), less)) std::sort(all.begin(), all.end(), less);
}

/// Indices of what has a name, for each name.
template <class Entry>
std::vector<std::vector<std::uint32_t>> by_name(const std::vector<Entry>& all, std::size_t names) {
    std::vector<std::uint32_t> sizes(names);
    for (const Entry& e : all)
        if (e.name < names) ++sizes[e.name];
    std::vector<std::vector<std::uint32_t>> out(names);
    for (std::size_t i = 0; i < names; ++i)
        reserve_huge(out[i], sizes[i]);
    for (std::uint32_t i = 0; i < all.size(); ++i)
        if (all[i].name < names) out[all[i].name].push_back(i);
    return out;
}

}  // namespace

void NameCheck::run(std::uint32_t name, const std::vector<std::uint32_t>& acquisitions,
                    const std::vector<std::uint32_t>& stores,
                    const std::vector<std::uint32_t>& sightings) {
    name_ = name;
    gather(acquisitions);
    overlaps();
    tokens();
    inversions();
    previous_holders();
    alone();
    writes(stores);
    seen(sightings);
}

void NameCheck::gather(const std::vector<std::uint32_t>& acquisitions) {
    beliefs_.clear();
    empty_.clear();
    requests_.clear();
    errors_.clear();
    by_token_.clear();
    first_unknown_ = never;
    crossed_ = false;
    reserve_huge(beliefs_, acquisitions.size());
    reserve_huge(requests_, acquisitions.size());
    for (const std::uint32_t index : acquisitions) {
        const Acquisition& a = at(index);
        if (!a.counts()) continue;
        const Nanos answered = a.was_granted ? a.granted : a.has_failed ? a.done : never;
        requests_.push_back({a.invoked, answered, answered, index});
        if (a.was_granted)
            add_belief(a, index);
        else if (!a.has_failed)
            first_unknown_ = std::min(first_unknown_, a.invoked);
        else if (a.outcome != Outcome::contended)
            errors_.push_back({a.invoked, a.done, a.done, index});
    }
    sort_by(beliefs_, &Belief::from);
    sort_by(requests_, &Request::invoked);
    sort_by(errors_, &Request::invoked);
    Nanos latest = 0;
    for (Request& r : requests_)
        r.any_until = latest = std::max(latest, r.answered);
}

void NameCheck::add_belief(const Acquisition& a, std::uint32_t index) {
    Belief b{a.granted, std::min(a.until, a.over), 0, a.token, index};
    b.sure = b.to;
    if (a.over == never && h_.files[a.file].damaged)
        b.to = b.sure = std::min(b.to, a.last);  // its end may be among what the file lost
    else if (a.over == never)
        b.sure = std::min(b.to, a.last + 1);  // it lived and believed in that nanosecond, too
    if (b.to > b.from) {
        beliefs_.push_back(b);
    } else {
        empty_.push_back(index);
        first_unknown_ = std::min(first_unknown_, a.invoked);
    }
    v_.figures.tokens_judged += a.token != 0 ? 1 : 0;
    if (a.token == 0 && name().fencing)
        tell(Trouble::token_missing, [&] { return words(a) + " was granted without a token"; });
}

std::string NameCheck::words(const Acquisition& a) const {
    std::string out = h_.who(a);
    if (!a.was_granted) return out + " (asked " + h_.when(a.invoked) + ")";
    out += " (granted " + h_.when(a.granted) + ", valid until " + h_.when(a.until);
    if (a.over != never)
        out += (a.began_release ? ", release begun " : ", lost ") + h_.when(a.over);
    if (a.token != 0) out += ", token " + std::to_string(a.token);
    return out + ")";
}

void check(const History& h, const Limits& limits, Verdict& verdict) {
    const auto acquisitions = by_name(h.acquisitions, h.names.size());
    const auto writes = by_name(h.writes, h.names.size());
    const auto sightings = by_name(h.sightings, h.names.size());
    NameCheck one(h, limits, verdict);
    for (std::uint32_t i = 0; i < h.names.size(); ++i)
        one.run(i, acquisitions[i], writes[i], sightings[i]);
}

Verdict check_files(const std::vector<std::filesystem::path>& files, const Limits& limits) {
    Verdict verdict;
    const History history = read(files, verdict);
    check(history, limits, verdict);
    return verdict;
}

Verdict check_folder(const std::filesystem::path& folder, const Limits& limits) {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        if (file.path().extension() == ".history") files.push_back(file.path());
    return check_files(files, limits);
}

}  // namespace holdfast::bench::history
