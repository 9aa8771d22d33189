#include "agreement.hpp"

#include <algorithm>
#include <vector>

#include "../../resp/majority.hpp"

namespace holdfast::redis {

Agreement agree(std::span<const std::optional<Named>> last) {
    Agreement found;
    std::size_t supporters = 0;
    std::vector<boot_clock::time_point> asked;
    for (const auto& one : last) {
        if (!one) continue;
        asked.clear();
        for (const auto& other : last)
            if (other && other->primary == one->primary && other->epoch == one->epoch)
                asked.push_back(other->asked);
        const bool newer = found.best == nullptr || one->epoch > found.best->epoch;
        const bool as_new = !newer && one->epoch == found.best->epoch;
        if (!newer && !(as_new && asked.size() > supporters)) continue;
        found = {&*one, boot_clock::time_point::min()};
        supporters = asked.size();
        const std::size_t majority = resp::majority(last.size());
        if (supporters < majority) continue;
        std::sort(asked.rbegin(), asked.rend());
        found.confirmed = asked[majority - 1];
    }
    return found;
}

}  // namespace holdfast::redis
