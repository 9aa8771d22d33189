// What several looks say of renewals.
#include "renewals.hpp"

#include <utility>

namespace holdfast::cli {
namespace {

/// etcd tells the time left in whole seconds, without the rest.
milliseconds rounding(milliseconds left) {
    return milliseconds(left.count() % 1000 == 0 ? 1000 : 1);
}

}  // namespace

void Renewals::look(const std::vector<Holder>& holders, boot_clock::time_point asked,
                    boot_clock::time_point answered) {
    const auto before = std::exchange(records_, {});
    for (const Holder& h : holders) {
        if (!h.ttl_left) continue;
        Record now;
        now.left = *h.ttl_left;
        now.latest_end = answered + now.left + rounding(now.left);
        now.asked = asked;
        now.answered = now.since = answered;
        if (const auto at = before.find(h.owner); at != before.end()) {
            const Record& last = at->second;
            const bool moved = asked + now.left > last.latest_end;
            // The same time left says that it was renewed just so long after, or that it is not a
            // time left at all.
            now.known = now.left != last.left;
            if (now.known) {
                now.renewed = moved || last.renewed;
                now.since = moved ? last.asked : last.since;
            }
        }
        records_.insert_or_assign(h.owner, now);
    }
}

std::optional<Renewals::Seen> Renewals::of(const std::string& owner) const {
    const auto at = records_.find(owner);
    if (at == records_.end() || !at->second.known) return {};
    const Record& r = at->second;
    const auto until = r.renewed ? r.answered : r.asked;
    return Seen{r.renewed, std::chrono::duration_cast<milliseconds>(until - r.since)};
}

}  // namespace holdfast::cli
